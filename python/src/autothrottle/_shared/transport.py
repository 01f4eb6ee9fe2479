"""The way between processes, and who writes: what a store has to give, and what time a group goes by.

A transport moves text and elects. It may lose, double, delay and reorder what it moves; it must never let two
processes hold a lease at once, as far as it can tell, and what a process sends under a lease that is over it
should not deliver.

Answers come by a call: there is no loop of one kind here. The trap is a call from another thread: none of
these is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Offline: TypeAlias = Literal["divide", "wait", "fail"]
"""What a process does when the way to the others is broken for long."""

Done: TypeAlias = Callable[[Any, BaseException | None], None]
"""Is called once, with an answer or with an error."""


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> Any: ...


class Scheduler(Protocol):
    """When things happen: in one loop, or under one lock. Milliseconds throughout."""

    is_loop: bool
    """Whether this is a loop of asyncio."""

    @property
    def is_running(self) -> bool:
        """Whether calls may be asked for here and now: of a loop, whether this is in it."""

    def now(self) -> float:
        """A clock that only goes forward."""

    def wall(self) -> float:
        """Since 1970; only to age a snapshot."""

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        """Calls after so long."""

    def after_turn(self, call: Callable[[], object]) -> None:
        """Calls when what happens now is over, so that it is said in one message."""

    def post(self, call: Callable[[], object]) -> None:
        """Calls soon. Any thread may ask for it."""

    def open(self) -> None:
        """The first request is about to come."""

    def close(self) -> None:
        """Nothing more will be called."""


class Leaving(Protocol):
    """What is still said when a process leaves."""

    def join(self, seconds: float) -> None:
        """Blocks until it was said, at most so long."""

    async def wait(self) -> None:
        """Waits until it was said."""


@dataclass(frozen=True)
class Lease:
    """Leave to write."""

    epoch: int
    """Larger than that of every lease before."""
    state: str | None = None
    """What was kept of the last writer."""
    state_age_ms: float = 0.0
    """How old that is."""


@dataclass(frozen=True)
class Peer:
    """This process, as a transport sees it."""

    id: str
    """Unlike that of any other process."""
    heard: Callable[[str], None]
    """Text came in."""
    vacant: Callable[[], None]
    """Nobody hears what is said to the writer: so it is time to compete."""
    fenced: Callable[[], None]
    """The lease is another's: what was sent did not leave."""
    deaf: Callable[[], None] = lambda: None
    """The way hears nothing, though there is something to hear: it is made anew."""


class Transport(Protocol):
    """A way between processes."""

    lease_ms: float
    """Milliseconds that a lease lasts."""

    @property
    def offset_ms(self) -> float | None:
        """Milliseconds that the group's clock is ahead of this process's; ``None`` while it is unknown."""

    @property
    def lead_ms(self) -> float:
        """How far ahead a grant is made, so that it has arrived when it is to leave."""

    def open(self, peer: Peer) -> None:
        """Begins. Called once, before everything else, and not before the first request."""

    def compete(self, epoch: int, done: Done) -> None:
        """Tries to become the writer: a :class:`Lease` with an epoch above this one, or ``None``."""

    def renew(self, lease: Lease, state: str | None, done: Done) -> None:
        """Makes the lease last from now; ``state`` is for the next writer. ``False``: it is another's."""

    def release(self, lease: Lease, state: str) -> None:
        """Gives the lease back."""

    def to_writer(self, text: str) -> None:
        """To the writer, whoever that is."""

    def to_member(self, lease: Lease, member: str, text: str) -> None:
        """To one, under the lease."""

    def to_all(self, lease: Lease, text: str) -> None:
        """To all, under the lease. This process need not hear it."""

    def close(self) -> Leaving:
        """Ends, when all was said. Nothing is heard afterwards."""

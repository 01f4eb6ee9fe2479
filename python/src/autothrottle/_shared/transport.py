"""The way between processes, and who leads: what a store has to give. See ``js/shared/transport.ts``.

A transport moves bytes and elects. It may lose, double, delay and reorder what it moves; it never alters it.
It gives each epoch to one process. What a leader says to all and to the leader comes back to it: so it knows
whether it hears.

Answers come by a call, never from another thread: there is no loop of one kind here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Offline: TypeAlias = Literal["divide", "wait", "fail"]
"""What a process does when the connection to the others has been broken for five seconds."""

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
        """No more calls come."""


class Leaving(Protocol):
    """What is still said when a process leaves."""

    def join(self, seconds: float) -> None:
        """Blocks until it was said, at most so long."""

    async def wait(self) -> None:
        """Waits until it was said."""


@dataclass(frozen=True)
class Lease:
    """Permission to lead."""

    epoch: int
    """Larger than that of every lease before."""
    stored: bytes | None = None
    """What was kept of the last leader."""
    age_ms: float = 0.0
    """How old that is."""


@dataclass(frozen=True)
class Peer:
    """This process, as a transport sees it."""

    id: str
    """32 hexadecimal digits, unlike those of any other process."""
    opened: Callable[[], None]
    """The way hears: said once it was opened, and after each ``reconnect``."""
    received: Callable[[bytes], None]
    """A frame came in."""
    unheard: Callable[[str, int], None]
    """What was said to this member under this epoch was lost."""
    vacant: Callable[[], None]
    """What is said to the leader is lost: so it is time to compete."""
    fenced: Callable[[int], None]
    """The lease is another's: what was said under this epoch did not leave."""


class Transport(Protocol):
    """A way between processes."""

    lease_ms: float
    """Milliseconds that a lease lasts."""

    def open(self, peer: Peer) -> None:
        """Begins. Called once, before everything else, and not before the first request."""

    def compete(self, above: int, done: Done) -> None:
        """Tries to become the leader: a :class:`Lease` with an epoch above this one, or ``None``. A
        :class:`~autothrottle.ConfigError` says that it can never work."""

    def renew(self, epoch: int, store: bytes | None, done: Done) -> None:
        """Makes the lease last from now; ``store`` is for the next leader. ``False``: it is another's."""

    def release(self, epoch: int, store: bytes | None, done: Done) -> None:
        """Gives the lease back."""

    def to_leader(self, frame: bytes) -> None:
        """To the leader, whichever process it is."""

    def to_member(self, epoch: int, member: str, frame: bytes) -> None:
        """To one, under the epoch."""

    def to_all(self, epoch: int, frame: bytes) -> None:
        """To all, this process too, under the epoch."""

    def reconnect(self) -> None:
        """The connection that listens carries no message: it is made anew."""

    def close(self) -> Leaving:
        """Ends, when all was said. No message is taken afterwards."""

"""The way between processes, and who leads: what a store has to give. See ``js/shared/transport.ts``.

A transport moves bytes and elects. It may lose, double, delay and reorder what it moves; it never alters it.
It gives each epoch to one process. A leader's messages to all and to the leader come back to it: so it knows
whether it hears.

Answers come by a call, never from another thread: there is no loop of one kind here. The end of this file has
the :class:`EventLoop` for tasks and for threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from .._clock import NANOS, Clock, HeapTimer, Timer

Offline: TypeAlias = Literal["divide", "wait", "fail"]
"""The rule for a process whose connection to the others has been broken for five seconds."""

Done: TypeAlias = Callable[[Any, BaseException | None], None]
"""Is called once, with an answer or with an error."""

_MS = 1e6
_logger = logging.getLogger("autothrottle")


class EventLoop(Protocol):
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
    """The last messages of a process that leaves."""

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
    """The state that the last leader stored."""
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
    """A message to this member under this epoch was lost."""
    vacant: Callable[[], None]
    """Messages to the leader are lost: it is time to compete."""
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

    def reconnect(self, speaks: bool) -> None:
        """A connection is open and carries no message: it is made anew. ``speaks``: the one of commands, not
        the one that listens.
        """

    def close(self) -> Leaving:
        """Ends, when all was said. No message is taken afterwards."""


class AsyncioLoop:
    """A :class:`EventLoop` of a loop of asyncio: the one in which the first request comes. A call from a
    thread to a loop that is closed is dropped.
    """

    is_loop = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_running(self) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def now(self) -> float:
        return self._clock.now() / _MS

    def wall(self) -> float:
        return self._clock.wall() / _MS

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        return self._clock.call_later(max(ms, 0.0) / 1000, lambda: (call(), None)[1])

    def after_turn(self, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(call)

    def post(self, call: Callable[[], object]) -> None:
        # A loop that is over takes no call.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """See :class:`EventLoop`."""


class ThreadLoop:
    """A :class:`EventLoop` that is a thread and calls under the lock of a throttle: a lease has to be made
    longer while no thread waits. It keeps no program alive.
    """

    is_loop = False
    is_running = True

    def __init__(self, clock: Clock, lock: AbstractContextManager[Any]) -> None:
        self._clock = clock
        self._lock = lock
        self._calls: list[HeapTimer] = []
        self._made = 0
        self._changed = threading.Condition()
        self._is_closed = False

    def now(self) -> float:
        return self._clock.now() / _MS

    def wall(self) -> float:
        return self._clock.wall() / _MS

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        with self._changed:
            self._made += 1
            made = HeapTimer(self._clock.now() + int(max(ms, 0.0) * _MS), self._made, call)
            heapq.heappush(self._calls, made)
            if self._calls[0] is made:
                self._changed.notify()
        return made

    def after_turn(self, call: Callable[[], object]) -> None:
        self.call_later(0.0, call)

    def post(self, call: Callable[[], object]) -> None:
        self.call_later(0.0, call)

    def open(self) -> None:
        threading.Thread(target=self._run, name="autothrottle-time", daemon=True).start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                left = (self._calls[0].at - self._clock.now()) / NANOS if self._calls else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                call = heapq.heappop(self._calls)
            with self._lock:
                # Looked at under the lock: the thread that struck it out held that.
                if call.call is None:
                    continue
                try:
                    call.call()
                except Exception:
                    _logger.exception("a call of a shared throttle failed")

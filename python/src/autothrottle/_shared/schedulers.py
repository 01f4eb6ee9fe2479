"""When things of a group happen: in the loop of its throttle, or under the lock of threads.

What a thread says to a loop that is closed is dropped. No thread keeps a program alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .._clock import NANOS, Clock
from .transport import Timer

_MS = 1e6
_logger = logging.getLogger("autothrottle")


class LoopScheduler:
    """A loop of asyncio: the one in which the first request comes."""

    is_loop = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_running(self) -> bool:
        """See :class:`Scheduler`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def now(self) -> float:
        """See :class:`Scheduler`."""
        return self._clock.now() / _MS

    def wall(self) -> float:
        """See :class:`Scheduler`."""
        return self._clock.wall() / _MS

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        """See :class:`Scheduler`."""
        return self._clock.call_later(max(ms, 0.0) / 1000, lambda: (call(), None)[1])

    def after_turn(self, call: Callable[[], object]) -> None:
        """See :class:`Scheduler`."""
        asyncio.get_running_loop().call_soon(call)

    def post(self, call: Callable[[], object]) -> None:
        """See :class:`Scheduler`."""
        # A loop that is over takes no call.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    def open(self) -> None:
        """See :class:`Scheduler`."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """See :class:`Scheduler`."""


class _Call:
    __slots__ = ("at", "call", "number")

    def __init__(self, at: int, number: int, call: Callable[[], object]) -> None:
        self.at = at
        self.number = number
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Does not call."""
        self.call = None

    def __lt__(self, other: _Call) -> bool:
        return (self.at, self.number) < (other.at, other.number)


class ThreadScheduler:
    """A thread that calls under the lock of a throttle: a lease has to be made longer while no thread
    waits."""

    is_loop = False
    is_running = True

    def __init__(self, clock: Clock, lock: AbstractContextManager[Any]) -> None:
        self._clock = clock
        self._lock = lock
        self._calls: list[_Call] = []
        self._made = 0
        self._changed = threading.Condition()
        self._is_closed = False

    def now(self) -> float:
        """See :class:`Scheduler`."""
        return self._clock.now() / _MS

    def wall(self) -> float:
        """See :class:`Scheduler`."""
        return self._clock.wall() / _MS

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        """See :class:`Scheduler`."""
        with self._changed:
            self._made += 1
            made = _Call(self._clock.now() + int(max(ms, 0.0) * _MS), self._made, call)
            heapq.heappush(self._calls, made)
            if self._calls[0] is made:
                self._changed.notify()
        return made

    def after_turn(self, call: Callable[[], object]) -> None:
        """See :class:`Scheduler`."""
        self.call_later(0.0, call)

    def post(self, call: Callable[[], object]) -> None:
        """See :class:`Scheduler`."""
        self.call_later(0.0, call)

    def open(self) -> None:
        """See :class:`Scheduler`."""
        threading.Thread(target=self._run, name="autothrottle-time", daemon=True).start()

    def close(self) -> None:
        """See :class:`Scheduler`."""
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

"""A clock that tests move by hand, so that a test of an hour takes a millisecond and never flickers.

.. code-block:: python

    clock = FakeClock()
    throttle = Throttle(clock=clock)
    task = asyncio.create_task(throttle.run(url, fetch, url))
    await clock.advance(1.0)

``await clock.run(work)`` lets as much time pass as the work needs.

With threads (``ThreadThrottle``), a thread that waits moves the clock itself: you need neither, and no time
passes.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import TypeVar

from ._clock import NANOS, HeapTimer

__all__ = ["FakeClock"]

_MOST_TURNS = 10_000

_MOST_IDLE = 100
"""Work that is not done after this number of rounds of the event loop, without a timer, will never be."""

_T = TypeVar("_T")


class FakeClock:
    """Time for tests, in seconds. It starts at 0; its wall time starts on 1 January 2026."""

    def __init__(self, start: float = 0.0, wall: datetime | None = None) -> None:
        begin = datetime(2026, 1, 1, tzinfo=timezone.utc) if wall is None else wall
        self._now = round(start * NANOS)
        self._offset = round(begin.timestamp() * NANOS) - self._now
        self._timers: list[HeapTimer] = []
        self._made = 0

    def now(self) -> int:
        """Nanoseconds that only go forward."""
        return self._now

    def wall(self) -> int:
        """Nanoseconds since 1970."""
        return self._now + self._offset

    def call_later(self, seconds: float, callback: Callable[[], None]) -> HeapTimer:
        """Calls back when the clock has reached that time."""
        self._made += 1
        timer = HeapTimer(self._now + math.ceil(max(0.0, seconds) * NANOS - 1e-3), self._made, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """A thread that would wait moves the clock itself. Without a time it waits for another thread."""
        if seconds is None:
            condition.wait()
            return
        self._now += max(0, math.ceil(seconds * NANOS - 1e-3))
        # Others may have something to say at this instant.
        condition.wait(0)

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self._now / NANOS

    @property
    def timers(self) -> int:
        """How many timers are armed."""
        return sum(timer.call is not None for timer in self._timers)

    @property
    def next_at(self) -> float | None:
        """When the next timer fires, in seconds; ``None`` if none is armed."""
        armed = [timer.at for timer in self._timers if timer.call is not None]
        return min(armed) / NANOS if armed else None

    async def advance(self, seconds: float) -> None:
        """Lets time pass. Timers fire in order, each at its own instant, and all tasks move on in between."""
        until = self._now + round(seconds * NANOS)
        await settled()
        while self._timers and (self._timers[0].call is None or self._timers[0].at <= until):
            timer = heapq.heappop(self._timers)
            if timer.call is not None:
                self._now = max(self._now, timer.at)
                timer.call()
                await settled()
        self._now = max(self._now, until)
        await settled()

    async def run(self, work: Awaitable[_T], at_most: float = 3600.0) -> _T:
        """Lets as much time pass as ``work`` needs, each timer at its own instant; gives what it gives.

        :param at_most: how many seconds may pass, an hour unless you say more.
        :raises RuntimeError: ``work`` is not done then, or waits although no timer is armed.
        """
        task = asyncio.ensure_future(work)
        until = self._now + round(at_most * NANOS)
        try:
            for _ in range(_MOST_IDLE):
                await settled()
                while not task.done() and self.next_at is not None:
                    if round(self.next_at * NANOS) > until:
                        wish = "settle its permits, resume(), or say more"
                        raise RuntimeError(f"the work is not done after {at_most:g} s: {wish}")
                    await self.advance(max(0.0, self.next_at - self.seconds))
                if task.done():
                    return await task
            wish = "settle its permits, or resume()"
            raise RuntimeError(f"the work waits although no timer is armed: {wish}")
        finally:
            # Of a coroutine no other task would wait any more.
            if task is not work:
                task.cancel()

    def jump(self, seconds: float) -> None:
        """Moves the clock without timers, as when a laptop sleeps: they fire late, at the next
        ``advance``.
        """
        self._now += round(seconds * NANOS)

    def set_wall(self, wall: datetime) -> None:
        """Moves wall time alone, as when a user sets the clock."""
        self._offset = round(wall.timestamp() * NANOS) - self._now


async def settled() -> None:
    """Lets every task move on that can, without the network."""
    # The list of ready callbacks is not public; other loops than asyncio's own get a number of turns that is
    # enough for most.
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    for turn in range(_MOST_TURNS):
        await asyncio.sleep(0)
        if not ready and (ready is not None or turn >= 50):
            return

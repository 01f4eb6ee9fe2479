"""Where time comes from, and how it is written.

People type and read seconds; the engine counts whole nanoseconds. Later instants are rounded up, so that no
request leaves a microsecond too early.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import threading

NANOS = 1_000_000_000
YEAR = 31_536_000
"""The longest time that may be asked for, in seconds."""


class Timer(Protocol):
    """A call that was put off."""

    def cancel(self) -> Any: ...


class HeapTimer:
    """A timer of a heap: calls at one instant go in the order in which they were asked for."""

    __slots__ = ("at", "call", "number")

    def __init__(self, at: int, number: int, call: Callable[[], object]) -> None:
        self.at = at
        self.number = number
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Does not call."""
        self.call = None

    def __lt__(self, other: HeapTimer) -> bool:
        return (self.at, self.number) < (other.at, other.number)


class Clock(Protocol):
    """Where time comes from. ``FakeClock`` of ``autothrottle.testing`` stands in for it in tests."""

    def now(self) -> int:
        """Nanoseconds that only go forward, from any origin."""

    def wall(self) -> int:
        """Nanoseconds since 1970. Serves only to read dates in headers."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Calls back on the running loop after that many seconds. For ``Throttle`` of asyncio."""

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Waits for a condition, at most that many seconds. For ``ThreadThrottle``."""


class SystemClock:
    """The machine's own."""

    __slots__ = ()

    now = staticmethod(time.monotonic_ns)
    wall = staticmethod(time.time_ns)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        import asyncio

        return asyncio.get_running_loop().call_later(seconds, callback)

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        # `wait` refuses more than its platform can count.
        condition.wait(seconds if seconds is None else min(seconds, 86_400.0))


def nanos(what: str, value: float | timedelta) -> int:
    """Seconds as the engine counts them, rounded up.

    Raises ``TypeError`` for what is no time, ``ValueError`` for one below 0 or above a year.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what}: want seconds or a timedelta; got {value!r}")
    if not 0 <= seconds <= YEAR:
        raise ValueError(f"{what}: want seconds from 0 to a year; got {value!r}")
    return math.ceil(seconds * NANOS)


def seconds(span: int) -> float:
    """Nanoseconds of the engine, as people read them."""
    return span / NANOS


class Alarm:
    """A call at an instant, unless it is struck out."""

    __slots__ = ("at", "call")

    def __init__(self, at: int, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def __lt__(self, other: Alarm) -> bool:
        return self.at < other.at


class Alarms:
    """Deadlines, the earliest first: a heap, of which what is struck out makes at most half."""

    __slots__ = ("_heap", "_struck")

    def __init__(self) -> None:
        self._heap: list[Alarm] = []
        self._struck = 0

    def add(self, at: int, call: Callable[[], None]) -> Alarm:
        """Calls at this instant."""
        alarm = Alarm(at, call)
        heapq.heappush(self._heap, alarm)
        return alarm

    def strike(self, alarm: Alarm) -> None:
        """Does not call."""
        if alarm.call is None:
            return
        alarm.call = None
        self._struck += 1
        if self._struck > 32 and self._struck * 2 > len(self._heap):
            self._heap = [each for each in self._heap if each.call is not None]
            heapq.heapify(self._heap)
            self._struck = 0

    def next(self) -> int | None:
        """The earliest instant."""
        while self._heap and self._heap[0].call is None:
            heapq.heappop(self._heap)
            self._struck -= 1
        return self._heap[0].at if self._heap else None

    def take_due(self, now: int) -> Callable[[], None] | None:
        """Takes out the earliest, if it is due."""
        at = self.next()
        if at is None or at > now:
            return None
        alarm = heapq.heappop(self._heap)
        call, alarm.call = alarm.call, None
        return call

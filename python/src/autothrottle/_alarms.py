"""Who gives up when: a heap of instants beside the engine's own, so that one timer serves both.

The trap is the request that was sent in time and whose deadline is an hour away: it is struck out and left
in the heap, and when more than half of the heap is struck out, the heap is made anew.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Alarm:
    """A call at an instant, unless it is struck out."""

    __slots__ = ("at", "call")

    def __init__(self, at: int, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def __lt__(self, other: Alarm) -> bool:
        return self.at < other.at


class Alarms:
    """All of them, the earliest first."""

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

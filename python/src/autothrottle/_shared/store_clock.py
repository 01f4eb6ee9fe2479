"""How far the store's clock is ahead of this process's, and how long the way takes.

An answer tells the store's time at some instant between asking and hearing: the quicker it was, the better
is it known, so the quickest of the last sixteen counts (Cristian's algorithm; NTP's filter, RFC 5905 §10).
The trap is a clock that is set: a sample that cannot be true beside the others begins anew.
"""

from __future__ import annotations

from typing import NamedTuple

KEPT = 16
_LEAST_LEAD_MS = 5.0
"""The least that a grant is made ahead."""
_BROKEN, _BROKEN_MS = 4, 20.0
"""A trip of more than so many times the median, and so many milliseconds, was through a broken way."""


class _Sample(NamedTuple):
    trip_ms: float
    offset_ms: float


class StoreClock:
    """The store's clock, as it is known here."""

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self.lead_ms = _LEAST_LEAD_MS
        """How far ahead a grant is made: a message takes two ways, and its lateness should be rare, so one
        and a half times a slow one of the last round trips."""

    @property
    def offset_ms(self) -> float | None:
        """The store's clock less this process's; ``None`` before it was asked."""
        return min(self._samples).offset_ms if self._samples else None

    def sample(self, asked: float, heard: float, store: float) -> None:
        """Asked and answered by this process's clock; the store said ``store``."""
        made = _Sample(max(heard - asked, 0.0), store - (asked + heard) / 2)
        best = min(self._samples, default=made)
        # Each is off by half its way at most; a clock that drifts moves by less than a millisecond.
        if abs(made.offset_ms - best.offset_ms) > (made.trip_ms + best.trip_ms) / 2 + 5:
            self._samples = []
        self._samples = [*self._samples, made][-KEPT:]
        self.lead_ms = max(_LEAST_LEAD_MS, 1.5 * self._slow_trip())

    def _slow_trip(self) -> float:
        """A command that waited for a connection says nothing about the way: it took longer than most."""
        trips = sorted(sample.trip_ms for sample in self._samples)
        most = _BROKEN * trips[(len(trips) - 1) // 2] + _BROKEN_MS
        usual = [trip for trip in trips if trip <= most]
        return usual[len(usual) * 9 // 10]

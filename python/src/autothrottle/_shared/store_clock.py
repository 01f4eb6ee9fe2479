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


class _Sample(NamedTuple):
    trip_ms: float
    offset_ms: float


class StoreClock:
    """The store's clock, as it is known here."""

    def __init__(self) -> None:
        self._samples: list[_Sample] = []

    @property
    def offset_ms(self) -> float | None:
        """The store's clock less this process's; ``None`` before it was asked."""
        return min(self._samples).offset_ms if self._samples else None

    @property
    def lead_ms(self) -> float:
        """How far ahead a grant is made: a message takes two ways, and its lateness should be rare, so one
        and a half times a slow one of the last round trips.
        """
        trips = sorted(sample.trip_ms for sample in self._samples)
        slow = trips[len(trips) * 9 // 10] if trips else 0.0
        return max(_LEAST_LEAD_MS, 1.5 * slow)

    def sample(self, asked: float, heard: float, store: float) -> None:
        """Asked and answered by this process's clock; the store said ``store``."""
        made = _Sample(max(heard - asked, 0.0), store - (asked + heard) / 2)
        best = min(self._samples, default=made)
        # Each is off by half its way at most; a clock that drifts moves by less than a millisecond.
        if abs(made.offset_ms - best.offset_ms) > (made.trip_ms + best.trip_ms) / 2 + 5:
            self._samples = []
        self._samples = [*self._samples, made][-KEPT:]

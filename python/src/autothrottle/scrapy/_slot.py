"""What of Scrapy's download slots others look at: the scheduler's queue, extensions, spiders.

Requests of the same scopes share one. Its ``delay`` and ``concurrency`` are the engine's, and setting them
configures the scope, as programs written for Scrapy do. The engine's handles are given back with the slot.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy import Request

    from .._state import ScopeStats
    from ._desk import Desk


class Slot:
    """Requests of one set of scopes."""

    __slots__ = (
        "_desk",
        "active",
        "handles",
        "lastseen",
        "latercall",
        "names",
        "queue",
        "scopes",
        "transferring",
    )

    def __init__(self, desk: Desk, names: Sequence[str], make: Callable[[str], int]) -> None:
        self._desk = desk
        self.names = tuple(names)
        self.handles = [make(name) for name in names]
        self.scopes = dict(zip(self.names, self.handles, strict=True))
        self.active: set[Request] = set()
        self.transferring: set[Request] = set()
        # For code that prints a slot: no request waits in it, and no timer is its own.
        self.queue: deque[Any] = deque()
        self.lastseen = 0.0
        self.latercall = None

    def stats(self) -> list[ScopeStats]:
        """The engine's view of each scope."""
        now = self._desk.clock.now()
        return [self._desk.engine.scope_stats(now, handle) for handle in self.handles]

    @property
    def delay(self) -> float:
        """Seconds between two sends: the longest of its scopes."""
        return max((each.delay / 1e9 for each in self.stats()), default=0.0)

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._configure({"delay": seconds * 1000})

    @property
    def concurrency(self) -> int:
        """Slots: the fewest of its scopes."""
        return min((each.slots for each in self.stats()), default=0)

    @concurrency.setter
    def concurrency(self, slots: int) -> None:
        self._configure({"concurrency": slots})

    def free_transfer_slots(self) -> int:
        return self.concurrency - len(self.transferring)

    def download_delay(self) -> float:
        return self.delay

    def close(self) -> None:
        """Scrapy's slots have a timer to cancel; these have none."""

    def _configure(self, options: dict[str, Any]) -> None:
        now = self._desk.clock.now()
        for handle in self.handles:
            self._desk.engine.configure(now, handle, options)
        self._desk.drain()

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        return f"<Slot {names}: {len(self.active)} active, {len(self.transferring)} transferring>"

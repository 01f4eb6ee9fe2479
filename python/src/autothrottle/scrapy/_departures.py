"""Requests that Scrapy sends and whose bytes may not have left yet.

A delay counts from the bytes. Scrapy starts a connection at once, but a spider that keeps the reactor, as a
long ``start()`` does, keeps the connection, too: the bytes leave when the reactor goes on. A tick that comes
late tells of it. Requests of the last ticks then leave only now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._permit import is_told

if TYPE_CHECKING:
    from .._clock import Clock, Timer
    from .._native import Engine

TICK: Final = 0.01
"""Seconds between two looks."""

CONNECTING: Final = 10
"""Ticks of a free reactor in which a connection is made: name, TCP, TLS."""

CONNECTED: Final = 1
"""Ticks of a request that finds a connection."""

_HELD: Final = 35_000_000
"""Nanoseconds after which a tick tells of a reactor that was kept: timers of a busy one are 25 ms late."""


class Departures:
    """The requests of the last ticks, and one timer while there are any."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._ticks: dict[int, int] = {}
        self._looked = 0
        self._timer: Timer | None = None

    def add(self, ticket: int, ticks: int) -> None:
        """A request was let go: it leaves within this number of ticks of a free reactor."""
        self._ticks[ticket] = ticks
        if self._timer is None:
            self._looked = self._clock.now()
            self._timer = self._clock.call_later(TICK, self._tick)

    def remove(self, ticket: int) -> None:
        """A request ended."""
        self._ticks.pop(ticket, None)

    def look(self, now: int) -> None:
        """If the reactor was kept since the last look, these requests leave only now."""
        if not self._ticks or now - self._looked < _HELD:
            return
        self._looked = now
        if is_told(self._engine):
            for ticket in self._ticks:
                self._engine.sent_at(now, ticket)

    def close(self) -> None:
        """Lets go of the timer."""
        self._ticks.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        now = self._clock.now()
        self.look(now)
        self._looked = now
        self._ticks = {ticket: left - 1 for ticket, left in self._ticks.items() if left > 1}
        if self._ticks:
            self._timer = self._clock.call_later(TICK, self._tick)

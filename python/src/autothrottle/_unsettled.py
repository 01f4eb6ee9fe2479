"""Permits that were given out by hand and are never settled: their slots are gone, and requests wait for them
for good.

It is said twice: where requests have waited for a minute for slots of these permits, and where the program
ends. The traps: an event loop without a timer, which sleeps for ever in silence; a request that takes long
and is no fault, so a permit in a ``with`` block is none of these.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from ._alarms import Alarm
    from ._desk import Desk
    from ._permit import Permit

PATIENCE = 60.0
"""Seconds that requests wait for a slot of these permits before it is said."""
_REMEDY = "use `with` or `async with`, `run`, or `permit.settle(response)`"

_desks: WeakSet[Desk] = WeakSet()
_is_registered = False


class Unsettled:
    """The permits of one throttle that are in no ``with`` block."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.tickets: set[int] = set()
        self._alarm: Alarm | None = None

    def add(self, permit: Permit) -> None:
        """It was given out by hand."""
        if not permit.is_settled:
            self.tickets.add(permit._ticket)
        self.register()

    def register(self) -> None:
        """The end of the program is to be told."""
        global _is_registered
        _desks.add(self._desk)
        if not _is_registered:
            _is_registered = True
            atexit.register(_at_exit)

    def watch(self) -> None:
        """Requests wait, and time alone lets none leave."""
        if self._alarm is not None or self._desk.is_quiet:
            return
        before = frozenset(self.tickets)

        def look() -> None:
            self._alarm = None
            desk, held = self._desk, before & self.tickets
            if held and desk.waiting and desk.waits_for_slots:
                names = {name for each in desk.waiting.values() for name in each.scopes}
                scopes = ", ".join(sorted(names)[:3])
                what = f"requests to {scopes} have waited for a minute, and {_never(len(held))} meanwhile"
                desk.warn("unsettled", f"{what}: {_REMEDY}")

        self._alarm = self._desk.alarm(PATIENCE, look)

    def tell_at_exit(self) -> None:
        """The program ends."""
        desk = self._desk
        desk.tell_unmet()
        many = len(self.tickets & desk.in_flight) + len(desk.lost)
        if many and desk.closed is None:
            desk.warn("permit-lost", f"the program ends, and {_never(many)}: {_REMEDY}", key="at exit")


def _never(many: int) -> str:
    return "1 permit was not settled" if many == 1 else f"{many} permits were not settled"


def _at_exit() -> None:
    for desk in tuple(_desks):
        desk.unsettled.tell_at_exit()

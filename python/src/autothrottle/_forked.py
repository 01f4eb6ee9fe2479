"""A process that forks while throttles are in use.

The child gets a copy of each throttle, but of the threads only the one that forked: none of the others waits
there, keeps the time, holds a lock or ever settles its permit.

The trap is an engine that is copied in the middle of a call: forking waits for the lock of each throttle.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ._alarms import Alarms

if TYPE_CHECKING:
    from ._desk import Desk

_MOST_S = 1.0
"""So long a fork waits for a throttle, in seconds."""

_desks: WeakSet[Desk] = WeakSet()
_locked: list[Any] = []
_is_registered = False


def survive(desk: Desk) -> None:
    """Lets this one work in processes that are forked from here on."""
    global _is_registered
    _desks.add(desk)
    if not _is_registered and hasattr(os, "register_at_fork"):
        _is_registered = True
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _before() -> None:
    locks: list[Any] = [desk.lock for desk in tuple(_desks) if hasattr(desk.lock, "acquire")]
    _locked[:] = [lock for lock in locks if lock.acquire(timeout=_MOST_S)]


def _in_parent() -> None:
    while _locked:
        _locked.pop().release()


def _in_child() -> None:
    _locked.clear()
    for desk in tuple(_desks):
        desk.forked()


def abandon(desk: Desk) -> None:
    """Ends what waits and what was sent: a fork left those behind who did."""
    now = desk.clock.now()
    waiting, sent = tuple(desk.waiting), tuple(desk.in_flight)
    desk.waiting.clear()
    desk.in_flight.clear()
    desk.unsettled.tickets.clear()
    desk.lost.clear()
    desk.alarms = Alarms()
    desk.is_draining = False
    for ticket in waiting:
        desk.engine.cancel(now, ticket)
    for ticket in sent:
        desk.engine.settle(now, ticket)

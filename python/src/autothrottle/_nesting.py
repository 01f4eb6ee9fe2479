"""Requests that are made inside of a function of ``run``, ``map`` or ``wrap``, inside a hook, or in the block
of a permit.

The first one for the scopes of the permit is the request that the permit is for: it takes the permit, and the
throttle reads its answer. Each further one waits for its turn, before those that have not begun.

The traps: a function that holds the slot which a request inside of it waits for; a permit that a context
keeps after its block. If only those functions are in flight, their slots come back.

Source: context variables go along with a task and into the tasks that it makes. A thread begins without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .errors import NestedError

if TYPE_CHECKING:
    from ._alarms import Alarm
    from ._desk import Desk
    from ._permit import Permit
    from ._waiting import Wait, Waiting

LOOK = 10.0
"""In a shared limit: after this many seconds without a slot that comes back, look who holds them."""

BEFORE_OTHERS = 1e6
"""So much before others is what a function that runs asks for: what has begun is to end."""

_NONE: tuple[Permit, ...] = ()
_around: ContextVar[Permit | tuple[Permit, ...]] = ContextVar("autothrottle_around", default=_NONE)
"""One permit as it is, for each tuple is work for Python's garbage collection."""


@contextmanager
def around(permit: Permit) -> Iterator[None]:
    """What is requested in here is requested for this permit."""
    enter_block(permit)
    try:
        yield
    finally:
        exit_block(permit)


def enter_block(permit: Permit) -> None:
    """The block of a permit begins."""
    around = _around.get()
    _around.set((*_all(around), permit) if around else permit)


def exit_block(permit: Permit) -> None:
    """The block of a permit ends."""
    around = _around.get()
    kept = () if around is permit else tuple(each for each in _all(around) if each is not permit)
    _around.set(kept)


def _all(around: Permit | tuple[Permit, ...]) -> tuple[Permit, ...]:
    return around if isinstance(around, tuple) else (around,)


def permits_around(desk: Desk) -> list[Permit]:
    """Those of this throttle that hold slots around what runs now."""
    around = _around.get()
    if not around:
        return []
    return [each for each in _all(around) if each._desk is desk and not each.is_settled]


def own_of(
    outer: Iterable[Permit], names: tuple[str, ...], costs: list[float] | None, wait: Wait
) -> Permit | None:
    """The permit that a request inside is for. One with a cost or delay of its own is another request."""
    if costs is None and wait.cost == 1 and wait.delay == 0:
        for permit in reversed([*outer]):
            if set(permit.scopes) == set(names):
                return permit
    return None


class Nested:
    """The functions of one throttle in which requests wait."""

    def __init__(self) -> None:
        self._waits: dict[Permit, int] = {}
        self._moves = 0
        """Counts requests that begin or end their wait."""
        self._alarm: Alarm | None = None
        self.asked: set[Permit] = set()
        """Of requests that hooks are asked about: no request inside is theirs."""

    @contextmanager
    def asking(self, permit: Permit) -> Iterator[None]:
        """A hook is asked about this request in here."""
        self.asked.add(permit)
        try:
            with around(permit):
                yield
        finally:
            self.asked.discard(permit)

    def begin(self, waiting: Waiting, outer: list[Permit]) -> None:
        """A request inside of these waits."""
        waiting.outer = outer
        self._moves += 1
        for permit in outer:
            self._waits[permit] = self._waits.get(permit, 0) + 1

    def end(self, waiting: Waiting) -> None:
        """It waits no longer."""
        self._moves += 1
        for permit in waiting.outer:
            self._waits[permit] -= 1
            if self._waits[permit] == 0:
                del self._waits[permit]
        if self._alarm is not None and not self._waits:
            waiting.outer[0]._desk.cancel(self._alarm)
            self._alarm = None

    def free(self, desk: Desk) -> None:
        """Time alone lets no request leave. If all in flight are functions that wait for requests inside of
        them, no other gives a slot back: theirs are.
        """
        held = [permit for permit in self._waits if not permit.is_settled]
        if not held or len(held) != len(desk.in_flight):
            return
        if not all(desk.is_for_slot(each) for each in desk.waiting.values() if each.outer):
            return
        functions = [permit for permit in held if permit not in self.asked]
        # An answer counts when its hooks have spoken, so these keep their slot.
        for each in [each for each in desk.waiting.values() if not self.asked.isdisjoint(each.outer)]:
            desk.leave_in_vain(each, NestedError(each.target))
        if not functions:
            return
        scopes = ", ".join(sorted({name for permit in functions for name in permit.scopes}))
        what = (
            f"functions of run, map or wrap hold all slots that requests inside of them wait for ({scopes})"
        )
        desk.warn("nested", f"{what}: their slots are given back; raise `concurrency`")
        for permit in functions:
            permit.end_block(None)

    def watch(self, desk: Desk) -> None:
        """The same where other processes may give slots back: if no slot has moved for a while."""
        if self._alarm is not None or not self._waits:
            return
        before = (self._moves, frozenset(desk.in_flight))

        def look() -> None:
            self._alarm = None
            if before == (self._moves, frozenset(desk.in_flight)):
                self.free(desk)
            self.watch(desk)

        self._alarm = desk.alarm(LOOK, look)

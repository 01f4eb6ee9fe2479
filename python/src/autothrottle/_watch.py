"""Watches of a scheduler, beside its waiting and sent requests, each in a class of its own:

* ``Nested``: requests inside of a function of ``run``, ``map`` or ``wrap``, of a hook, or of a permit's
  block. The first one for the scopes of the permit is the request that the permit is for: it takes the
  permit. Each further one waits for its turn, before those that have not started. If only functions that
  wait for these are in flight, their slots come back.
* ``Unsettled``: permits that no block ends. It is said where requests wait for their slots and none has come
  back for two minutes, and where the program ends.
* ``Tally``: how many requests a throttle sent, and throttles in a row that sent one each.
* ``Budgets``: where answers name several budgets (GitHub's resources, Discord's buckets), the scheduler names
  the routes of requests. By them the engine knows from which budget each one spends.
* ``Following``: the group where processes share a limit. Its messages come from a thread of its own.
* ``survive``: a process that forks. The child gets a copy of each throttle, and of the threads the one that
  forked. A fork therefore waits for the lock of each throttle.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from ._clock import Alarm, Alarms
from ._convert import python_path
from ._events import Events, Notices, SharedEvent
from ._permit import Permit, PermitOwner, Wait, Waiting, around
from ._stats import Stats
from .errors import ClosedError, CostExceedsQuotaError, NestedError, QueueFullError

if TYPE_CHECKING:
    from ._shared.host import SharedHost
    from ._shared.transport import EventLoop, Leaving
    from .redis import Shared


class WatchedScheduler(PermitOwner, Protocol):
    """The scheduler, as far as these know it."""

    alarms: Alarms
    closed: ClosedError | None
    events: Events
    in_flight: set[int]
    is_draining: bool
    is_quiet: bool
    lost: deque[tuple[int, tuple[str, ...]]]
    notices: Notices
    waiting: dict[int, Waiting]

    @property
    def waits_for_slots(self) -> bool: ...
    def alarm(self, seconds: float, call: Callable[[], None]) -> Alarm: ...
    def drain(self) -> None: ...
    def fail(self, waiting: Waiting, error: BaseException) -> None: ...
    def forget(self, waiting: Waiting) -> bool: ...
    def forked(self) -> None: ...
    def is_for_slot(self, waiting: Waiting) -> bool: ...
    def leave_in_vain(self, waiting: Waiting, error: BaseException) -> None: ...
    def rest(self) -> None: ...
    def warn_unused_names(self) -> None: ...
    def warn(self, code: str, message: str, scope: str | None = None, about: str | None = None) -> None: ...


LOOK = 10.0
"""After this many seconds without a slot that comes back, look who holds them."""

BEFORE_OTHERS = 1e6
"""Priority bonus of calls made inside a running function, so that started work ends first."""


def own_of(
    outer: Iterable[Permit], names: tuple[str, ...], costs: list[float] | None, wait: Wait
) -> Permit | None:
    """The permit that a request inside is for. One with a delay of its own, or with a cost that the permit
    did not take, is another request.
    """
    if wait.delay > 0:
        return None
    is_plain = costs is None and wait.cost == 1
    asked = dict(zip(names, [wait.cost] * len(names) if costs is None else costs, strict=True))
    for permit in reversed([*outer]):
        if set(permit.scopes) == set(names) and (is_plain or permit.charge.expected_of == asked):
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
            waiting.outer[0]._scheduler.cancel(self._alarm)
            self._alarm = None

    def free(self, scheduler: WatchedScheduler) -> None:
        """Time alone lets no request leave. If all in flight are functions that wait for requests inside of
        them, no other gives a slot back: theirs are.
        """
        held = [permit for permit in self._waits if not permit.is_settled]
        if not held or len(held) != len(scheduler.in_flight):
            return
        if not all(scheduler.is_for_slot(each) for each in scheduler.waiting.values() if each.outer):
            return
        functions = [permit for permit in held if permit not in self.asked]
        # An answer counts when its hooks have spoken, so these keep their slot.
        for each in [
            each for each in scheduler.waiting.values() if each.outer and each.outer[-1] in self.asked
        ]:
            scheduler.leave_in_vain(each, NestedError(each.target))
        if not functions:
            return
        scopes = ", ".join(sorted({name for permit in functions for name in permit.scopes}))
        what = (
            f"functions of run, map or wrap hold all slots that requests inside of them wait for ({scopes})"
        )
        scheduler.warn(
            "nested", f"{what}: their slots are given back; raise `concurrency` or `max_in_flight`"
        )
        for permit in functions:
            permit.end_block(None)

    def watch(self, scheduler: WatchedScheduler) -> None:
        """The same where other processes may give slots back: if no slot has moved for a while."""
        if self._alarm is not None or not self._waits:
            return
        before = (self._moves, frozenset(scheduler.in_flight))

        def look() -> None:
            self._alarm = None
            if before == (self._moves, frozenset(scheduler.in_flight)):
                self.free(scheduler)
            self.watch(scheduler)

        self._alarm = scheduler.alarm(LOOK, look)


LOOKS = 12
"""The look at which a warning says that no slot comes back: after two minutes."""
_REMEDY = "use `with` or `async with`, `run`, or `permit.settle(response)`"


class Unsettled:
    """Permits of one throttle that no block ends: those in no ``with``, and those of bodies that are read."""

    def __init__(self, scheduler: WatchedScheduler) -> None:
        self._scheduler = scheduler
        self._alarm: Alarm | None = None
        self.bodies: set[int] = set()
        """Requests that are over when their body is."""

    def watch(self) -> None:
        """Requests wait, and time alone lets none leave."""
        if self._alarm is None and not self._scheduler.is_quiet and self._held():
            self._look_later(1)

    def _held(self) -> bool:
        scheduler = self._scheduler
        return not scheduler.in_flight.isdisjoint(scheduler.by_hand) or not scheduler.in_flight.isdisjoint(
            self.bodies
        )

    def _look_later(self, looks: int) -> None:
        """Looks again later, and begins anew where a slot came back until then."""
        before = frozenset(self._scheduler.in_flight)

        def look() -> None:
            self._alarm = None
            scheduler = self._scheduler
            if not scheduler.waiting or not scheduler.waits_for_slots or not self._held():
                return
            if before != scheduler.in_flight:
                self._look_later(1)
            elif looks < LOOKS:
                self._look_later(looks + 1)
            else:
                many = [each for each in scheduler.waiting.values() if scheduler.is_for_slot(each)]
                scopes = ", ".join(sorted({name for each in many for name in each.scopes})[:3])
                what = f"no slot of {scopes} came back for 2 minutes, and {len(many)} requests wait"
                scheduler.warn("unsettled", f"{what}: {_REMEDY}, and read bodies to their end")

        self._alarm = self._scheduler.alarm(LOOK, look)


def _never(many: int) -> str:
    return "1 permit was not settled" if many == 1 else f"{many} permits were not settled"


IN_A_ROW = 20
"""After this many of them it is a function that makes them."""
SERVING = 100
"""After this many requests a warning names hosts that none met: a server is never closed."""


class Tally:
    """The sends of one throttle."""

    __slots__ = ("scope", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self.scope: str | None = None

    def count(self, scope: str) -> bool:
        """One more; true where it is time to look for hosts that none met."""
        if self.sent == 0:
            self.scope = scope
        self.sent += 1
        return self.sent == SERVING


class Row:
    """The throttle that was made last, and those before it that are like it."""

    def __init__(self) -> None:
        self._last = Tally()
        self._scope: str | None = None
        self._count = 0

    def made(self, tally: Tally, warn: Callable[[str, str], None]) -> None:
        """Another throttle was made."""
        last, self._last = self._last, tally
        is_like = last.scope == self._scope
        self._scope = last.scope
        self._count = 0 if last.sent != 1 else self._count + 1 if is_like else 1
        if self._count == IN_A_ROW:
            problem = f"{IN_A_ROW} throttles in a row sent one request each to {last.scope}"
            warn("no-effect", f"{problem}, and none knows of the others: make one, outside of the function")


ROW = Row()


class Budgets:
    """The routes of one throttle's requests, as far as the engine wants to know them."""

    def __init__(self, scheduler: WatchedScheduler) -> None:
        self._scheduler = scheduler
        self.are_there = False
        """Whether the answers of a scope named several budgets."""

    def split(self, scope: str) -> None:
        """Answers of a scope name several budgets: what waits goes to that of its route."""
        self.are_there = True
        now = self._scheduler.clock.now()
        for waiting in list(self._scheduler.waiting.values()):
            if waiting.scopes == (scope,):
                self.route(now, waiting.ticket, waiting.target)

    def route(self, now: int, ticket: int, target: object, has_fields: bool = False) -> None:
        """Tells the engine the route of a request, where it wants that. One that is for a scope alone has
        none."""
        if self._scheduler.engine.wants_route(ticket, has_fields):
            url = target if isinstance(target, str) else getattr(target, "url", None)
            if url is not None:
                method = getattr(target, "method", None)
                self._scheduler.engine.route(
                    now, ticket, method if isinstance(method, str) else "GET", str(url)
                )


class Following:
    """Between a scheduler and its group."""

    def __init__(self, scheduler: WatchedScheduler, event_loop: EventLoop) -> None:
        self._scheduler = scheduler
        self._event_loop = event_loop
        self._host: SharedHost | None = None
        self._leaving: Leaving | None = None

    def open(self, shared: Shared, options: Mapping[str, Any]) -> SharedHost:
        """The host in place of the engine."""
        self._host = shared.open_host(options, self._event_loop)
        self._host.listen(self)
        return self._host

    def changed(self) -> None:
        """There may be a grant for a request, or news to tell."""
        scheduler = self._scheduler
        with scheduler.lock:
            scheduler.notices.received()
            if scheduler.waiting:
                scheduler.drain()

    def refuse(self, ticket: int, error: BaseException) -> None:
        """The process that decides does not take it."""
        scheduler = self._scheduler
        with scheduler.lock:
            waiting = scheduler.waiting.get(ticket)
            if waiting is not None:
                scheduler.forget(waiting)
                scheduler.fail(waiting, typed_refusal(error))
                scheduler.rest()

    def shared_warning(self, code: str, message: str) -> None:
        """Something about the group."""
        self._scheduler.warn(code, message)

    def moved(self) -> None:
        """Another decides, others are in the group, or the way to them is another."""
        scheduler = self._scheduler
        with scheduler.lock:
            stats = Stats.of(scheduler.engine.stats(scheduler.clock.now()))
        if stats.shared is not None:
            scheduler.events.emit(SharedEvent("shared", stats.shared))

    def leave(self) -> Leaving | None:
        """Leaves the group; gives what is still to be said there. Where the loop is over, so is its group."""
        with self._scheduler.lock:
            if self._host is not None and self._leaving is None and self._event_loop.is_running:
                self._leaving = self._host.leave()
                self._event_loop.close()
            return self._leaving


def typed_refusal(error: BaseException) -> BaseException:
    """A refusal of the engine's with the names of settings that were typed."""
    if isinstance(error, CostExceedsQuotaError):
        return CostExceedsQuotaError(error.scope, None if error.path is None else python_path(error.path))
    if isinstance(error, QueueFullError):
        error.args = ("as many requests wait as max_waiting allows",)
    return error


_MOST_S = 1.0
"""The seconds that a fork waits for a throttle."""

_schedulers: WeakSet[WatchedScheduler] = WeakSet()
_locked: list[Any] = []
_is_registered = False


def survive(scheduler: WatchedScheduler) -> None:
    """Lets this one work in processes that are forked from here on, and speak when the program ends."""
    global _is_registered
    _schedulers.add(scheduler)
    if not _is_registered:
        _is_registered = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


def _at_exit() -> None:
    for scheduler in tuple(_schedulers):
        scheduler.warn_unused_names()
        many = len(scheduler.by_hand & scheduler.in_flight) + len(scheduler.lost)
        if many and scheduler.closed is None:
            scheduler.warn("permit-lost", f"the program ends, and {_never(many)}: {_REMEDY}", about="the end")


def _before() -> None:
    locks: list[Any] = [
        scheduler.lock for scheduler in tuple(_schedulers) if hasattr(scheduler.lock, "acquire")
    ]
    _locked[:] = [lock for lock in locks if lock.acquire(timeout=_MOST_S)]


def _in_parent() -> None:
    while _locked:
        _locked.pop().release()


def _in_child() -> None:
    _locked.clear()
    for scheduler in tuple(_schedulers):
        scheduler.forked()


def abandon(scheduler: WatchedScheduler) -> None:
    """Ends what waits and what was sent: a fork left those behind who did."""
    now = scheduler.clock.now()
    waiting, sent = tuple(scheduler.waiting), tuple(scheduler.in_flight)
    scheduler.waiting.clear()
    scheduler.in_flight.clear()
    scheduler.by_hand.clear()
    scheduler.lost.clear()
    scheduler.alarms = Alarms()
    scheduler.is_draining = False
    for ticket in waiting:
        scheduler.engine.cancel(now, ticket)
    for ticket in sent:
        scheduler.engine.settle(now, ticket)

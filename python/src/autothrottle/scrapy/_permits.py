"""Where requests wait: the engine, the clock, and the one timer; and a slot as Scrapy has it.

The way: a request is submitted and gets a ticket → poll → what the engine names leaves → it is settled →
poll. No decision is made here. Both ways in end in `drain`, for what changed may let a request leave.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later
from twisted.internet.defer import Deferred

from .._clock import SystemClock
from .._permit import report_sent
from ..errors import ScopeDownError, SnapshotError
from ._departures import CONNECTED, CONNECTING, Departures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy import Request

    from .._clock import Clock, Timer
    from .._native import Engine
    from .._records import ScopeStats
    from .._state import Settled

logger = logging.getLogger("autothrottle.scrapy")


class ReactorClock(SystemClock):
    """The system's clocks, and Scrapy's timers with whatever reactor or loop it runs."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return call_later(seconds, callback)


class PermitQueue:
    def __init__(self, engine: Engine, clock: Clock, report: Callable[[Any], object]) -> None:
        self.engine = engine
        self.clock = clock
        self._report = report
        self._waiting: dict[int, Deferred[int | None]] = {}
        self._scopes: dict[int, Sequence[int]] = {}
        """Of those that wait."""
        self._timer: Timer | None = None
        self._wake = 0
        self._departures = Departures(engine, clock)
        self.flying = 0

    @property
    def waiting(self) -> int:
        """Requests that were submitted and not sent."""
        return len(self._waiting)

    def submit(
        self, scopes: Sequence[int], costs: list[float] | None, priority: float, delay: int
    ) -> tuple[int, Deferred[int | None] | None]:
        """A ticket, and what to wait for: ``None`` if it may leave now. That gives when it was let go, or
        ``None`` if it may not leave any more.
        """
        now = self.clock.now()
        self._departures.look(now)
        cost: float | list[float] = 1 if costs is None else costs
        if not self._waiting and not delay:
            at_once = self.engine.send_at_once(now, scopes, cost=cost, priority=priority)
            if at_once is not None:
                self.flying += 1
                return at_once, None
        ticket = self.engine.submit(now, scopes, cost=cost, priority=priority, delay=delay)
        gate: Deferred[int | None] = Deferred()
        self._waiting[ticket] = gate
        self._scopes[ticket] = scopes
        self.drain()
        return ticket, gate if ticket in self._waiting else None

    def report_sent(self, ticket: int, at: int) -> None:
        """A request that was let go at `at` is on its way only now."""
        report_sent(self.engine, self.clock.now, ticket, at)

    def departs(self, ticket: int, slot: Slot) -> None:
        """A request is given to Scrapy's handler; its bytes leave once the reactor is free."""
        self._departures.add(ticket, CONNECTED if slot.was_answered else CONNECTING)

    def settle(self, ticket: int, report: dict[str, Any]) -> Settled:
        """A request that was sent ended."""
        self.flying -= 1
        self._departures.remove(ticket)
        settled = self.engine.settle(self.clock.now(), ticket, **report)
        self._pass_on()
        self.drain()
        return settled

    def _pass_on(self) -> None:
        """Takes the engine's notices. Requests that wait for a scope that is down are not taken."""
        if not self.engine.has_notices:
            return
        for notice in self.engine.take_notices():
            self._report(notice)
            if notice.kind != "down" or notice.span is None:
                continue
            scope, error = self.engine.find(notice.scope), ScopeDownError(notice.scope, notice.span / 1e9)
            for ticket in [ticket for ticket in self._waiting if scope in self._scopes[ticket]]:
                self.engine.cancel(self.clock.now(), ticket)
                self.fail(ticket, error)

    def drain(self) -> None:
        """Lets go of all that may leave, and sets the timer for the next."""
        if not self._waiting:
            return
        now = self.clock.now()
        self._departures.look(now)
        decision = self.engine.poll(now)
        self._arm(decision.wake, now)
        gates = [self._take(ticket) for ticket in decision.send]
        self.flying += len(gates)
        for gate in gates:
            gate.callback(now)

    def changed(self) -> None:
        """Of a limit that processes share: another one granted a request, or told something."""
        self._pass_on()
        self.drain()

    def _take(self, ticket: int) -> Deferred[int | None]:
        self._scopes.pop(ticket, None)
        return self._waiting.pop(ticket)

    def fail(self, ticket: int, error: BaseException) -> None:
        """It is not taken: its caller hears why."""
        if ticket in self._waiting:
            self._take(ticket).errback(error)

    def cancel(self, ticket: int) -> None:
        """Its caller waits no longer."""
        if ticket in self._waiting:
            self._take(ticket)
        else:
            self.flying -= 1
            self._departures.remove(ticket)
        self.engine.cancel(self.clock.now(), ticket)
        self.drain()

    def stop(self) -> None:
        """No waiting request will leave: the spider closes."""
        now = self.clock.now()
        waiting, self._waiting = self._waiting, {}
        self._scopes.clear()
        for ticket, gate in waiting.items():
            self.engine.cancel(now, ticket)
            gate.callback(None)
        self.drain()

    def close(self) -> None:
        """Lets go of the timers."""
        self._departures.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, wake: int | None, now: int) -> None:
        if self._timer is not None:
            # One that fires earlier only asks earlier, which does no harm.
            if wake is not None and self._wake <= wake:
                return
            self._timer.cancel()
            self._timer = None
        if wake is not None:
            self._wake = wake
            self._timer = self.clock.call_later(max(wake - now, 0) / 1e9, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self.drain()


class Slot:
    """The parts of Scrapy's download slots that others read: the scheduler's queue, extensions, spiders.

    Requests of the same scopes share one. Its ``delay`` and ``concurrency`` are the engine's, and setting
    them configures the scope, as programs written for Scrapy do. The engine's handles are given back with it.
    """

    def __init__(self, permits: PermitQueue, names: Sequence[str], make: Callable[[str], int]) -> None:
        self._permits = permits
        self.names = tuple(names)
        self.handles = [make(name) for name in names]
        self.scopes = dict(zip(self.names, self.handles, strict=True))
        self.active: set[Request] = set()
        self.transferring: set[Request] = set()
        self.was_answered = False
        # For code that prints a slot: no request waits in it, and no timer is its own.
        self.queue: deque[Any] = deque()
        self.lastseen = 0.0
        self.latercall = None

    def stats(self) -> list[ScopeStats]:
        """The engine's view of each scope."""
        now = self._permits.clock.now()
        return [self._permits.engine.scope_stats(now, handle) for handle in self.handles]

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
        now = self._permits.clock.now()
        for handle in self.handles:
            self._permits.engine.configure(now, handle, options)
        self._permits.drain()

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        return f"<Slot {names}: {len(self.active)} active, {len(self.transferring)} transferring>"


_SNAPSHOT = "throttling.json"


def restore(permits: PermitQueue, jobdir: str) -> bool:
    """Goes on where the job was; False if there is no state to go on with."""
    path = Path(jobdir, _SNAPSHOT)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    try:
        permits.engine.restore(json.loads(text), permits.clock.now(), permits.clock.wall())
    except (ValueError, RecursionError, SnapshotError) as error:
        logger.warning("%s is no snapshot, so all paces are learned anew: %s", path, error)
        return False
    return True


def save(permits: PermitQueue, jobdir: str) -> None:
    """Keeps what was learned. The file is replaced as a whole, so that none is cut short."""
    path = Path(jobdir, _SNAPSHOT)
    snapshot = permits.engine.snapshot(permits.clock.now(), permits.clock.wall())
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(snapshot), encoding="utf-8")
    os.replace(new, path)

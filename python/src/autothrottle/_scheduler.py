"""Where requests come in and where they go when they are over, for tasks and for threads.

1. ``request``: scopes → names → handles → the engine. Where no request waits and no limit keeps it, a permit
   comes back at once; else a ``Waiting`` for a task or a thread.
2. The permit goes out; its request is sent.
3. ``end``: the outcome is converted first, then the engine gets it. Managers and listeners learn what that
   changed, and last the engine is asked again for those who wait.

The engine decides. This keeps who waits, the one instant at which to ask again, and who gives up when.

An outcome that makes no sense gives its slots back before its error is raised. One drain runs at a time: a
listener may submit. Only listeners that are there cost work. A permit that is collected as garbage is put on
a list, for that may happen in the middle of a call of the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ._clock import NANOS, Alarm, Alarms, Clock, nanos
from ._convert import Converted, convert_scope, make_engine
from ._draining import Draining
from ._events import CancelEvent, Events, Notices, RequestEvent, SettleEvent
from ._managers import Handles, ManagedScopes
from ._native import Engine
from ._outcome import GIVEN_UP, NOTHING, Outcome, engine_words, is_status
from ._permit import Charge, Permit, Verdict, Wait, Waiting, permits_around
from ._scopes import Scopes, named_scopes, unmet
from ._watch import (
    BEFORE_OTHERS,
    Budgets,
    Following,
    Nested,
    Tally,
    Unsettled,
    own_of,
    survive,
    typed_refusal,
)
from .errors import (
    ClosedError,
    ConfigError,
    CostExceedsQuotaError,
    QueueFullError,
    ThrottleTimeoutError,
)

if TYPE_CHECKING:
    from ._shared.transport import EventLoop, Leaving
    from .redis import Shared


P = ParamSpec("P")
T = TypeVar("T")


def locked(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """One thread at a time: the engine knows of none."""

    @wraps(method)
    def call(scheduler: Scheduler, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with scheduler.lock:
            return method(scheduler, *args, **kwargs)

    return call


class Scheduler(Draining):
    """The part of a throttle that has no idea of tasks and threads."""

    def __init_subclass__(cls, *, is_single: bool = False) -> None:
        """``is_single``: one thread alone calls it, which needs no lock."""
        for name, method in vars(Scheduler).items():
            if is_single and hasattr(method, "__wrapped__"):
                setattr(cls, name, method.__wrapped__)

    def __init__(
        self, made: Converted, clock: Clock, managed: ManagedScopes | None, shared: Shared | None = None
    ) -> None:
        self.clock = clock
        self.lock = self.new_lock()
        self.following: Following | None = None
        if shared is None:
            self.engine: Engine = make_engine(made)
        else:
            self.following = Following(self, self.new_event_loop())
            self.engine = make_engine(made, partial(self.following.open, shared))
        self.events = Events()
        self.events.has_lines = made.driver.get("warnings") is not False
        self.in_flight: set[int] = set()
        self.by_hand: set[int] = set()
        self.is_forked = False
        self.is_quiet = False
        """Whether a timer that only watches would do harm."""
        self.entering = 0
        self.enders: set[Callable[[BaseException], None]] = set()
        """End the waits for hooks that name scopes."""
        self.waiting: dict[int, Waiting] = {}
        hook = made.driver.get("get_scopes")
        places = {} if hook else {"hints": made.driver_checked, "scopes": made.engine}
        self.typed = {name: place for place, of in places.items() for name in of.get(place) or ()}
        """Names in ``scopes`` and ``hints``, which are of hosts, and where each stands."""
        self.tally = Tally()
        self.header_maps: Mapping[str, Any] = made.driver_checked.get("hints") or {}
        is_debug = bool(made.driver.get("debug"))
        self.budgets = Budgets(self)
        self.notices = Notices(
            self.engine,
            clock,
            self.events,
            managed is not None,
            is_debug,
            self.fail_all,
            self.budgets.split,
        )
        self.events.changed = self._watch
        self._warn_threshold = self.engine.warn_threshold
        self._taken = 0  # Requests that were taken in: the last one's `id`.
        self.unsettled = Unsettled(self)
        self.nested = Nested()
        self._handles = Handles(self.engine, clock, managed)
        self.lost: deque[tuple[int, tuple[str, ...]]] = deque()
        self.alarms = Alarms()
        self._wake: int | None = None
        self.is_draining = False
        self._is_stale = False
        survive(self)

    # The methods that tasks and threads implement each in its way.

    def new_lock(self) -> AbstractContextManager[Any]:
        """One at a time."""
        return nullcontext()

    def new_event_loop(self) -> EventLoop:
        """When things of a group of processes happen."""
        raise NotImplementedError

    def new_waiting(self, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge) -> Waiting:
        """A request is about to wait."""
        return Waiting(ticket, scopes, target, charge)

    def asking(self) -> AbstractContextManager[None]:
        """A hook is asked for the scopes of a request in here."""
        return nullcontext()

    def arm(self, at: int | None) -> None:
        """Calls ``drain`` at this instant, and at no other."""

    def submitted(self) -> None:
        """A request was taken in."""
        self.drain()

    def rest(self) -> None:
        """Everything that could be sent was. One that is closed leaves its group when all is over."""
        if self.closed is not None and self.is_idle:
            self.leave()

    def forked(self) -> None:
        """This is the copy of a process that was forked."""
        self.is_forked = True

    # In and out.

    @locked
    def request(self, scopes: Scopes, target: object, wait: Wait) -> Permit | Waiting:
        """A permit for one request: at once where no limit stands in the way."""
        self.check_open(wait)
        if self.lost or self.is_forked:
            self.collect()
        costs = handles = None
        if type(scopes) is str:
            handle, names = self._handles.one(scopes)
            handles = [handle]
        else:
            names, costs = named_scopes(scopes)
        outer = permits_around(self)
        if outer:
            asked = self.nested.asked
            own = own_of((each for each in outer if each not in asked), names, costs, wait)
            if own is not None:
                return own.give(target)
            wait = wait._replace(priority=wait.priority + BEFORE_OTHERS)
        if handles is None:
            handles = list(map(self._handles.of, names))
        cost = wait.cost if costs is None else costs
        charge = Charge(names, cost)
        now = self.clock.now()
        try:
            if not self.waiting and wait.delay == 0 and not self.is_draining:
                sent = self.engine.send_at_once(now, handles, cost=cost, priority=wait.priority)
                if sent is not None:
                    self._taken = charge.id = self._taken + 1
                    if self.events.queued:
                        self._emit_queued(charge, names, target, now)
                    return self._permit(sent, names, target, now, charge)
            if wait.max_wait is not None:
                self._refuse_hopeless(wait, handles, cost, now)
            ticket = self.engine.submit(now, handles, cost=cost, priority=wait.priority, delay=wait.delay)
            self.budgets.route(now, ticket, target)
        except (CostExceedsQuotaError, QueueFullError) as error:
            raise typed_refusal(error) from None
        self._taken = charge.id = self._taken + 1
        waiting = self._add(ticket, names, target, wait, charge)
        if outer:
            self.nested.begin(waiting, outer)
        if self.events.queued:
            self._emit_queued(charge, names, target, now)
        self.submitted()
        if len(self.waiting) >= self._warn_threshold:
            many = f"{len(self.waiting)} requests wait, each with its task in memory: use throttle.map"
            self.warn("many-waiting", many)
        return waiting

    @locked
    def end(
        self, permit: Permit, outcome: Outcome, wait: Wait | None = None, replayable: bool = True
    ) -> Verdict:
        """Where every request ends. Its permit was taken. With ``wait`` it may be sent again."""
        now = self.clock.now()
        names, ticket = permit.scopes, permit._ticket
        self.in_flight.discard(ticket)
        self.by_hand.discard(ticket)
        failure: Exception | None = None
        status: int | None = None
        latency: int | None = None
        has_headers = outcome.headers is not None
        has_word = outcome.status is not None or outcome.error is not None or outcome is GIVEN_UP
        is_silent = not has_word and _is_url(permit.target)
        is_news = has_headers or is_silent
        try:
            if has_headers or self.budgets.are_there:
                self.budgets.route(now, ticket, permit.target, has_headers)
            if outcome is NOTHING or outcome is GIVEN_UP:
                settled = self.engine.settle(now, ticket, silent=is_silent)
            else:
                costs = {} if outcome.cost is None else permit.charge.checked(outcome.cost)
                latency = now - permit.charge.sent
                what, more = engine_words(outcome, names, latency, self.clock, self.header_maps, self.handle)
                if costs or more:
                    permit.charge.adjust(self, now, {**costs, **more})
                status, latency = what.get("status"), what.get("latency")
                is_wanted = wait is not None and self.closed is None and bool(permit.charge.left)
                settled = self.engine.settle(
                    now, ticket, silent=is_silent, retry=is_wanted, replayable=replayable, **what
                )
        except Exception as error:
            failure = error
            # The status counts, even if other fields of the outcome are invalid.
            is_slip = isinstance(error, (TypeError, ValueError)) and is_status(outcome.status)
            settled = self.engine.settle(now, ticket, status=outcome.status if is_slip else None)
        verdict: Verdict = settled.outcome
        waiting: Waiting | None = None
        if verdict == "again" and wait is not None and permit.charge.left:
            permit.charge.left -= 1
            verdict = waiting = self._add(ticket, names, permit.target, wait, permit.charge)
            outer = permits_around(self)
            if outer:
                self.nested.begin(waiting, outer)
        permit.asked = settled.asked
        for observe in self.events.ends:
            observe(names[0], status, outcome.error)
        if self.events.settle:
            took = None if latency is None else latency / NANOS
            event = SettleEvent(
                "settle", permit.charge.id, permit.target, names, now / NANOS, status, outcome.error, took
            )
            self.events.emit(event)
        try:
            self.notices.after_answer(status, outcome.error, latency, self._handles.answered, is_news)
        except Exception as error:
            failure = failure or error
        if waiting is not None and failure is not None:
            self.give_up(waiting, failure)
        elif self.waiting:
            self.drain()
        else:
            self.notices.at_rest(now)
            self.rest()
        if failure is not None:
            raise failure
        return verdict

    @locked
    def adjust(self, permit: Permit, cost: float | Mapping[str, float]) -> None:
        """Corrects the cost of a request. It may have been settled."""
        permit.charge.adjust(self, self.clock.now(), permit.charge.checked(cost))
        self.drain()

    @locked
    def give_up(self, waiting: Waiting, error: BaseException) -> None:
        """The caller no longer wants it: its place, or what it was just given, goes back."""
        now = self.clock.now()
        permit, waiting.permit = waiting.permit, None
        if permit is not None:
            if not permit.take():
                return
            self.in_flight.discard(waiting.ticket)
        elif not self.forget(waiting):
            return
        self.engine.cancel(now, waiting.ticket)
        self.cancelled(waiting, error)
        self.drain()

    @locked
    def give_back(self, permit: Permit) -> None:
        """It was never sent."""
        if permit.take():
            self.in_flight.discard(permit._ticket)
            self.by_hand.discard(permit._ticket)
            self.engine.cancel(self.clock.now(), permit._ticket)
            self.drain()

    @locked
    def fail_all(self, error: BaseException, scope: str | None = None) -> None:
        """Fails all waiting requests, or those of one scope. All have left before one asks again."""
        now = self.clock.now()
        failed = [each for each in self.waiting.values() if scope is None or scope in each.scopes]
        for waiting in failed:
            self.forget(waiting)
            self.engine.cancel(now, waiting.ticket)
        self.drain()
        for waiting in failed:
            self.fail(waiting, error)

    def fail(self, waiting: Waiting, error: BaseException) -> None:
        """It never will leave."""
        waiting.error = error
        self.cancelled(waiting, error)
        waiting.wake()

    def cancelled(self, waiting: Waiting, error: BaseException) -> None:
        """It waits no longer, and was never sent."""
        if self.events.cancel:
            number, names, now = waiting.charge.id, waiting.scopes, self.clock.now() / NANOS
            self.events.emit(CancelEvent("cancel", number, waiting.target, names, now, error))

    @locked
    def warn_unused_names(self) -> None:
        """Names in ``scopes`` and ``hints`` that no request met, where one met a host that may be meant."""
        if self.typed and self.closed is None:
            met = self.engine.stats(self.clock.now()).scopes
            for name, sent in unmet(self.typed, met) if len(met) < 1000 else ():
                problem = f'{self.typed[name]}["{name}"] has no effect: requests go to "{sent}"'
                self.warn("no-effect", problem, name)

    @locked
    def close(self, reason: BaseException | None = None) -> None:
        """Fails what waits, and each new request. Requests in flight may end."""
        if self.closed is None:
            self.closed = ClosedError()
            self.closed.__cause__ = reason
            self.fail_all(self.closed)
            for end in tuple(self.enders):
                end(self.closed)
            self.rest()

    @property
    def is_idle(self) -> bool:
        """Whether no request waits or is in flight."""
        return not self.waiting and not self.in_flight and self.entering == 0

    # Asking.

    @locked
    def drain(self) -> None:
        """Asks until there is no more to send and no more give up, then sleeps until there may be."""
        self._is_stale = True
        if self.is_draining:
            return
        self.is_draining = True
        now = 0
        try:
            while self._is_stale:
                self._is_stale = False
                now = self.clock.now()
                decision = self.engine.poll(now)
                for ticket in decision.send:
                    waiting = self.waiting.pop(ticket, None)
                    if waiting is None:  # struck by a listener in this very loop
                        self.engine.cancel(now, ticket)
                        self._is_stale = True
                        continue
                    if waiting.alarm is not None or waiting.outer:
                        self._let_go(waiting)
                    try:
                        waiting.permit = self._permit(
                            ticket, waiting.scopes, waiting.target, now, waiting.charge
                        )
                    except Exception as error:
                        waiting.error = error
                    waiting.wake()
                self._wake = decision.wake
                # A request that may leave at the instant at which it gives up leaves.
                while (call := self.alarms.take_due(now)) is not None:
                    self._is_stale = True
                    call()
        finally:
            self.is_draining = False
        if self._wake is None and self.waiting:
            self.unsettled.watch()
            if self.following is None:
                self.nested.free(self)
            else:
                self.nested.watch(self)
        self.arm(self._next())
        self.notices.at_rest(now)
        self.rest()

    @locked
    def alarm(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Calls after that many seconds, unless it is cancelled."""
        alarm = self.alarms.add(self.clock.now() + nanos("timeout", seconds), call)
        if not self.is_draining:
            self.arm(self._next())
        return alarm

    @locked
    def cancel(self, alarm: Alarm) -> None:
        """Strikes it out."""
        self.alarms.strike(alarm)

    @property
    def waits_for_slots(self) -> bool:
        """Whether time alone lets no request leave, and none is paused."""
        return self._wake is None and any(map(self.is_for_slot, self.waiting.values()))

    def is_for_slot(self, waiting: Waiting) -> bool:
        """Whether it waits for a slot, and for no time that is known."""
        handles = [self.engine.find(name) for name in waiting.scopes]
        reason = self.engine.peek(self.clock.now(), handles, cost=waiting.charge.expected).reason
        return reason in ("concurrency", "max-in-flight")

    def leave(self) -> Leaving | None:
        """Leaves those that share the limit; gives what is still to be said there."""
        return None if self.following is None else self.following.leave()

    # Scopes.

    @locked
    def handle(self, name: str) -> int:
        """The handle of a scope, made if it has to be."""
        return self._handles.of(name)

    @locked
    def change(self, name: str, call: Callable[[int, int], Any]) -> Any:
        """Changes a scope, and asks for those who wait."""
        result = call(self.clock.now(), self.handle(name))
        self.drain()
        return result

    @locked
    def configure(self, name: str, partial: Mapping[str, Any], is_ours: bool = False) -> None:
        """Changes settings of a scope and keeps what was learned. No notice names what is ours."""
        made = convert_scope(partial)
        if made.problems:
            raise ConfigError(made.problems)
        if is_ours:
            made.engine["\u00a0made"] = True
            # Of a group's scopes only the writer knows which there are: there they stay.
            if self.following is None:
                made.engine["\u00a0passing"] = True
        for key, note in made.notes:
            self.warn("suspicious-unit", note, name, f"{key} of {name}")
        is_known = self.engine.find(name) is not None
        try:
            self.engine.configure(self.clock.now(), self.handle(name), made.engine)
        except ConfigError as error:
            raise made.translate(error) from None
        # No request waits for a new one, and to ask would let others of the same call go.
        if is_known or not is_ours:
            self.drain()

    def warn(self, code: str, message: str, scope: str | None = None, about: str | None = None) -> None:
        """Tells a warning, once for each code and scope, or what else it is ``about``."""
        self.events.once(code, message, scope, about)

    def lose(self, ticket: int, scopes: tuple[str, ...]) -> None:
        """A permit that no code can settle any more. Any thread may call this, at any time."""
        self.lost.append((ticket, scopes))

    # Inside.

    @locked
    def _watch(self) -> None:
        self.notices.watch()

    def collect(self) -> None:
        """Handles late news: slots of permits that were collected as garbage come back; this is a fork."""
        if self.is_forked:
            if self.following is not None:
                raise RuntimeError(
                    "a throttle with shared=… cannot be used after a fork: make it in each process"
                )
            self.is_forked = False
            what = "this throttle was made before a fork: each process has a limit of its own now"
            self.warn("forked", f"{what}. For one limit give each process shared=…")
        while self.lost:
            ticket, scopes = self.lost.popleft()
            self.in_flight.discard(ticket)
            self.by_hand.discard(ticket)
            self.engine.settle(self.clock.now(), ticket)
            what = f"a permit for {', '.join(scopes)} was collected as garbage before it was settled"
            self.warn("permit-lost", f"{what}: use `with`, or `run`", scopes[0])
        self.drain()

    def _next(self) -> int | None:
        at = self.alarms.next()
        if at is None or self._wake is None:
            return self._wake if at is None else at
        return min(at, self._wake)

    def _add(
        self, ticket: int, scopes: tuple[str, ...], target: object, wait: Wait, charge: Charge
    ) -> Waiting:
        self.waiting[ticket] = waiting = self.new_waiting(ticket, scopes, target, charge)
        max_wait = wait.max_wait
        if max_wait is not None:
            left = max(0.0, wait.left(self.clock.now()) or 0)
            late = ThrottleTimeoutError(max_wait)
            waiting.alarm = self.alarm(left, lambda: self.leave_in_vain(waiting, late))
        for observe in self.events.waits:
            observe(waiting)
        return waiting

    def forget(self, waiting: Waiting) -> bool:
        """It waits no longer; the caller tells the engine."""
        if self.waiting.pop(waiting.ticket, None) is None:
            return False
        self._let_go(waiting)
        return True

    def _let_go(self, waiting: Waiting) -> None:
        """Its alarm rings no more, and the functions around it have one less."""
        if waiting.alarm is not None:
            self.cancel(waiting.alarm)
        if waiting.outer:
            self.nested.end(waiting)

    def leave_in_vain(self, waiting: Waiting, error: BaseException) -> None:
        """It waits no longer, and was never sent."""
        if self.forget(waiting):
            self.engine.cancel(self.clock.now(), waiting.ticket)
            self.fail(waiting, error)

    def _refuse_hopeless(self, wait: Wait, handles: list[int], cost: float | list[float], now: int) -> None:
        """A wait that a hold makes longer than its ``max_wait`` is known to be in vain."""
        seen = self.engine.peek(now, handles, cost=cost)
        held = 0 if seen.at is None else seen.at - now
        left = wait.left(now) or 0
        if seen.reason == "hold" and held > left * NANOS:
            raise ThrottleTimeoutError(wait.max_wait or 0, False, held / NANOS)

    def _emit_queued(self, charge: Charge, names: tuple[str, ...], target: object, now: int) -> None:
        self.events.emit(RequestEvent("queued", charge.id, target, names, now / NANOS))

    def _permit(
        self, ticket: int, names: tuple[str, ...], target: object, now: int, charge: Charge
    ) -> Permit:
        """The permit of a ticket that the engine let go."""
        if self._handles.is_managed:
            try:
                self._is_stale |= self._handles.sent(names, now)
            except Exception:
                self.engine.settle(now, ticket)
                self._is_stale = True
                raise
        self.in_flight.add(ticket)
        charge.start_attempt(now)
        permit = Permit(self, ticket, names, target, charge)
        if self.tally.count(names[0]):
            self.warn_unused_names()
        if self.events.send:
            self.events.emit(RequestEvent("send", charge.id, target, names, now / NANOS))
        return permit


def _is_url(target: object) -> bool:
    """Whether a request goes to a server, as far as its target says."""
    url = target if isinstance(target, str) else getattr(target, "url", "")
    return "://" in str(url)

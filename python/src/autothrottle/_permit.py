"""Permission to send one request: what it costs, who waits for it, when its request is on its way.

A permit holds a slot in every scope of its request until it is settled. ``with`` settles it at the end of
the block, and one that is collected as garbage is given back.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from ._clock import NANOS, Alarm, Clock
from ._hooks import Backoffs, SomeHints
from ._native import Engine
from ._outcome import NOTHING, Outcome, answer_in, checked_costs, fields_of, outcome_of_error
from ._records import SettledKind
from .errors import ClosedError

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Wait(NamedTuple):
    """How a request waits."""

    priority: float = 0
    cost: float = 1
    delay: int = 0
    max_wait: float | None = None
    is_taken: bool = False
    """Whether it belongs to what was taken in before: a retry, a hop of a redirect."""
    since: int | None = None
    """When it came in, where a part of its ``max_wait`` may be over."""

    def left(self, now: int) -> float | None:
        """The rest of its ``max_wait``."""
        if self.max_wait is None or self.since is None:
            return self.max_wait
        return self.max_wait - (now - self.since) / NANOS

    def again(self, start: int) -> Wait:
        """How the next attempt waits of what came in then."""
        return self._replace(delay=0, is_taken=True, since=start)


class Waiting:
    """A request that waits. Its caller hears by ``wake``."""

    __slots__ = ("alarm", "charge", "error", "outer", "permit", "scopes", "target", "ticket")

    def __init__(self, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge) -> None:
        self.ticket = ticket
        self.scopes = scopes
        self.target = target
        self.charge = charge
        self.alarm: Alarm | None = None
        self.permit: Permit | None = None
        self.outer: Sequence[Permit] = ()
        self.error: BaseException | None = None

    def wake(self) -> None:
        """It has a permit or an error now."""

    def take(self) -> Permit:
        """The permit, once; or raises the error."""
        permit, self.permit = self.permit, None
        if permit is not None:
            return permit
        # One error for all who wait: each raises its own, so that tracebacks do not grow.
        if type(self.error) is ClosedError:
            raise ClosedError() from self.error.__cause__
        raise cast("BaseException", self.error)


Verdict: TypeAlias = Waiting | SettledKind
"""The end of a request, or what its next attempt waits for."""


class PermitOwner(Protocol):
    """The scheduler, as far as permits know it."""

    clock: Clock
    engine: Engine
    lock: AbstractContextManager[Any]
    by_hand: set[int]
    """The tickets of permits that are in no ``with`` block."""

    def cancel(self, alarm: Alarm) -> None: ...
    def adjust(self, permit: Permit, cost: float | Mapping[str, float]) -> None: ...
    def end(
        self, permit: Permit, outcome: Outcome, wait: Wait | None = None, replayable: bool = True
    ) -> Verdict: ...
    def handle(self, name: str) -> int: ...
    def lose(self, ticket: int, scopes: tuple[str, ...]) -> None: ...


_UNEVEN = "cost: want a mapping of scope to cost, for the scopes of this request have different ones"


class Charge:
    """The charge of a request, in each of its scopes. All of its permits share it."""

    __slots__ = ("_corrected", "_cost", "_names", "id", "left", "sent")

    def __init__(self, names: Sequence[str], cost: float | Sequence[float]) -> None:
        self._names = names
        self._cost = cost
        self.id = 0
        """The number of its request in events."""
        self.sent = 0
        self.left: int | None = None
        """How often it may be sent again, or its function called again; unknown before that is asked."""
        self._corrected: dict[str, float] | None = None

    @property
    def expected(self) -> float | Sequence[float]:
        """The cost that it takes in each scope."""
        return self._cost

    @property
    def expected_of(self) -> dict[str, float]:
        """The same by scope."""
        return self._expected

    @property
    def _expected(self) -> dict[str, float]:
        costs = self._cost if isinstance(self._cost, Sequence) else [self._cost] * len(self._names)
        return dict(zip(self._names, costs, strict=True))

    @property
    def _costs(self) -> dict[str, float]:
        """The cost so far. A request that is not corrected makes no mapping."""
        return self._expected if self._corrected is None else self._corrected

    def start_attempt(self, now: int) -> None:
        """An attempt leaves: it costs what was expected."""
        self.sent = now
        self._corrected = None

    def checked(self, cost: float | Mapping[str, float]) -> dict[str, float]:
        """A cost by scope; raises for what is none."""
        names = list(self._names)
        if isinstance(cost, Mapping):
            return checked_costs(cost, names)
        if len(set(self._expected.values())) > 1:
            raise TypeError(_UNEVEN)
        return checked_costs(dict.fromkeys(names, cost), names)

    def adjust(self, scheduler: PermitOwner, now: int, costs: Mapping[str, float]) -> None:
        """The engine takes or gives back the difference."""
        before = self._costs
        for name, cost in costs.items():
            charged = before[name]
            # A scope that the engine has forgotten owes no wait.
            if cost != charged and scheduler.engine.find(name) is not None:
                scheduler.engine.adjust(now, scheduler.handle(name), self.sent, charged, cost)
        self._corrected = {**before, **costs}


class Permit:
    """Made by ``throttle.acquire``, and given to functions of ``run``, ``map`` and ``wrap`` with a parameter
    ``permit``.
    """

    __slots__ = (
        "_is_settled",
        "_scheduler",
        "_ticket",
        "again",
        "asked",
        "blocks",
        "charge",
        "heir",
        "scopes",
        "target",
        "verdict",
    )

    def __init__(
        self, scheduler: PermitOwner, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge
    ) -> None:
        self._scheduler = scheduler
        self._ticket = ticket
        self.charge = charge  # The charge, and the time since when it counts.
        self._is_settled = False
        self.again: Wait | None = None  # How it waits for another attempt, if there may be one.
        self.verdict: Verdict | None = None  # The verdict at the end.
        self.asked: int | None = None  # The wait that the server asked for.
        self.heir: Permit | None = None  # The next permit of its request. (Itself would be a cycle.)
        self.blocks = 0  # Blocks that run.
        self.scopes = scopes
        """The scopes that agreed."""
        self.target = target
        """The URL that the permit is for, or the object that you passed."""

    @property
    def sent_at(self) -> float:
        """When the request could leave, in seconds of the throttle's clock."""
        return self.charge.sent / NANOS

    @property
    def is_settled(self) -> bool:
        """Whether it was settled."""
        return self._is_settled

    def settle(
        self,
        response: object = None,
        *,
        status: int | None = None,
        headers: object = None,
        error: BaseException | None = None,
        hints: SomeHints | None = None,
        latency: float | timedelta | None = None,
        backoff: bool | None = None,
        scopes: Backoffs | None = None,
        cost: float | Mapping[str, float] | None = None,
        adjust_delay: bool = True,
    ) -> None:
        """Gives the slots back and says how the request ended. Only the first call counts.

        ``response`` is that of any client; ``status`` and ``headers`` say the same without one.

        * ``error``: why there was no response. If it carries one (``error.response``), that counts. A
          cancelled task changes no pace.
        * ``hints``: what was not in headers; they take the place of ``headers``.
        * ``latency``: seconds from send to response headers. Default: until now, if there was a response.
        * ``backoff``: whether the answer is bad, if you know better than the status and
          ``backoff.status_codes``.
        * ``scopes``: those that this makes back off, if not all or none of them.
        * ``cost``: what the request really cost, if that is not what was expected: a number, or a mapping of
          scope to cost.
        * ``adjust_delay``: ``False`` keeps AutoThrottle's delay as it is.

        Raises ``TypeError``, ``ValueError`` or ``ManagerError`` for what makes no sense; the slots come back
        all the same.
        """
        if self._is_settled:
            return
        if response is not None and status is None:
            answer = answer_in(response)
            if answer is None:
                self.report(NOTHING)
                raise TypeError(f"settle: want a response with a status; got {response!r:.60}")
            status, headers = answer.status, answer.headers if headers is None else headers
        slip = None
        typed: object = error
        if typed is not None and not isinstance(typed, BaseException):
            slip, error = f"error: want an exception; got {typed!r:.60}", None
        if headers is not None:
            typed, headers = headers, fields_of(headers)
            if headers is None:
                slip = f"headers: want a mapping, or names and values; got {typed!r:.60}"
        self.report(Outcome(status, headers, error, hints, latency, backoff, scopes, cost, adjust_delay))
        if slip is not None:
            raise TypeError(slip)

    def adjust(self, cost: float | Mapping[str, float]) -> None:
        """Corrects the cost of the request, as often as you like, also after it was settled.

        A mapping of scope to cost, or a number where all of its scopes had one cost. If it is more than was
        taken, later requests wait for the rest; if it is less, the rest comes back. Raises ``TypeError`` or
        ``ValueError`` for what is no cost.
        """
        self._scheduler.adjust(self, cost)

    def end(self, outcome: Outcome, is_over: bool = True) -> None:
        """Tells how it ended, once. Its function ``is_over``: one that runs holds slots that another attempt
        would wait for.
        """
        if self.take():
            self.verdict = self._scheduler.end(self, outcome, self.again, is_over)

    def report(self, outcome: Outcome) -> None:
        """The same while its function runs."""
        self.end(outcome, False)

    def give(self, target: object) -> Permit:
        """The same permit for who sends its request; this one is settled."""
        self._is_settled = True
        permit = Permit(self._scheduler, self._ticket, self.scopes, target, self.charge)
        permit.again = self.again
        self.heir = permit
        permit.started()
        return permit

    def take(self) -> bool:
        """Marks it as settled; ``False`` if it was."""
        if self._is_settled:
            return False
        self._is_settled = True
        return True

    def started(self) -> None:
        """Its request is on its way only now."""
        scheduler = self._scheduler
        now = scheduler.clock.now()
        if now - self.charge.sent < LATE:
            return
        with scheduler.lock:
            if not self._is_settled and is_told(scheduler.engine):
                scheduler.engine.sent_at(now, self._ticket)
                self.charge.sent = now

    def end_block(self, error: BaseException | None) -> None:
        """The end of the block that it was taken for."""
        self.end(NOTHING if error is None else outcome_of_error(error))

    def __enter__(self) -> Self:
        self._scheduler.by_hand.discard(self._ticket)
        enter_block(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        exit_block(self)
        self.end_block(error)

    def __del__(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._scheduler.lose(self._ticket, self.scopes)

    def __repr__(self) -> str:
        state = "settled" if self._is_settled else "open"
        return f"<Permit for {', '.join(self.scopes)}: {state}>"


_NONE: tuple[Permit, ...] = ()
_around: ContextVar[Permit | tuple[Permit, ...]] = ContextVar("autothrottle_around", default=_NONE)
"""One permit as it is, for each tuple is work for Python's garbage collection."""


@contextmanager
def around(permit: Permit) -> Iterator[None]:
    """A request in here is part of this permit."""
    enter_block(permit)
    try:
        yield
    finally:
        exit_block(permit)


def enter_block(permit: Permit) -> None:
    """The block of a permit begins. A task that a block started forgets it where it is over: a function that
    starts the next one before it ends, and so on without end, would keep all that were before it.
    """
    permit.blocks += 1
    around = _around.get()
    outer = tuple(each for each in _all(around) if each.blocks > 0) if around else _NONE
    _around.set((*outer, permit) if outer else permit)


def exit_block(permit: Permit) -> None:
    """The block of a permit ends."""
    permit.blocks -= 1
    around = _around.get()
    kept = () if around is permit else tuple(each for each in _all(around) if each is not permit)
    _around.set(kept)


def granted_by_hand(permit: Permit) -> Permit:
    """A permit that is in no block."""
    if not permit.is_settled:
        permit._scheduler.by_hand.add(permit._ticket)
    return permit


def _all(around: Permit | tuple[Permit, ...]) -> tuple[Permit, ...]:
    return around if isinstance(around, tuple) else (around,)


def permits_around(scheduler: PermitOwner) -> list[Permit]:
    """Those of this throttle that hold slots around what runs now."""
    around = _around.get()
    if not around:
        return []
    return [each for each in _all(around) if each._scheduler is scheduler and not each.is_settled]


def is_inside(scheduler: object) -> bool:
    """Whether what runs now is a function or a block that a permit of this throttle was for."""
    around = _around.get()
    return bool(around) and any(each._scheduler is scheduler for each in _all(around))


LATE = 500_000
"""How late after its permit a request may begin without a report, in nanoseconds."""


def report_sent(engine: Engine, clock: Callable[[], int], ticket: int, at: int) -> int:
    """When a request that was let go at ``at`` really left. The driver tells the engine if that is later.

    It does so also where no request waits: the first of some tasks is on its way before the second asks. With
    a shared limit it tells only where a request waits.
    """
    now = clock()
    if now - at < LATE or not is_told(engine):
        return at
    engine.sent_at(now, ticket)
    return now


def is_told(engine: Engine) -> bool:
    """Whether an engine is to know when a request really left."""
    return getattr(engine, "is_awaited", True)


class Started(Coroutine[Any, Any, T]):
    """An awaitable with the same result; ``then`` is called once it waits for something.

    Not a function that awaits: a task that is cancelled before it begins would never have awaited the other.
    """

    __slots__ = ("_then", "_work")

    def __init__(self, work: Awaitable[T], then: Callable[[], object]) -> None:
        self._work: Coroutine[Any, Any, T] = work if inspect.iscoroutine(work) else _awaited(work)
        self._then: Callable[[], object] | None = then

    def send(self, value: Any) -> Any:
        """Goes on until it waits again."""
        awaited = self._work.send(value)
        then, self._then = self._then, None
        if then is not None:
            then()
        return awaited

    def throw(self, *error: Any) -> Any:
        """Goes on with an error."""
        return self._work.throw(*error)

    def close(self) -> None:
        """Ends it."""
        self._work.close()

    def __getattr__(self, name: str) -> Any:
        """In what state it is, and what its name: anyio looks at the coroutine of a task."""
        return getattr(self._work, name)

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)


async def _awaited(work: Awaitable[T]) -> T:
    return await work

"""The budgets of one model and key, as scopes of the throttle.

Rust keeps the accounts (``crates/llm``). It says which pace each scope has and what each call costs from now
on; this carries it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from .._base import BaseThrottle
from .._native import LlmBudgets, LlmPlan
from .._permit import Permit
from ._answer import Body, ReportedLimit
from ._request import Asked, Kind, Vendor


class LlmLimit(TypedDict, total=False):
    """Limits of a model, as its owner says them. A limit that is left out is learned from the headers."""

    rpm: float
    """Requests a minute."""
    rpd: float
    """Requests a day."""
    tpm: float
    """Tokens a minute, input and output together."""
    itpm: float
    """Input tokens a minute."""
    otpm: float
    """Output tokens a minute."""
    sliding: bool
    """Whether no span of the window's length may hold more, in place of an even refill. Default: Azure's."""
    cached: str
    """Whether input that comes from the vendor's cache is charged: ``"free"`` (Anthropic) or ``"counted"``.
    """


NUMBERS = ("rpm", "rpd", "tpm", "itpm", "otpm")


@dataclass(frozen=True)
class Plan:
    """The expected size of a call: of each scope, and as Rust has it."""

    scopes: dict[str, float]
    made: LlmPlan


@dataclass(eq=False)
class Call:
    """A call that is on its way."""

    id: int
    asked: Asked
    permit: Permit


class OwnScope:
    """A scope that the product configures by itself. Callers hold the throttle's lock."""

    def __init__(self, throttle: BaseThrottle, name: str) -> None:
        self._scheduler, self._name = throttle._scheduler, name
        self._settings: dict[str, Any] = {}
        self._handle: int | None = None

    def configure(self, **changed: Any) -> None:
        """Changes settings."""
        self._settings |= changed
        if "rate" in changed:
            # The engine sets a delay aside for a rate that comes later, and takes no two at once.
            self._settings.pop("delay", None)
        self._scheduler.configure(self._name, changed if self._is_kept() else self._settings, is_ours=True)
        self._handle = self._scheduler.handle(self._name)

    def keep(self) -> None:
        """It stays until the request that is put together has it. One that is forgotten is made anew."""
        if not self._is_kept():
            self.configure()

    def _is_kept(self) -> bool:
        return self._handle is not None and self._scheduler.engine.keep_alive(self._handle)


@dataclass(frozen=True)
class BudgetOptions:
    """How budgets are kept."""

    headroom: float
    is_max: bool | None
    """Reserve what may come out at most, not what usually does. ``None``: as the vendor charges."""
    is_counted: bool
    """A counter of the user's is exact: no ratio is learned."""
    concurrency: int


class Budgets:
    """Those of one model and key. Callers hold the throttle's lock."""

    def __init__(
        self,
        throttle: BaseThrottle,
        name: str,
        vendor: Vendor | None,
        limit: Mapping[str, Any],
        options: BudgetOptions,
    ) -> None:
        self._throttle, self._name = throttle, name
        rpm, rpd, tpm, itpm, otpm = (limit.get(key) or 0 for key in NUMBERS)
        cached = limit.get("cached")
        self._its = LlmBudgets(
            vendor,
            (rpm, rpd, tpm, itpm, otpm),
            limit.get("sliding"),
            None if cached is None else cached == "free",
            options.headroom,
            options.is_max,
            options.is_counted,
            options.concurrency,
        )
        self._scopes: dict[str, OwnScope] = {}
        self._calls: dict[int, Call] = {}
        self._first = self._its.kinds[0]
        self._carry()

    @property
    def is_known(self) -> bool:
        """Whether limits are known: typed, or named by an answer."""
        return self._its.is_known

    @property
    def is_cached_free(self) -> bool:
        """Whether input from the vendor's cache is free."""
        return self._its.is_cached_free

    @property
    def needs_usage(self) -> bool:
        """Whether true usage counts: the vendor charges it, and a limit of tokens is known."""
        return self._its.needs_usage

    def scope(self, kind: str | None = None) -> str:
        """Its name; of the first one by default."""
        return f"{self._name}#{kind or self._first}"

    def configure(self, **changed: Any) -> None:
        """Changes settings of its first scope."""
        self._scopes[self._first].configure(**changed)

    def plan(self, asked: Asked) -> Plan:
        """The cost of a call in each scope, as far as it is known."""
        for scope in self._scopes.values():
            scope.keep()
        made = self._its.plan(asked.characters, asked.size, asked.tokens, asked.bound)
        return Plan({self.scope(kind): cost for kind, cost in made.costs}, made)

    def begin(self, asked: Asked, permit: Permit, plan: Plan) -> Call:
        """The call leaves."""
        call = Call(self._its.begin(self._throttle.now(), plan.made), asked, permit)
        self._calls[call.id] = call
        self._carry()
        return call

    def wrote(self, call: Call, taken: float | None, written: float) -> None:
        """More was written: what is beyond the estimate is charged as the vendor charges it, at once."""
        if self._its.wrote(call.id, taken, written):
            self._carry()

    def on_limits(self, call: Call, limits: Sequence[ReportedLimit], wait: float | None = None) -> None:
        """The headers of an answer: limits, and what is left of them."""
        for kind, limit, left, per in limits:
            self._its.report(self._throttle.now(), call.id, kind, limit, left, per, wait)
        self._carry()

    def answered(self, call: Call, is_stream: bool) -> None:
        """A good answer came: others need not wait for it to tell limits."""
        self._its.answered(call.id, is_stream)
        self._carry()

    def gone(self, call: Call, was_sent: bool) -> None:
        """No answer will come. It keeps what it was to take, unless the server never had it."""
        self._its.gone(call.id, was_sent)
        self._over(call)

    def refused(self, call: Call, kind: Kind | None = None, wait: float | None = None) -> None:
        """It was not run: no token was spent. ``wait``: until it would have room in the budget."""
        self._its.refused(self._throttle.now(), call.id, kind, wait or 0)
        self._over(call)

    def ended(self, call: Call, body: Body, is_whole: bool) -> bool:
        """The body is over. Returns whether what it took had to be estimated."""
        used = (body.input, body.free, body.output, body.written)
        is_estimated = self._its.ended(self._throttle.now(), call.id, *used, is_whole)
        self._over(call)
        return is_estimated

    def _over(self, call: Call) -> None:
        self._carry()
        self._calls.pop(call.id, None)

    def _carry(self) -> None:
        """Does what is due after a verb."""
        for kind, slots, rate, windows in self._its.changes():
            self._change(kind, int(slots), rate, windows)
        now = self._throttle.now()
        waits = [(kind, self._wait(kind, cost, now)) for kind, cost in self._its.asks()]
        costs: dict[int, dict[str, float]] = {}
        for id_, kind, cost in self._its.carry(now, waits):
            costs.setdefault(id_, {})[self.scope(kind)] = cost
        for id_, cost_of in costs.items():
            permit = self._calls[id_].permit
            # A refund is of the latest charge, so an older level of the bucket does not limit it.
            permit.charge.sent = self._throttle._clock.now()
            permit.adjust(cost_of)

    def _wait(self, kind: str, cost: float, now: float) -> float:
        """The time until an amount could leave; NaN where another limit hides it."""
        seen = self._throttle.peek(scopes=self.scope(kind), cost=cost)
        return math.nan if seen.at is None or seen.reason not in (None, "rate") else seen.at - now

    def _change(
        self,
        kind: str,
        slots: int,
        rate: tuple[float, float, float] | None,
        windows: Sequence[tuple[float, float]],
    ) -> None:
        scope = self._scopes.get(kind)
        is_new = scope is None
        if scope is None:
            scope = self._scopes[kind] = OwnScope(self._throttle, self.scope(kind))
            scope.configure(delay=0, concurrency=slots)
        if rate is not None:
            limit, window, burst = rate
            scope.configure(rate={"limit": limit, "window": window, "burst": burst}, concurrency=slots)
        elif windows:
            quota = [{"limit": limit, "window": window, "strict": True} for limit, window in windows]
            scope.configure(quota=quota, concurrency=slots)
        elif not is_new:
            scope.configure(concurrency=slots)

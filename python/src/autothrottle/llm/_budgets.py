"""The budgets of one model and key: what a call is charged before it leaves, and what is corrected after.

Each budget is a scope with a rate. Two accounts are kept of it: what the vendor has charged by now, and what
open calls are still going to use. The scope holds the difference, so a call leaves only when
``level - reserved`` has room for it.

A reservation refills while its call is open, so the level never stands above the whole minus all
reservations. A ``remaining`` of a call that took a minute may be as old as the call: a correction is made
only by what is wrong at both ends of it. Other clients may have the same key. Vendors that charge
``max_tokens`` whatever comes out give back no token by usage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from .._base import BaseThrottle
from .._permit import Permit
from ._answer import DAY, MINUTE, Body, ReportedLimit
from ._request import Asked, Kind, Rules


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


NUMBERS: dict[str, tuple[Kind, float]] = {
    "rpm": ("requests", MINUTE),
    "rpd": ("day", DAY),
    "tpm": ("tokens", MINUTE),
    "itpm": ("input", MINUTE),
    "otpm": ("output", MINUTE),
}
# Answers after which a ratio counts, and how fast it follows.
_ENOUGH, _SHARE = 3, 0.2
# Seconds by which the ways of two calls may differ; calls of one moment may overtake each other.
_SKEW, _MOMENT = 0.15, 0.1
# Tokens a second of a model that did not write yet, and tokens of an answer before one was seen.
_USUAL_SPEED, _USUAL_OUTPUT = 50.0, 1000.0
# An answer that is not streamed is charged by its time, a quarter too fast.
_AHEAD = 1.25
_COUNTS = ("requests", "day")
# After a refusal the margin comes back at this share of the pace; the rest is for calls.
_RETURN = 0.5
# From the refusal on, what refills in this multiple of the wait that the server asked for is untouched.
_PATIENCE = 2


@dataclass
class _Budget:
    """One budget in force."""

    limit: float
    per: float
    capacity: float
    """Of the limit, without the headroom."""
    burst: int
    """The most of it at once."""
    is_own: bool
    """Its bucket is smaller than the vendor's: what is left of theirs never gives back."""
    is_sliding: bool
    margin: float
    """How much of the vendor's bucket stays untouched: more after a refusal, slowly less after answers."""
    is_calm: bool = True
    """No refusal spoke of it yet."""
    refused_at: float = -math.inf
    """When the last refusal spoke of it,"""
    base: float = 0
    """and how much stayed untouched from then."""


@dataclass(frozen=True)
class Plan:
    """The expected size of a call: of each scope, and in tokens."""

    scopes: dict[str, float]
    input: float
    output: float


@dataclass(eq=False)
class Call:
    """A call that is on its way."""

    asked: Asked
    permit: Permit
    sent_at: float
    input: float
    """Tokens that the vendor has charged, as far as we know."""
    output: float
    charged: dict[Kind, float] = field(default_factory=dict)
    """Charged by now, without corrections."""
    corrected: dict[Kind, float] = field(default_factory=dict)
    levels: dict[Kind, float] = field(default_factory=dict)
    """The vendor's level at the time that the call left."""
    mates: dict[Kind, float] = field(default_factory=dict)
    """The charges of calls of the same moment: the vendor may have had them before it, or after."""
    written: float = 0
    is_stream: bool = False


@dataclass
class _Ratio:
    """Usage ÷ estimate of calls of one size, and how far both are off."""

    value: float = 1
    count: int = 0
    plain_error: float = 0
    error: float = 0


def _follow(old: float, now: float, count: int) -> float:
    return old + (now - old) * max(_SHARE, 1 / (count + 1))


def _size_of(asked: Asked) -> int:
    """Calls of similar size: within a factor of four."""
    return math.floor(math.log2(asked.size + 1) / 2)


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
    is_max: bool
    is_counted: bool
    """A counter of the user's is exact: no ratio is learned."""
    concurrency: int


class Budgets:
    """Those of one model and key. Callers hold the throttle's lock."""

    def __init__(
        self,
        throttle: BaseThrottle,
        name: str,
        rules: Rules,
        limit: Mapping[str, Any],
        options: BudgetOptions,
    ) -> None:
        self._throttle, self._name, self._rules, self._options = throttle, name, rules, options
        cached = limit.get("cached")
        self.is_cached_free = rules.is_cached_free if cached is None else cached == "free"
        self._is_even = not limit.get("sliding", rules.is_sliding)
        self._typed: dict[Kind, tuple[float, float]] = {
            kind: (limit[key], per) for key, (kind, per) in NUMBERS.items() if limit.get(key) is not None
        }
        self.is_known = len(self._typed) > 0
        """Whether limits are known: typed, or told by an answer."""
        self._is_open = self.is_known
        self._budgets: dict[Kind, _Budget] = {}
        self._scopes: dict[Kind, OwnScope] = {}
        self._calls: dict[Call, None] = {}
        self._ratios: dict[int, _Ratio] = {}
        self._output, self._outputs, self._speed = _USUAL_OUTPUT, 0, _USUAL_SPEED
        self._uncached = 1.0  # The share of input that is charged; the rest comes from the vendor's cache.
        self._kinds = list(dict.fromkeys((*rules.kinds, *self._typed)))
        for kind in self._kinds:
            slots = 1 if kind == "requests" and not self.is_known else options.concurrency
            self._configure(kind, delay=0, concurrency=slots)
            if kind in self._typed:
                self._set(kind, *self._typed[kind], is_typed=True)

    @property
    def needs_usage(self) -> bool:
        """Whether true usage counts: the vendor charges it, and a limit of tokens is known."""
        return self._rules.is_actual and any(kind not in _COUNTS for kind in self._budgets)

    def scope(self, kind: Kind) -> str:
        """Its name."""
        return f"{self._name}#{kind}"

    def _configure(self, kind: Kind, **changed: Any) -> None:
        if kind not in self._scopes:
            self._scopes[kind] = OwnScope(self._throttle, self.scope(kind))
        self._scopes[kind].configure(**changed)

    def plan(self, asked: Asked) -> Plan:
        """The cost of a call in each scope, as far as it is known."""
        for kind in self._kinds:
            self._scopes[kind].keep()
        ratio, doubt = self._ratio_of(asked)
        taken = math.ceil(self._estimate(asked) * ratio + asked.tokens)
        # A margin for errors of the estimate is reserved too, and comes back with the answer.
        padded = math.ceil(taken * (1 + 2 * doubt))
        usual = (asked.bound or 0) if self._options.is_max else math.ceil(self._output)
        output = usual if asked.bound is None else min(usual, asked.bound)
        scopes = {}
        for kind in self._kinds:
            cost, budget = self._cost(kind, padded, output), self._budgets.get(kind)
            # Where true usage counts, one that is larger than all waits for all, and owes the rest.
            if budget is not None and (self._rules.is_actual or cost <= budget.limit):
                cost = min(cost, budget.burst)
            scopes[self.scope(kind)] = cost
        return Plan(scopes, taken, output)

    def _cost(self, kind: Kind, taken: float, output: float) -> float:
        if kind == "input":
            return taken
        if kind == "output":
            return output
        if kind in _COUNTS:
            return 1
        return max(taken, output) if self._rules.is_larger else taken + output

    def begin(self, asked: Asked, permit: Permit, plan: Plan) -> Call:
        """The call leaves."""
        now = self._throttle.now()
        call = Call(asked, permit, now, plan.input, plan.output)
        for each in list(self._calls):
            if not each.is_stream:
                self.wrote(each, each.input, _AHEAD * self._written_so_far(each))
        self._calls[call] = None
        for kind in self._kinds:
            call.charged[kind] = plan.scopes[self.scope(kind)]
        # It had to have room for all of its input, and is charged what is usually not from the cache.
        if self._uncached < 0.98:
            call.input = plan.input * self._uncached
            kinds: tuple[Kind, ...] = ("input", "tokens")
            for kind in kinds:
                cost = self._cost(kind, call.input * 1.2, plan.output)
                if cost < call.charged.get(kind, 0):
                    self._charge(call, kind, cost)
        mates = [each for each in self._calls if each is not call and each.sent_at > now - _MOMENT]
        for kind in self._kinds:
            level = self._level(kind)
            if level is not None:
                call.levels[kind] = level
            for mate in mates:
                call.mates[kind] = call.mates.get(kind, 0) + mate.charged.get(kind, 0)
                mate.mates[kind] = mate.mates.get(kind, 0) + call.charged[kind]
        return call

    def wrote(self, call: Call, taken: float | None, written: float) -> None:
        """More was written: what is beyond the estimate is charged as the vendor charges it, at once."""
        if call.is_stream:
            call.written = max(call.written, written)
        if not self._rules.is_actual:
            return
        if taken is not None and taken != call.input:
            call.input = taken
            self._charge(call, "input", taken)
        kinds: tuple[Kind, ...] = ("output", "tokens")
        for kind in kinds:
            cost = self._cost(kind, call.input, written)
            # In steps, not with each word.
            if cost > call.charged.get(kind, 0) * 1.05 + 20:
                self._charge(call, kind, cost)

    def on_limits(self, call: Call, limits: Sequence[ReportedLimit], wait: float | None = None) -> None:
        """The headers of an answer: limits, and what is left of them."""
        for kind, limit, left, per in limits:
            if kind not in self._kinds:
                continue
            typed = self._typed.get(kind)
            if typed is None or limit / per < typed[0] / typed[1] * 0.999:
                self._set(kind, limit, per, is_typed=False)
            budget = self._budgets.get(kind)
            if budget is None or left is None:
                continue
            if wait is not None and left < call.charged[kind]:
                self._step(kind, budget, call, wait)
            if not budget.is_sliding:
                self._correct(call, kind, budget, left)
        self.is_known = self.is_known or len(limits) > 0

    def open(self) -> None:
        """An answer came: others need not wait for it to tell limits."""
        if not self._is_open:
            self._is_open = True
            self._configure("requests", concurrency=self._options.concurrency)

    def gone(self, call: Call) -> None:
        """No answer will come; what it was to take stays charged."""
        self._calls.pop(call, None)

    def refused(self, call: Call, kind: Kind | None = None, wait: float | None = None) -> None:
        """It was not run: no token was spent. ``wait``: until it would have room in the budget."""
        self._calls.pop(call, None)
        budget = None if kind is None else self._budgets.get(kind)
        if budget is not None and kind is not None and kind not in _COUNTS:
            self._step(kind, budget, call, wait or 0)
            room = call.charged.get(kind, 0) - (wait or 0) * budget.limit / budget.per
            self._correct(call, kind, budget, room)
        for each in self._kinds:
            if each not in _COUNTS:
                self._charge(call, each, 0)

    def _step(self, kind: Kind, budget: _Budget, call: Call, wait: float) -> None:
        """The vendor had no room: more of its bucket stays untouched. Refusals of one flight are one step."""
        if kind in _COUNTS:
            return
        is_same = call.sent_at <= budget.refused_at
        budget.base = max(budget.base if is_same else 0, _PATIENCE * wait * budget.limit / budget.per)
        if is_same:
            return
        budget.is_calm = False
        budget.margin = min(budget.limit / 2, budget.margin + budget.limit / 10)
        budget.refused_at = self._throttle.now()

    def _untouched(self, budget: _Budget) -> float:
        """The amount that stays untouched now. All of it at once would be silence for longer than the server
        asked."""
        back = (self._throttle.now() - budget.refused_at) * budget.limit * _RETURN / budget.per
        return min(budget.margin, max(self._margin_of(budget.limit), budget.base) + back)

    def failed(self, call: Call) -> None:
        """The server never had it."""
        self._calls.pop(call, None)
        for kind in self._kinds:
            self._charge(call, kind, 0)

    def ended(self, call: Call, body: Body, is_whole: bool) -> bool:
        """The body is over. Returns whether what it took had to be estimated."""
        self._calls.pop(call, None)
        taken = call.input if body.input is None else body.input
        output = body.output
        if output is None:
            output = body.written if call.is_stream else call.output
        if body.input is not None:
            self._learn(call.asked, taken + body.free)
            if taken + body.free > 0:
                self._uncached += (taken / (taken + body.free) - self._uncached) * _SHARE
        if body.output is not None and is_whole:
            took = max(0.001, self._throttle.now() - call.sent_at)
            self._outputs += 1
            self._output = max(1, self._output + (output - self._output) / min(self._outputs, 50))
            if output > 20:
                self._speed = _follow(self._speed, output / took, self._outputs)
        if self._rules.is_actual:
            kinds: tuple[Kind, ...] = ("input", "output", "tokens")
            for kind in kinds:
                self._charge(call, kind, self._cost(kind, taken, output))
        for budget in self._budgets.values():
            less = budget.limit / (100 if budget.is_calm else 8000)
            budget.margin = max(self._margin_of(budget.limit), budget.margin - less)
        return call.asked.bound != 0 and body.output is None

    def _written_so_far(self, call: Call) -> float:
        written = (self._throttle.now() - call.sent_at) * self._speed
        return written if call.asked.bound is None else min(written, call.asked.bound)

    def _charge(self, call: Call, kind: Kind, cost: float) -> None:
        if kind not in call.charged:
            return
        call.charged[kind] = cost
        self._adjust(call, kind)
        self._clamp(call, kind)

    def _adjust(self, call: Call, kind: Kind) -> None:
        cost = call.charged.get(kind, 0) + call.corrected.get(kind, 0)
        # A refund is of the latest charge, so an older level of the bucket does not limit it.
        call.permit.charge.sent = self._throttle._clock.now()
        call.permit.adjust({self.scope(kind): max(0.0, cost)})

    def _take(self, call: Call, kind: Kind, more: float) -> None:
        """Takes so much more from a budget than the call costs; negative gives back."""
        call.corrected[kind] = call.corrected.get(kind, 0) + more
        self._adjust(call, kind)

    def _reserved(self, kind: Kind) -> float:
        """The tokens that a vendor has not charged yet, if it charges as it writes."""
        if not self._rules.is_actual or kind in _COUNTS:
            return 0
        total = 0.0
        for call in self._calls:
            written = call.written if call.is_stream else self._written_so_far(call)
            total += max(0.0, call.charged.get(kind, 0) - self._cost(kind, call.input, written))
        return total

    def _room(self, kind: Kind) -> float | None:
        """The amount in the scope's bucket; ``None`` where another limit hides it."""
        budget = self._budgets.get(kind)
        if budget is None or budget.is_sliding:
            return None
        seen = self._throttle.peek(scopes=self.scope(kind), cost=budget.burst)
        if seen.at is None or not math.isfinite(seen.at) or seen.reason not in (None, "rate"):
            return None
        return budget.burst - (seen.at - self._throttle.now()) * budget.capacity / budget.per

    def _level(self, kind: Kind) -> float | None:
        """The vendor's level by our own accounts, without the headroom."""
        room = self._room(kind)
        return None if room is None else room + self._reserved(kind)

    def _clamp(self, call: Call, kind: Kind) -> None:
        """The vendor's bucket does not rise above the whole while a call is only reserved."""
        reserved = self._reserved(kind)
        room = self._room(kind) if reserved > 0 else None
        over = 0 if room is None else room + reserved - self._budgets[kind].capacity
        if over > 1:
            self._take(call, kind, over)

    def _correct(self, call: Call, kind: Kind, budget: _Budget, left: float) -> None:
        """Follows what the vendor says is left, by what is wrong both when the call left and now."""
        level = self._level(kind)
        before = call.levels.get(kind, level)
        if level is None or before is None:
            return
        is_count = kind in _COUNTS
        rounding = float(budget.is_own) if is_count else self._rules.rounding
        real = left - (float(not budget.is_own) if is_count else self._untouched(budget))
        over = min(level, before) - real - rounding
        under = real - max(level, before + call.mates.get(kind, 0)) - rounding
        if over > 0:
            self._take(call, kind, over)
        elif under > 0 and not budget.is_own:
            self._take(call, kind, -under)

    def _margin_of(self, limit: float) -> float:
        return max(limit * (1 - self._options.headroom), self._rules.rounding)

    def _set(self, kind: Kind, limit: float, per: float, *, is_typed: bool) -> None:
        before = self._budgets.get(kind)
        if before is not None and (before.limit, before.per) == (limit, per):
            return
        is_minute = kind == "requests" and per == MINUTE
        # Requests of a minute may be counted by the second: evenly spaced they need less headroom. Windows
        # that roll have no level that could drift.
        is_spread = is_minute and self._rules.is_spread
        is_sliding = not self._is_even or (kind == "day" and is_typed and not self._rules.is_even_day)
        less = (1 - self._options.headroom) / (4 if is_sliding else 2 if is_spread else 1)
        capacity = max(limit * (1 - less), min(1, limit))
        burst = max(1, math.floor(capacity / 60 if is_spread else capacity))
        # Other clients of the key show only in answers: the first flight does not take all that is left.
        known = (
            (limit / 4,)
            if before is None
            else (before.margin, before.is_calm, before.refused_at, before.base)
        )
        is_own = is_typed or is_spread
        self._budgets[kind] = _Budget(limit, per, capacity, burst, is_own, is_sliding, *known)
        # A pace that is typed anew has all slots, unless they are, too.
        slots = 1 if kind == "requests" and not self._is_open else self._options.concurrency
        if not is_sliding:
            rate = {"limit": capacity, "window": per, "burst": burst}
            self._configure(kind, rate=rate, concurrency=slots)
            return
        # A request that left a moment later may arrive a moment earlier.
        quota: list[Any] = [{"limit": burst, "window": per + _SKEW, "strict": True}]
        if is_minute:
            most = max(1, math.floor(limit / 6))
            quota.append({"limit": most, "window": per / 6 + _SKEW, "strict": True})
        self._configure(kind, quota=quota, concurrency=slots)

    def _estimate(self, asked: Asked) -> float:
        return (asked.characters if self._rules.is_by_characters else asked.size) / 4

    def _ratio_of(self, asked: Asked) -> tuple[float, float]:
        """The ratio for calls of this size, where it is better than none; and its error."""
        if self._options.is_counted or self._rules.is_by_characters:
            return 1, 0
        ratio = self._ratios.get(_size_of(asked))
        if ratio is None or ratio.count < _ENOUGH:
            return 1, 0.1
        return (ratio.value, ratio.error) if ratio.error < ratio.plain_error else (1, ratio.plain_error)

    def _learn(self, asked: Asked, taken: float) -> None:
        estimate, counted = self._estimate(asked), taken - asked.tokens
        if not (estimate > 0 and counted >= 0):
            return
        ratio = self._ratios.setdefault(_size_of(asked), _Ratio())

        def off(by: float) -> float:
            return abs(estimate * by - counted) / max(1, counted)

        ratio.plain_error = _follow(ratio.plain_error, off(1), ratio.count)
        ratio.error = _follow(ratio.error, off(ratio.value), ratio.count)
        ratio.value = _follow(ratio.value, min(3, max(0.5, counted / estimate)), ratio.count)
        ratio.count += 1

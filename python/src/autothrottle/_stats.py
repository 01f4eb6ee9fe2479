"""What a throttle says of its state: the engine's numbers in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ._clock import seconds
from ._native import Engine
from ._state import BudgetStats as EngineBudgetStats
from ._state import Peek as EnginePeek
from ._state import ScopeStats as EngineScopeStats
from ._state import SharedStats as EngineSharedStats
from ._state import Stats as EngineStats

T = TypeVar("T")

_TIMES = {"age", "backoff", "debt", "delay", "hold_until", "last_heard_at", "latency", "lead"}
_TIMES |= {"offline_since", "recovers_at", "round_trip"}
"""The fields that the engine has in nanoseconds."""


def _in_seconds(kind: type[T], stats: object, **made: Any) -> T:
    """The engine's fields by the same names, times in seconds; ``made`` stand as they are."""
    values = dict(made)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name not in made:
            value = getattr(stats, each.name)
            values[each.name] = seconds(value) if each.name in _TIMES and value is not None else value
    return kind(**values)


@dataclass(frozen=True, slots=True)
class BudgetStats:
    """One budget of a server's at one instant."""

    in_flight: int
    """Requests in flight that spend from it."""
    waiting: int
    """Requests that wait and will."""
    quota_left: float | None
    """What is left of it, in units, while that is known."""
    recovers_at: float | None
    """When it is there again, if it is used up; seconds of the throttle's clock."""

    @classmethod
    def of(cls, stats: EngineBudgetStats) -> BudgetStats:
        """The engine's numbers in seconds."""
        return _in_seconds(cls, stats)


@dataclass(frozen=True, slots=True)
class ScopeStats:
    """One scope at one instant. Times are seconds; instants are those of the throttle's clock."""

    delay: float
    """The delay before jitter: backoff's if that is longer. With AutoThrottle its own, beside backoff's."""
    backoff: float
    """The delay that backoff asks for; 0 without. The longer one counts."""
    backoff_step: int
    """Steps of backoff in force; 0 without."""
    slots: int
    """Slots allowed."""
    in_flight: int
    """Requests in flight."""
    waiting: int
    """Requests that wait."""
    hold_until: float | None
    """When the hold ends, if there is one."""
    quota_left: float | None
    """What is left of the scarcest quota, in units."""
    reason: str | None
    """Why the first waiting request waits."""
    paused: bool
    """Whether the scope is paused."""
    rate: float | None
    """Requests sent per second over the last minute; ``None`` before a minute is over."""
    concurrency: float
    """Requests in flight on average over the last minute."""
    bound_by: Mapping[str, float]
    """The share of the last minute in which each limit kept the first request waiting. ``elsewhere`` are
    limits of another scope and of the whole throttle.
    """
    without_effect: str | None
    """A setting that has had no effect for five minutes of waiting, and why."""
    latency: float | None = None
    """From send to response headers, on average over the last minute."""
    recovers_at: float | None = None
    """When a hold ends, a used-up quota is there again and backoff goes a step back: the last of them."""
    budgets: Mapping[str, BudgetStats] = field(default_factory=dict)
    """The budgets of its server by name, where answers name several: GitHub's resources."""

    @classmethod
    def of(cls, stats: EngineScopeStats) -> ScopeStats:
        """The engine's numbers in seconds."""
        budgets = {name: BudgetStats.of(budget) for name, budget in stats.budgets.items()}
        return _in_seconds(cls, stats, budgets=budgets)


@dataclass(frozen=True, slots=True)
class SharedStats:
    """A group of processes that share a limit, as this process sees it. Times are seconds."""

    writer: str | None
    """The process that decides, by a unique name; ``None`` before its first message."""
    is_writer: bool
    """Whether it is this process."""
    epoch: int
    """How many writers there were: it grows with each. 0 before the first message."""
    members: int | None
    """How many processes there are, as far as this one knows."""
    lead: float
    """How far ahead this writer decides, in seconds. Each slot is taken that much longer."""
    round_trip: float | None
    """From here to the writer and back, or to the slowest member and back."""
    last_heard_at: float | None
    """When the writer's last message came, by the throttle's clock; now in the writer itself."""
    offline_since: float | None
    """Since when the connection to the others is broken, by the same clock; ``None`` while it works."""
    debt: float
    """The time that the whole limit takes for what this process sent alone and the writer has not counted
    yet: at most the longest window of your limits, for what is older is free."""

    @classmethod
    def of(cls, stats: EngineSharedStats) -> SharedStats:
        """The same in seconds."""
        return _in_seconds(cls, stats)


@dataclass(frozen=True, slots=True)
class Stats:
    """A throttle at one instant."""

    waiting: int
    """Requests that wait."""
    in_flight: int
    """Requests in flight."""
    sent: int
    """Requests sent since the beginning."""
    settled: int
    """Requests settled since the beginning."""
    cancelled: int
    """Requests cancelled since the beginning."""
    paused: bool
    """Whether the whole throttle is paused."""
    scopes: Mapping[str, ScopeStats]
    """Every scope that the engine knows, by name."""
    age: float | None = None
    """How old these statistics of a shared limit are, in seconds. 0 in the process that decides; ``None`` for
    a throttle of one process, and before the first message."""
    shared: SharedStats | None = None
    """The group of a throttle that processes share."""

    @classmethod
    def of(cls, stats: EngineStats) -> Stats:
        """The engine's numbers in seconds."""
        scopes = {name: ScopeStats.of(scope) for name, scope in stats.scopes.items()}
        shared = None if stats.shared is None else SharedStats.of(stats.shared)
        return _in_seconds(cls, stats, scopes=scopes, shared=shared)


@dataclass(frozen=True, slots=True)
class Peek:
    """When a request could be sent as things stand."""

    at: float | None
    """Seconds of the throttle's clock; ``None`` if that depends on an answer or a ``resume``."""
    reason: str | None
    """Why it waits; ``None`` if it could leave now."""
    scope: str | None
    """The scope that keeps it; ``None`` for the whole throttle."""

    @classmethod
    def of(cls, peek: EnginePeek, engine: Engine) -> Peek:
        """The engine's answer in seconds."""
        scope = None if peek.scope is None else engine.name(peek.scope)
        return cls(None if peek.at is None else seconds(peek.at), peek.reason, scope)

"""The engine in the protocol's words: milliseconds, and objects as processes in JavaScript read them.

The trap is a wake-up that is a nanosecond too early, and again and again: the engine cuts instants to whole
microseconds, so one in milliseconds is read to the nearest nanosecond first, and spans are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .._native import Engine
from .._state import Notice, ScopeStats, Stats
from .messages import Told, known, numbers_in

_NS = 1_000_000
_LEVELS: tuple[Literal["nothing", "changes", "answers"], ...] = ("nothing", "changes", "answers")


def mark(ms: float) -> int:
    """An instant for the engine."""
    return max(0, round(ms * _NS))


def span(ms: float) -> int:
    """A span for the engine."""
    return max(0, math.ceil(ms * _NS))


def millis(ns: int) -> float:
    """An instant or a span of the engine's."""
    return ns / _NS


class MsEngine:
    """An engine that is asked in milliseconds."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def handle(self, name: str) -> int:
        """A handle that may be forgotten when its scope is idle."""
        return self.engine.intern(name)

    def handles(self, names: Sequence[str]) -> list[int]:
        """The same for several."""
        return [self.engine.intern(name) for name in names]

    def restore(self, snapshot: Mapping[str, object], now: float, wall: float) -> None:
        """Goes on where a snapshot was taken."""
        self.engine.restore(snapshot, mark(now), mark(wall))

    def snapshot(self, now: float, wall: float) -> dict[str, Any]:
        """What was learned."""
        return self.engine.snapshot(mark(now), mark(wall))

    def submit(self, now: float, names: Sequence[str], ask: Mapping[str, Any]) -> int:
        """A request that waits."""
        return self.engine.submit(
            mark(now),
            self.handles(names),
            cost=ask["cost"],
            priority=ask["priority"],
            delay=span(ask["delay"]),
            waited=span(ask["waited"]),
        )

    def adopt(self, now: float, names: Sequence[str], ago: float, ask: Mapping[str, Any]) -> int:
        """A request that left ``ago`` milliseconds ago."""
        return self.engine.adopt(
            mark(now),
            self.handles(names),
            span(ago),
            cost=ask.get("cost", 1),
            priority=ask.get("priority", 0),
            waited=span(ask.get("waited", 0)),
        )

    def poll(self, now: float) -> tuple[list[int], float | None]:
        """What may leave, and when to ask again."""
        decision = self.engine.poll(mark(now))
        return decision.send, None if decision.wake is None else millis(decision.wake)

    def left(self, now: float, ticket: int) -> None:
        """A request that was granted left only now."""
        self.engine.left(mark(now), ticket)

    def settle_told(self, now: float, ticket: int, told: Sequence[float | None]) -> str:
        """How a request ended, as another process read it."""
        return self.engine.settle_told(mark(now), ticket, numbers_in(told))

    def settle(self, now: float, ticket: int) -> None:
        """It ended, and nothing is known of it."""
        self.engine.settle(mark(now), ticket)

    def cancel(self, now: float, ticket: int) -> None:
        """It was never sent."""
        self.engine.cancel(mark(now), ticket)

    def configure(self, now: float, name: str, partial: Mapping[str, object]) -> None:
        """Changes settings of a scope, which is kept: what was set while it ran is not in the options."""
        self.engine.configure(mark(now), self.engine.scope(name), partial)

    def watch(self, level: int) -> None:
        """How much notices tell of answers."""
        self.engine.watch(_LEVELS[level])

    def take_notices(self) -> list[dict[str, Any]]:
        """What people should know, in the protocol's words."""
        return [_written(each) for each in self.engine.take_notices()] if self.engine.has_notices else []

    def stats(self, now: float) -> dict[str, Any]:
        """The state of everything, in the protocol's words."""
        stats = self.engine.stats(mark(now))
        return {
            "waiting": stats.waiting,
            "inFlight": stats.in_flight,
            "sent": stats.sent,
            "settled": stats.settled,
            "cancelled": stats.cancelled,
            "paused": stats.paused,
            "scopes": {name: _scope_written(scope) for name, scope in stats.scopes.items()},
        }


def digest(engine: Engine, outcome: Mapping[str, Any]) -> tuple[str, int | None, Told]:
    """What becomes of a request, what its server asked for, and what the engine that sent it is told."""
    settled, told = engine.digest(**outcome)
    return settled.outcome, settled.asked, known(told)


_SPANS = {"delay": "delayMs", "asked": "askedMs", "delay_before": "delayBeforeMs", "span": "forMs"}
_PLAIN = {
    "step": "step",
    "is_bad": "isBad",
    "in_flight": "inFlight",
    "setting": "setting",
    "path": "path",
    "why": "why",
}


def _written(notice: Notice) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": notice.kind, "scope": notice.scope}
    for field, key in _PLAIN.items():
        value = getattr(notice, field)
        if value is not None:
            out[key] = value
    for field, key in {**_SPANS, "hold_until": "holdUntil"}.items():
        value = getattr(notice, field)
        if value is not None:
            out[key] = millis(value)
    return out


def notice_read(notice: Mapping[str, Any], shift: float, latency: float | None) -> Notice:
    """A notice of another process's engine, whose clock is behind by ``shift`` milliseconds."""
    told: dict[str, Any] = {field: notice[key] for field, key in _PLAIN.items() if key in notice}
    for field, key in _SPANS.items():
        if notice.get(key) is not None:
            told[field] = span(notice[key])
    if notice.get("holdUntil") is not None:
        told["hold_until"] = mark(notice["holdUntil"] + shift)
    if notice["kind"] == "answer" and latency is not None:
        told["latency"] = span(latency)
    return Notice(notice["kind"], notice["scope"], **told)


def _scope_written(scope: ScopeStats) -> dict[str, Any]:
    out: dict[str, Any] = {
        "delayMs": millis(scope.delay),
        "backoffMs": millis(scope.backoff),
        "slots": scope.slots,
        "backoffStep": scope.backoff_step,
        "inFlight": scope.in_flight,
        "waiting": scope.waiting,
        "paused": scope.paused,
        "rate": scope.rate,
        "concurrency": scope.concurrency,
        "boundBy": scope.bound_by,
    }
    maybe = {
        "holdUntil": None if scope.hold_until is None else millis(scope.hold_until),
        "quotaLeft": scope.quota_left,
        "reason": scope.reason,
        "withoutEffect": scope.without_effect,
    }
    return out | {key: value for key, value in maybe.items() if value is not None}


def stats_read(stats: Mapping[str, Any], shift: float, age: float) -> Stats:
    """Statistics of another process's engine, as old as ``age`` milliseconds."""
    return Stats(
        waiting=stats["waiting"],
        in_flight=stats["inFlight"],
        sent=stats["sent"],
        settled=stats["settled"],
        cancelled=stats["cancelled"],
        paused=stats["paused"],
        scopes={name: scope_read(scope, shift) for name, scope in stats["scopes"].items()},
        age=span(age),
    )


def scope_read(scope: Mapping[str, Any], shift: float) -> ScopeStats:
    """One scope of another process's engine."""
    hold = scope.get("holdUntil")
    return ScopeStats(
        delay=span(scope["delayMs"]),
        backoff=span(scope["backoffMs"]),
        backoff_step=scope["backoffStep"],
        slots=scope["slots"],
        in_flight=scope["inFlight"],
        waiting=scope["waiting"],
        hold_until=None if hold is None else mark(hold + shift),
        quota_left=scope.get("quotaLeft"),
        reason=scope.get("reason"),
        paused=scope["paused"],
        rate=scope["rate"],
        concurrency=scope["concurrency"],
        bound_by=scope["boundBy"],
        without_effect=scope.get("withoutEffect"),
    )

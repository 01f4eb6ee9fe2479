"""What the machine of a group tells, as the package's own types: it speaks milliseconds and npm's names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .._state import Notice, ScopeStats, SharedStats, Stats

_NS = 1_000_000
_SPANS = {
    "delay": "delayMs",
    "asked": "askedMs",
    "delay_before": "delayBeforeMs",
    "span": "forMs",
    "latency": "latencyMs",
}
_PLAIN = {
    "step": "step",
    "is_bad": "isBad",
    "in_flight": "inFlight",
    "setting": "setting",
    "path": "path",
    "why": "why",
}


def mark(ms: float | None) -> int | None:
    """An instant."""
    return None if ms is None else max(0, round(ms * _NS))


def span(ms: float | None) -> int | None:
    """A span."""
    return None if ms is None or not math.isfinite(ms) else max(0, math.ceil(ms * _NS))


def notice_read(notice: Mapping[str, Any]) -> Notice:
    """What the engine of the group noticed."""
    told: dict[str, Any] = {field: notice.get(key) for field, key in _PLAIN.items()}
    told |= {field: span(notice.get(key)) for field, key in _SPANS.items()}
    told["hold_until"] = mark(notice.get("holdUntil"))
    return Notice(
        notice["kind"], notice["scope"], **{key: each for key, each in told.items() if each is not None}
    )


def stats_read(stats: Mapping[str, Any], shared: Mapping[str, Any]) -> Stats:
    """Statistics of the group, and the group itself."""
    return Stats(
        waiting=stats["waiting"],
        in_flight=stats["inFlight"],
        sent=stats["sent"],
        settled=stats["settled"],
        cancelled=stats["cancelled"],
        paused=stats["paused"],
        scopes={name: scope_read(scope) for name, scope in stats["scopes"].items()},
        age=span(stats.get("ageMs")),
        shared=SharedStats(
            writer=shared.get("writer"),
            is_writer=shared["isWriter"],
            epoch=shared["epoch"],
            members=shared.get("members"),
            lead=span(shared["leadMs"]) or 0,
            round_trip=span(shared.get("roundTripMs")),
            last_heard_at=mark(shared.get("lastHeardAt")),
            offline_since=mark(shared.get("offlineSince")),
            debt=span(shared["debtMs"]) or 0,
        ),
    )


def scope_read(scope: Mapping[str, Any]) -> ScopeStats:
    """One scope."""
    return ScopeStats(
        delay=span(scope["delayMs"]) or 0,
        backoff=span(scope["backoffMs"]) or 0,
        backoff_step=scope["backoffStep"],
        slots=scope["slots"],
        in_flight=scope["inFlight"],
        waiting=scope["waiting"],
        hold_until=mark(scope.get("holdUntil")),
        quota_left=scope.get("quotaLeft"),
        reason=scope.get("reason"),
        paused=scope["paused"],
        rate=scope.get("rate"),
        concurrency=scope["concurrency"],
        bound_by=scope["boundBy"],
        without_effect=scope.get("withoutEffect"),
        latency=span(scope.get("latencyMs")),
        recovers_at=mark(scope.get("recoversAt")),
    )

"""How a request ended, from Python's words to the component's.

The trap is a number that makes no sense: it is looked at here, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._headers import HeaderMap, Headers, fields_of, units_of
from ._numbers import span, units, whole
from ._state import Failure, Hints, ScopeOutcome


def outcome_of(
    *,
    status: int | None = None,
    failure: Failure | None = None,
    latency: int | None = None,
    headers: Headers | None = None,
    header_map: HeaderMap | None = None,
    hints: Hints | None = None,
    wall: int | None = None,
    backoff: bool | None = None,
    cost: float | None = None,
    adjust_delay: bool = True,
    scopes: Sequence[ScopeOutcome] = (),
    named_only: bool = False,
) -> tuple[tuple[str, Any], int | None, tuple[Any, ...] | None]:
    """What came back, how long it took, and what else there is to say. ``Engine.settle`` has the words."""
    if status is not None:
        answer: tuple[str, Any] = ("response", status if 100 <= whole("status", status) <= 599 else 0)
    elif failure is None:
        answer = ("ignored", None)
    elif failure in ("connection", "timeout"):
        answer = ("failed", failure)
    else:
        raise ValueError(f"failure: want 'connection' or 'timeout'; got {failure!r}")
    fields = [] if headers is None else fields_of(headers, header_map)
    report = None
    if (
        fields
        or hints is not None
        or backoff is not None
        or cost is not None
        or scopes
        or named_only
        or not adjust_delay
    ):
        report = (
            fields,
            units_of(header_map),
            span("wall", wall),
            None if hints is None else hints_of(hints),
            None if backoff is None else bool(backoff),
            units("cost", cost),
            bool(adjust_delay),
            [scope_outcome_of(own) for own in scopes],
            bool(named_only),
        )
    return answer, span("latency", latency), report


def hints_of(hints: Hints) -> tuple[Any, ...]:
    """Hints as the component has them."""
    return (
        span("hints.delay", hints.delay),
        units("hints.remaining", hints.remaining),
        span("hints.reset", hints.reset),
        units("hints.limit", hints.limit),
        span("hints.window", hints.window),
    )


def scope_outcome_of(own: ScopeOutcome) -> tuple[Any, ...]:
    """What an answer means for one scope, as the component has it."""
    return (
        whole("scopes", own.scope),
        bool(own.ignored),
        None if own.backoff is None else bool(own.backoff),
        span("scopes.delay", own.delay),
        units("scopes.cost", own.cost),
        units("scopes.remaining", own.remaining),
        span("scopes.reset", own.reset),
    )

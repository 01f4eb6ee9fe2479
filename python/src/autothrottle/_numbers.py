"""What is handed over, looked at before it becomes the component's numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from ._errors import CostExceedsQuotaError, QueueFullError, ScopeDownError
from ._wasmtime import Err

MOST = 2**64 - 1


def whole(what: str, value: object) -> int:
    """A whole number that an unsigned one of 64 bits holds."""
    if type(value) is not int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{what}: want a whole number; got {value!r}")
        value = int(value.__index__())
    if not 0 <= value <= MOST:
        raise ValueError(f"{what}: want a whole number from 0; got {value}")
    return value


def real(what: str, value: object) -> float:
    """A number. The engine says whether it makes sense."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise TypeError(f"{what}: want a number; got {value!r}")


def text(what: str, value: object) -> str:
    """Text that crosses as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: want text; got {value!r}")
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def span(what: str, value: int | None) -> int | None:
    """A time, or none."""
    return None if value is None else whole(what, value)


def units(what: str, value: float | None) -> float | None:
    """An amount, or none."""
    return None if value is None else real(what, value)


def handles(scopes: Sequence[int]) -> list[int]:
    """Handles of scopes."""
    return [whole("scopes", scope) for scope in scopes]


def costs_of(cost: float | Sequence[float]) -> list[float]:
    """One cost for all scopes, or one each."""
    if isinstance(cost, Sequence):
        return [real("cost", each) for each in cost]
    return [real("cost", cost)]


def needs_of(
    cost: float | Sequence[float], priority: float, delay: int = 0, waited: int = 0
) -> tuple[Any, ...] | None:
    """What sets a request apart; ``None`` for the usual one, which is cheaper to hand over."""
    if cost == 1 and priority == 0 and delay == 0 and waited == 0:
        return None
    return costs_of(cost), real("priority", priority), whole("delay", delay), whole("waited", waited)


def refused(error: Err) -> NoReturn:
    """Raises what a refusal says, in npm's words."""
    case, place = error.error
    if case == "queue-full":
        raise QueueFullError
    if case == "cost-exceeds-quota":
        raise CostExceedsQuotaError(*place)
    if case == "scope-down":
        scope, span = place
        raise ScopeDownError(scope, span / 1e9)
    if case == "not-a-number":
        raise ValueError("cost and delay must be finite and not below 0, priority finite")
    raise ValueError("the request names no scope that this engine knows")

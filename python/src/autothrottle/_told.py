"""How a request ended, for the engine: everything checked and in the engine's own form.

The trap is an outcome that is half told when its other half turns out to make no sense: so this changes
no state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._clock import nanos
from ._hooks import backoff_map, checked_backoffs, hints_of
from ._outcome import answer_in_error, failure_of, is_status
from ._state import ScopeOutcome
from .errors import ThrottleError

if TYPE_CHECKING:
    from ._desk import Desk
    from ._permit import Permit, Told


def engine_words(desk: Desk, permit: Permit, told: Told, now: int) -> dict[str, Any]:
    """An outcome for the engine: all of it checked, and in its own form. Changes no state."""
    status, headers, error = told.status, told.headers, told.error
    if status is None and error is not None:
        answer = answer_in_error(error)
        if answer is not None:
            status, headers, error = answer.status, headers or answer.headers, None
    if status is not None and not is_status(status):
        raise TypeError(f"status: want a status of HTTP; got {status!r:.60}")
    what: dict[str, Any] = {}
    if status is not None:
        what = {"status": status, "latency": now - permit.charge.sent}
    elif error is not None:
        failure = failure_of(error)
        if failure is None and told.is_blamed and _may_be_the_servers(error):
            failure = "connection"
        what["failure"] = failure
    if told.latency is not None:
        what["latency"] = nanos("latency", told.latency)
    if headers is not None:
        what["headers"] = headers
        what["wall"] = desk.clock.wall()
        if desk.header_maps:
            what["header_map"] = next(
                (desk.header_maps[name] for name in permit.scopes if name in desk.header_maps), None
            )
    if told.hints is not None:
        what["hints"] = hints_of("settle", told.hints)
    if told.backoff is not None:
        what["backoff"] = told.backoff
    if not told.adjust_delay:
        what["adjust_delay"] = False
    if told.cost is None and told.scopes is None:
        return what
    costs: dict[str, float] = {}
    if isinstance(told.cost, Mapping):
        costs = checked_costs(told.cost, permit.scopes)
    elif told.cost is not None:
        what["cost"] = told.cost
    backoffs = checked_backoffs("settle", told.scopes, permit.scopes)
    if backoffs is not None:
        is_refusal = error is not None or (status or 0) >= 400
        what["scopes"] = _own(desk, permit.scopes, backoffs, is_refusal, costs)
    elif costs:
        what["scopes"] = [ScopeOutcome(scope=desk.handle(name), cost=cost) for name, cost in costs.items()]
    return what


def checked_costs(costs: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Costs by scope; raises for scopes that are not the request's."""
    for name, cost in costs.items():
        if name not in names:
            raise ValueError(f"settle: want costs of {', '.join(names)}; got one of {name!r}")
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < math.inf:
            raise ValueError(f"settle: want a cost from 0 of {name}; got {cost!r}")
    return dict(costs)


def _own(
    desk: Desk,
    names: Sequence[str],
    backoffs: Mapping[str, Any],
    is_refusal: bool,
    costs: Mapping[str, float],
) -> list[ScopeOutcome]:
    """What an outcome means for each scope, if it names those that back off: others ignore a refusal."""
    own: list[ScopeOutcome] = []
    for name in names:
        means = backoff_map(backoffs).get(name)
        if means is not None:
            is_of_quota = means.get("cost") is not None or means.get("remaining") is not None
            delay, reset = means.get("delay"), means.get("reset")
            own.append(
                ScopeOutcome(
                    scope=desk.handle(name),
                    backoff=means.get("backoff", None if is_of_quota else True),
                    delay=None if delay is None else nanos("delay", delay),
                    cost=means.get("cost", costs.get(name)),
                    remaining=means.get("remaining"),
                    reset=None if reset is None else nanos("reset", reset),
                )
            )
        elif is_refusal or name in costs:
            own.append(ScopeOutcome(scope=desk.handle(name), ignored=is_refusal, cost=costs.get(name)))
    return own


def _may_be_the_servers(error: BaseException) -> bool:
    """Whether an error that a caller reports says something about the server."""
    return (
        isinstance(error, Exception)
        and not isinstance(error, ThrottleError)
        and type(error).__name__ not in ("CancelledError", "PoolTimeout")
    )

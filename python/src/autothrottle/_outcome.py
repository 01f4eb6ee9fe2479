"""How a request ended: what results and errors say about it, whichever client made them, and the same in the
engine's words.

| client | a result has | an error has |
|---|---|---|
| httpx, requests, niquests | ``status_code``, ``headers`` | ``response`` |
| aiohttp | ``status``, ``headers`` | ``status``, ``headers`` |
| urllib, urllib3, ``http.client`` | ``status``, ``headers`` | ``status``, ``headers`` |
| openai, anthropic | – | ``response`` |

Only what can be a status of HTTP counts: a row of a database has a ``status``, too. The server is not blamed
for a bug in a callback, a cancelled task, or a pool of our own that is used up. Failures are known by the
names of their classes, so that no client has to be installed or imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, cast

from ._clock import Clock, nanos
from ._hooks import Backoffs, ScopeBackoff, SomeHints, backoff_map, checked_backoffs, hints_of
from ._state import ScopeOutcome
from .errors import ThrottleError, ThrottleTimeoutError

Failure: TypeAlias = Literal["connection", "timeout"]

_TIMEOUTS = {
    # httpx and httpcore; requests; urllib3; aiohttp; asyncio and the builtin; Twisted
    *("TimeoutException", "Timeout", "TimeoutError", "ServerTimeoutError", "TCPTimedOutError"),
}
_CONNECTIONS = {
    # The builtin, requests and Twisted; httpx; aiohttp
    *("ConnectionError", "NetworkError", "RemoteProtocolError", "ProxyError", "ClientConnectionError"),
    *("ClientPayloadError", "ClientOSError", "ChunkedEncodingError"),
    # urllib3, http.client, ssl, socket
    *("ProtocolError", "NewConnectionError", "MaxRetryError", "RemoteDisconnected", "IncompleteRead"),
    *("BadStatusLine", "SSLError", "gaierror", "herror"),
    # Twisted and Scrapy
    *("ConnectError", "DNSLookupError", "ConnectionDone", "ConnectionLost", "ConnectionRefusedError"),
    *("ResponseFailed", "ResponseNeverReceived", "TunnelError"),
}
# Our own doing: a pool that is used up, a request that makes no sense.
_OURS = {"PoolTimeout", "LocalProtocolError", "UnsupportedProtocol", "CancelledError", "InvalidURL"}


@dataclass(slots=True)
class Outcome:
    """How a request ended, for ``settle``. Without a status and an error no pace changes."""

    status: int | None = None
    headers: Any = None
    error: BaseException | None = None
    hints: SomeHints | None = None
    latency: float | timedelta | None = None
    backoff: bool | None = None
    scopes: Backoffs | None = None
    cost: float | Mapping[str, float] | None = None
    adjust_delay: bool = True
    is_blamed: bool = True
    """Whether the caller says that the error is the server's."""

    @property
    def is_refusal(self) -> bool:
        """Whether another attempt may end better."""
        return self.error is not None or self.status == 429 or (self.status or 0) >= 500


NOTHING = Outcome()
"""The slots come back, and no pace changes."""
GIVEN_UP = Outcome()
"""The same of a request whose answer is unwanted: that none is known is no wonder."""


def is_status(status: object) -> bool:
    """Whether this is a status of HTTP. Some servers invent some above 599."""
    return isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 999


def answer_in(value: object) -> Outcome | None:
    """The answer that a result is, or has as ``response``; ``None`` if it is none."""
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple)):
        return None
    if isinstance(value, Mapping):
        return _plain_answer(_field(value, "response")) if "response" in value else None
    for name in ("status_code", "status"):
        status = _attribute(value, name)
        if is_status(status):
            return Outcome(cast("int", status), fields_of(_attribute(value, "headers")))
    response = _attribute(value, "response")
    return None if response is None else _plain_answer(response)


def answer_in_error(error: BaseException) -> Outcome | None:
    """The answer that a client raised as an error, or that is why another was raised."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None:
            return None
        answer = answer_in(_field(cause, "response")) or answer_in(cause)
        if answer is not None:
            return answer
        cause = cause.__cause__
    return None


def _plain_answer(response: object) -> Outcome | None:
    """The answer of what stands as ``response``: no deeper, for it may lead back."""
    status = _field(response, "status_code")
    status = status if is_status(status) else _field(response, "status")
    return Outcome(status, fields_of(_field(response, "headers"))) if is_status(status) else None


def _field(value: object, name: str) -> Any:
    """An attribute or a key."""
    try:
        return value[name] if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:
        return None


def _attribute(value: object, name: str) -> Any:
    """An attribute; ``None`` where it fails (httpx: an error without a request)."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def fields_of(headers: object) -> Any:
    """Header fields as the engine reads them; ``None`` where there are none."""
    if headers is None or isinstance(headers, (str, bytes)):
        return None
    if type(headers) is dict or isinstance(headers, Mapping):
        return headers
    try:
        items = getattr(headers, "items", None)
        if callable(items):
            return list(items())
        return list(headers) if isinstance(headers, Iterable) else None
    except Exception:
        return None


def failure_of(error: BaseException) -> Failure | None:
    """Why there was no response: the server's doing, or ``None`` for whatever else went wrong."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None:
            return None
        if isinstance(cause, ThrottleTimeoutError):
            return "timeout" if cause.is_sent else None
        names = {kind.__name__ for kind in type(cause).__mro__}
        if names & _OURS:
            return None
        if names & _TIMEOUTS:
            return "timeout"
        if names & _CONNECTIONS:
            return "connection"
        reason = getattr(cause, "reason", None)  # urllib's URLError
        cause = reason if isinstance(reason, BaseException) else cause.__cause__
    return None


def outcome_of_error(error: BaseException) -> Outcome:
    """The answer in a function's error. Its bugs, and a cancelled task, say no word about the server."""
    answer = answer_in_error(error)
    if answer is None and not isinstance(error, Exception):
        return GIVEN_UP
    return answer or (NOTHING if failure_of(error) is None else Outcome(error=error))


def engine_words(
    outcome: Outcome,
    scopes: Sequence[str],
    latency: int,
    clock: Clock,
    header_maps: Mapping[str, Any],
    handle: Callable[[str], int],
) -> tuple[dict[str, Any], dict[str, float]]:
    """An outcome in the engine's own form, and the costs that it names by scope, all checked. Changes no
    state, so that the engine gets all of it or no part.
    """
    status, headers, error = outcome.status, outcome.headers, outcome.error
    if status is None and error is not None:
        answer = answer_in_error(error)
        if answer is not None:
            status, headers, error = answer.status, headers or answer.headers, None
    if status is not None and not is_status(status):
        raise TypeError(f"status: want a status of HTTP; got {status!r:.60}")
    what: dict[str, Any] = {}
    if status is not None:
        what = {"status": status, "latency": latency}
    elif error is not None:
        failure = failure_of(error)
        if failure is None and outcome.is_blamed and _may_be_the_servers(error):
            failure = "connection"
        what["failure"] = failure
    if outcome.latency is not None:
        what["latency"] = nanos("latency", outcome.latency)
    if headers is not None:
        what["headers"] = headers
        what["wall"] = clock.wall()
        if header_maps:
            what["header_map"] = next((header_maps[name] for name in scopes if name in header_maps), None)
    if outcome.hints is not None:
        what["hints"] = hints_of("settle", outcome.hints)
    if outcome.backoff is not None:
        what["backoff"] = outcome.backoff
    if not outcome.adjust_delay:
        what["adjust_delay"] = False
    backoffs = None if outcome.scopes is None else checked_backoffs("settle", outcome.scopes, scopes)
    if backoffs is None:
        return what, {}
    is_refusal = error is not None or (status or 0) >= 400
    means = backoff_map(backoffs)
    what["scopes"] = [_own(handle(name), means.get(name)) for name in scopes if is_refusal or name in means]
    return what, {name: each["cost"] for name, each in means.items() if each.get("cost") is not None}


def checked_costs(costs: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Costs by scope; raises for scopes that are not the request's."""
    for name, cost in costs.items():
        if name not in names:
            raise ValueError(f"settle: want costs of {', '.join(names)}; got one of {name!r}")
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < math.inf:
            raise ValueError(f"settle: want a cost from 0 of {name}; got {cost!r}")
    return dict(costs)


def _own(scope: int, means: ScopeBackoff | None) -> ScopeOutcome:
    """The outcome for a scope, where the request names the scopes that back off: others ignore a refusal."""
    if means is None:
        return ScopeOutcome(scope, ignored=True)
    is_of_quota = means.get("cost") is not None or means.get("remaining") is not None
    delay, reset = means.get("delay"), means.get("reset")
    return ScopeOutcome(
        scope,
        backoff=means.get("backoff", None if is_of_quota else True),
        delay=None if delay is None else nanos("delay", delay),
        remaining=means.get("remaining"),
        reset=None if reset is None else nanos("reset", reset),
    )


def _may_be_the_servers(error: BaseException) -> bool:
    """Whether an error that a caller reports says something about the server."""
    return (
        isinstance(error, Exception)
        and not isinstance(error, ThrottleError)
        and type(error).__name__ not in ("CancelledError", "PoolTimeout")
    )

"""What results and errors say about a response, whichever client made them.

| client | a result has | an error has |
|---|---|---|
| httpx, requests, niquests | ``status_code``, ``headers`` | ``response`` |
| aiohttp | ``status``, ``headers`` | ``status``, ``headers`` |
| urllib, urllib3, ``http.client`` | ``status``, ``headers`` | ``status``, ``headers`` |
| openai, anthropic | – | ``response`` |

The traps: a result that only looks like a response (a row of a database has a ``status``, too); and blame for
what the server never saw: a bug in a callback, a cancelled task, a pool of our own that is used up. Only what
can be a status of HTTP counts. Failures are known by the names of their classes, so that no client has to be
installed or imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from .errors import ThrottleTimeoutError

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


class Answer(NamedTuple):
    """A response as far as it concerns us."""

    status: int
    headers: Any


def is_status(status: object) -> bool:
    """Whether this is a status of HTTP. Some servers invent some above 599."""
    return isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 999


def answer_in(value: object) -> Answer | None:
    """The answer that a result is, or has as ``response``; ``None`` if it is none."""
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple)):
        return None
    if isinstance(value, Mapping):
        return _plain_answer(_field(value, "response")) if "response" in value else None
    for name in ("status_code", "status"):
        status = _attribute(value, name)
        if is_status(status):
            return Answer(cast("int", status), fields_of(_attribute(value, "headers")))
    response = _attribute(value, "response")
    return None if response is None else _plain_answer(response)


def answer_in_error(error: BaseException) -> Answer | None:
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


def _plain_answer(response: object) -> Answer | None:
    """The answer of what stands as ``response``: no deeper, for it may lead back."""
    status = _field(response, "status_code")
    status = status if is_status(status) else _field(response, "status")
    return Answer(cast("int", status), fields_of(_field(response, "headers"))) if is_status(status) else None


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

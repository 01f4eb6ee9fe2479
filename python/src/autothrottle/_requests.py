"""The options of a single request, also where the client has no place for them.

.. code-block:: python

    with request_options(priority=10, scopes="api"):
        response = await client.get(url)

Every key is known, or an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from ._clock import nanos
from ._permit import Wait
from ._scopes import Scopes
from .errors import ConfigError, Problem
from .options import REDIRECT_MAX_DELAY, RETRY_MAX_RETRY_AFTER, Seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RequestOptions(TypedDict, total=False):
    """Options of one request, for ``request_options`` and for httpx's ``extensions``."""

    scopes: Scopes
    """Other scopes than the host's. Scrapy's draft: ``throttling_scopes``."""
    priority: float
    """Higher is first. Any finite number, default 0."""
    cost: float
    """Expected cost in units of the scopes' quotas, default 1. A mapping in ``scopes`` names its own."""
    delay: Seconds
    """The request's own delay, default 0. Scrapy's draft: ``throttling_delay``."""
    max_wait: Seconds
    """How long it may wait for permission; then it fails with a ``ThrottleTimeoutError``. Default: for
    ever.
    """
    request_timeout: Seconds
    """From the send to the headers, then it fails with a ``ThrottleTimeoutError``. Default: the throttle's.
    """
    adjust_delay: bool
    """``False`` keeps AutoThrottle's delay as it is."""


_KNOWN = tuple(RequestOptions.__annotations__)
_MEANT = {"timeout": "max_wait, its name now: of the wait alone; request_timeout is that of the answer"}
_NONE: RequestOptions = {}
_ZERO: float = 0
_ONE: float = 1
_PLAIN = Wait()
_current: ContextVar[RequestOptions] = ContextVar("autothrottle_request_options", default=_NONE)


@contextmanager
def request_options(**options: Unpack[RequestOptions]) -> Iterator[None]:
    """Options of all requests that are sent in this block, by any client. The inner of two blocks counts."""
    token = _current.set({**_current.get(), **checked_options(options, "")})
    try:
        yield
    finally:
        _current.reset(token)


def current_options(own: object = None, path: str = "throttle") -> RequestOptions:
    """The options of a request: of the block that it is sent in, and of itself."""
    around = _current.get()
    if own is None:
        return around
    if not isinstance(own, Mapping):
        raise ConfigError([Problem(path, "a mapping", f"a {type(own).__name__}")])
    return {**around, **checked_options(own, path)}


def checked_options(options: Mapping[str, Any], path: str) -> RequestOptions:
    """Raises ``ConfigError`` for keys that are unknown."""
    wrong = [key for key in options if key not in _KNOWN]
    if wrong:
        known = f"one of {', '.join(_KNOWN)}"
        where = f"{path}." if path else ""
        raise ConfigError(
            [Problem(f"{where}{key}", _MEANT.get(key, known), f"{options[key]!r:.60}") for key in wrong]
        )
    return options  # type: ignore[return-value]


def seconds_of(what: str, value: Seconds | None) -> float | None:
    """A time that may be left out, checked."""
    return None if value is None else nanos(what, value) / 1e9


def target_of(target: object, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """The target of a call of a wrapped function: as told, or the first argument."""
    if callable(target):
        return target(*args, **kwargs)
    if target is not None or not args:
        return target
    names = getattr(getattr(fn, "__code__", None), "co_varnames", ())
    if names[:1] in (("self",), ("cls",)) and not hasattr(args[0], "url"):
        remedy = "want @throttle.wrap(target=lambda self, url: url)"
        raise TypeError(f"wrap: the first argument of a method is no URL: {remedy}; got {args[0]!r:.60}")
    return args[0]


def wait_of(priority: float, cost: float, delay: Seconds, max_wait: Seconds | None) -> Wait:
    """How a request waits, checked."""
    if priority is _ZERO and cost is _ONE and delay is _ZERO and max_wait is None:
        return _PLAIN
    if isinstance(priority, bool) or not isinstance(priority, (int, float)):
        raise TypeError(f"priority: want a number; got {priority!r}")
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        raise TypeError(f"cost: want a number; got {cost!r}")
    return Wait(priority, cost, nanos("delay", delay) if delay else 0, seconds_of("max_wait", max_wait))


@dataclass
class Settings:
    """The options that concern a request outside of the engine."""

    get_scopes: Any = None
    get_response_backoff: Any = None
    get_error_backoff: Any = None
    get_response_delay: Any = None
    get_hints: Any = None
    request_timeout: float | None = None
    redirect_max_delay: float = REDIRECT_MAX_DELAY
    is_held_by_body: bool = False
    retries: int = 0
    max_retry_after: float = RETRY_MAX_RETRY_AFTER
    when: Any = None

    @classmethod
    def of(cls, options: Mapping[str, Any], driver: Mapping[str, Any]) -> Settings:
        """The options were checked."""
        retry = options.get("retry") or {}
        return cls(
            **{name: each for name, each in driver.items() if name.startswith("get_")},
            request_timeout=seconds_of("request_timeout", driver.get("request_timeout")),
            redirect_max_delay=_seconds(driver, "redirect_max_delay", REDIRECT_MAX_DELAY),
            is_held_by_body=driver.get("release") == "body",
            retries=retry.get("limit", 0),
            when=retry.get("when"),
            max_retry_after=_seconds(retry, "max_retry_after", RETRY_MAX_RETRY_AFTER),
        )


def _seconds(options: Mapping[str, Any], key: str, default: float) -> float:
    typed = seconds_of(key, options.get(key))
    return default if typed is None else typed

"""Which scopes a request belongs to, and which of them an answer concerns: hooks for those who know better
than the host and the status.

A hook that fails fails its own request, as the cause.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict, TypeVar, cast

from ._clock import nanos
from ._scopes import Scopes
from ._state import Hints
from .errors import ManagerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    """A request, as hooks get it."""

    url: str
    """The absolute URL."""
    method: str
    """The method, in capitals."""
    headers: Mapping[str, str]


class ScopeBackoff(TypedDict, total=False):
    """The meaning of an answer for one scope."""

    backoff: bool
    """Whether it backs off. Default: yes, unless this only speaks of quota; then as the status says."""
    delay: float | timedelta
    """Seconds in which no request is sent. Default: what the headers ask for."""
    cost: float
    """The true cost of the request in this scope, in units. Scrapy's draft: ``consumed_quota``."""
    remaining: float
    """Units left of the server's quota. Scrapy's draft: ``remaining_quota``."""
    reset: float | timedelta
    """Seconds until the whole quota is there again."""


class SomeHints(TypedDict, total=False):
    """The result of a ``get_hints`` hook: as much as it knows."""

    delay: float | timedelta
    """Seconds in which no request is sent."""
    limit: float
    """Units per window."""
    remaining: float
    """Units left."""
    reset: float | timedelta
    """Seconds until the whole quota is there again."""
    window: float | timedelta
    """The window in seconds."""


Backoffs: TypeAlias = str | Sequence[str] | Mapping[str, ScopeBackoff]
"""The scopes that an answer makes back off: one, several, or what it means for each. None: ``{}``."""

GetScopes: TypeAlias = Callable[[ScopeRequest], Scopes | Awaitable[Scopes]]
GetResponseBackoff: TypeAlias = Callable[[Any, ScopeRequest], Backoffs | None | Awaitable[Backoffs | None]]
GetErrorBackoff: TypeAlias = Callable[
    [BaseException, ScopeRequest], Backoffs | None | Awaitable[Backoffs | None]
]
GetResponseDelay: TypeAlias = Callable[[Any], float | timedelta | None | Awaitable[float | timedelta | None]]
GetHints: TypeAlias = Callable[[Any], SomeHints | None | Awaitable[SomeHints | None]]
RetryWhen: TypeAlias = Callable[[Any], bool | Awaitable[bool]]
RobotsRules: TypeAlias = Callable[[str, str, str], Callable[[str], bool]]
"""Reads a robots.txt and says which URLs may be fetched: ``rules(robots_url, text, user_agent)(url)``."""


async def ask(hook: str, url: str, call: Callable[[], T | Awaitable[T]], is_plain: bool) -> T:
    """The result of a hook, awaited if it has to be. ``is_plain``: in a thread, without await."""
    try:
        result = call()
        if not inspect.isawaitable(result):
            return result
        if not is_plain:
            return await result
        if inspect.iscoroutine(result):
            result.close()
        raise ManagerError(hook, "gave an awaitable; with threads want a plain function")
    except ManagerError:
        raise
    except Exception as error:
        raise ManagerError(hook, f"failed for {url}: {error!r:.200}") from error


def backoff_map(backoffs: Backoffs) -> dict[str, ScopeBackoff]:
    """In any of their forms as a map."""
    if isinstance(backoffs, str):
        return {backoffs: {}}
    if isinstance(backoffs, Mapping):
        return {name: cast("ScopeBackoff", dict(means)) for name, means in backoffs.items()}
    return {name: {} for name in backoffs}


def update_scope_backoff(
    backoffs: Backoffs | None, name: str, change: ScopeBackoff
) -> dict[str, ScopeBackoff]:
    """These backoffs with more about one scope: for hooks that ask another hook first."""
    means = backoff_map({} if backoffs is None else backoffs)
    means[name] = cast("ScopeBackoff", {**means.get(name, {}), **change})
    return means


_KEYS = ("delay", "cost", "remaining", "reset")


def checked_backoffs(
    hook: str, backoffs: object, scopes: Sequence[str], keys: tuple[str, ...] = _KEYS
) -> dict[str, ScopeBackoff] | None:
    """The result of a hook, checked against the scopes of the request."""
    if backoffs is None:
        return None
    if isinstance(backoffs, Mapping):
        entries = dict(backoffs)
    elif isinstance(backoffs, str):
        entries = {backoffs: {}}
    elif isinstance(backoffs, (Sequence, set, frozenset)) and all(isinstance(each, str) for each in backoffs):
        entries = {name: {} for name in backoffs}
    else:
        what = f"gave {shown(backoffs)}; want a scope, scopes, or a map of what it means for each"
        raise ManagerError(hook, what)
    for name, means in entries.items():
        if name not in scopes:
            what = f"named {shown(name)}, which is no scope of the request ({', '.join(scopes)})"
            raise ManagerError(hook, what)
        if not isinstance(means, Mapping):
            raise ManagerError(hook, f"gave {shown(means)} for {name}; want a mapping")
        for key, value in means.items():
            _check(hook, name, key, value, keys)
    return cast("dict[str, ScopeBackoff]", entries)


def _check(hook: str, name: str, key: str, value: object, keys: tuple[str, ...]) -> None:
    if key == "backoff":
        if value is not None and not isinstance(value, bool):
            raise ManagerError(hook, f"gave backoff: {shown(value)} for {name}; want true or false")
        return
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds <= 1e12
    if key in keys and (value is None or is_number):
        return
    raise ManagerError(hook, f"gave {key}: {shown(value)} for {name}; want one of {', '.join(keys)}, from 0")


def checked_scopes(hook: str, url: str, scopes: object) -> Scopes:
    """The result of ``get_scopes``."""
    if isinstance(scopes, str):
        return scopes
    if isinstance(scopes, Mapping):
        costs = scopes.values()
        is_right = all(isinstance(name, str) for name in scopes) and all(
            isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 <= cost <= 1e12
            for cost in costs
        )
        if scopes and is_right:
            return cast("Mapping[str, float]", scopes)
    elif (
        isinstance(scopes, (Sequence, set, frozenset)) and scopes and all(isinstance(n, str) for n in scopes)
    ):
        return tuple(scopes)
    raise ManagerError(hook, f"gave {shown(scopes)} for {url}; want a name, names, or a map of costs")


def hints_of(hook: str, result: object) -> Hints | None:
    """The result of ``get_hints``, in the engine's form."""
    if result is None:
        return None
    if not isinstance(result, Mapping):
        raise ManagerError(hook, f"gave {shown(result)}; want a mapping")
    hints: dict[str, Any] = {}
    for key, value in result.items():
        if key not in ("delay", "limit", "remaining", "reset", "window"):
            raise ManagerError(
                hook, f"gave {key}: {shown(value)}; want delay, limit, remaining, reset, window"
            )
        if value is None:
            continue
        if key in ("limit", "remaining"):
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise ManagerError(hook, f"gave {key}: {shown(value)}; want a number")
            hints[key] = float(value)
        else:
            hints[key] = span_of(hook, key, value)
    return Hints(**hints)


def span_of(hook: str, key: str, value: Any) -> int:
    """Seconds that a hook gave, as the engine counts."""
    try:
        return nanos(key, value)
    except (TypeError, ValueError):
        raise ManagerError(hook, f"gave {shown(value)}; want seconds from 0 to a year") from None


def shown(value: object) -> str:
    """A value, cut, where what is in it matters."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"

"""THROTTLING_MANAGER: which scopes a request belongs to, and which of them an answer concerns; and
THROTTLING_SCOPE_MANAGER, at the end.

The names are those of Scrapy's draft, so its examples run. A method may be plain or ``async``.

Scrapy asks for the queue's key with each request that it schedules, and cannot wait for an answer. A manager
with the default's answers is therefore not asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy.resolver import dnscache
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler
from w3lib.url import add_http_if_no_scheme

from .._convert import convert_scope
from .._hooks import backoff_map
from .._hooks import checked_backoffs as of_hooks
from .._managers import Managers, Pace
from .._native import parse_hints
from ..errors import ManagerError

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ._options import Options


class ScopeBackoff(TypedDict, total=False):
    """The meaning of an answer for one scope."""

    backoff: bool
    """Whether it backs off. Default: yes, unless this only speaks of quota; then as the status says."""
    delay: float
    """Seconds in which no request is sent. Default: what the headers ask for."""
    consumed_quota: float
    """The real cost of the request in this scope, in units."""
    remaining_quota: float
    """Units that are left of the server's quota."""
    reset: float
    """In how many seconds all of the server's quota is there again."""


Scopes: TypeAlias = "str | Iterable[str] | Mapping[str, float | None] | None"
"""One scope, several, or scope → expected cost. None: the request is not throttled."""

Backoffs: TypeAlias = "str | Iterable[str] | Mapping[str, Mapping[str, Any]] | None"
"""The scopes that an answer concerns: one, several, or scope → what it means. None: as the status says."""

_ALIASES = {"consumed": "consumed_quota", "remaining": "remaining_quota", "quota": "remaining_quota"}
_KEYS = ("delay", "consumed_quota", "remaining_quota", "reset")

#: The request whose answer a manager is asked about: a response that a manager builds has none.
_asked_about: ContextVar[Request | None] = ContextVar("asked_about", default=None)


class ThrottlingManagerProtocol(Protocol):
    """The methods of a THROTTLING_MANAGER. It needs ``get_scopes``; ``get_request_scopes`` is taken for
    it."""

    async def get_scopes(self, request: Request) -> Scopes:
        """The scopes of a request that names none in ``meta["throttling_scopes"]``."""

    async def get_response_backoff(self, response: Response) -> Backoffs:
        """Which of the request's scopes a response concerns. The others take a refusal for no news."""

    async def get_exception_backoff(self, request: Request, exception: Exception) -> Backoffs:
        """The same for a request that got no response."""

    def get_response_delay(self, response: Response) -> float | None:
        """Seconds that a response asks not to be sent anything, in place of what its headers say."""


class ThrottlingManager:
    """The usual THROTTLING_MANAGER: a request's scope is the host of its URL."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._by_address = crawler.settings.getint("CONCURRENT_REQUESTS_PER_IP") > 0
        self._by_proxy = crawler.settings.getbool("THROTTLING_PROXY_SCOPES")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ThrottlingManager:
        return cls(crawler)

    async def get_scopes(self, request: Request) -> Scopes:
        """The host of the URL, or its address with CONCURRENT_REQUESTS_PER_IP, as Scrapy's download slots.

        With THROTTLING_PROXY_SCOPES, the proxy of ``meta["proxy"]`` as well: ``proxy:HOST:PORT``. None for
        URLs without a host: what comes from a file or a ``data:`` URL loads no server.
        """
        host = urlparse_cached(request).hostname
        name = dnscache.get(host, host) if host and self._by_address else host
        proxy = request.meta.get("proxy") if self._by_proxy else None
        return [name, _proxy_scope(proxy)] if name and proxy else name

    async def get_response_backoff(self, response: Response) -> Backoffs:
        """Every scope of the request, as the status says."""
        return await self._all_of(_request_of(response), self._is_bad(response.status))

    async def get_exception_backoff(self, request: Request, exception: Exception) -> Backoffs:
        """Every scope of the request if the exception is one of BACKOFF_EXCEPTIONS."""
        downloader = self._downloader()
        return await self._all_of(request, downloader.is_bad_exception(exception) if downloader else True)

    def get_response_delay(self, response: Response) -> float | None:
        """The wait that ``Retry-After`` and fields like it ask for."""
        delay = parse_hints(response.headers, status=response.status).delay
        return None if delay is None else delay / 1e9

    async def _all_of(self, request: Request | None, is_bad: bool) -> Backoffs:
        if request is None:
            return None
        scopes = request.meta.get("throttling_scopes")
        if scopes is None:
            scopes = await ensure_awaitable(self.get_scopes(request))
        return {name: {"backoff": is_bad} for name in named(scopes)}

    def _is_bad(self, status: int) -> bool:
        downloader = self._downloader()
        return downloader.is_bad_status(status) if downloader else False

    def _downloader(self) -> Any:
        return getattr(self.crawler.engine, "downloader", None) if self.crawler.engine else None


def _proxy_scope(proxy: str) -> str:
    """The scope of a proxy: without its password, which logs and statistics would show."""
    return f"proxy:{urlsplit(add_http_if_no_scheme(proxy)).netloc.rpartition('@')[2].lower()}"


def named(scopes: Scopes) -> dict[str, float | None]:
    """Scopes in any of their forms: name → cost."""
    if scopes is None or scopes == "":
        return {}
    if isinstance(scopes, str):
        return {scopes: None}
    if isinstance(scopes, Mapping):
        found: dict[str, float | None] = dict(scopes)
    else:
        names: Any = scopes
        if isinstance(names, bytes) or not isinstance(names, Iterable):
            raise TypeError(f"scopes: want a name, names, or a dict of costs; got {names!r}")
        found = dict.fromkeys(names)
    for name, cost in found.items():
        if not isinstance(name, str):
            raise TypeError(f"scopes: want names as str; got {name!r}")
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, (int, float))):
            raise TypeError(f"scopes: want a cost as a number for {name}; got {cost!r}")
    return {name: found[name] for name in sorted(found)}


def add_scope(scopes: Scopes, scope: str, cost: float | None = None, /) -> dict[str, float | None]:
    """These scopes and one more, with what the request is expected to cost there.

    :raises TypeError: if the scope has a cost already.
    """
    found = named(scopes)
    if cost is not None and found.get(scope) is not None:
        raise TypeError(f"add_scope: {scope} has a cost already: {found[scope]}")
    return {**found, scope: found.get(scope) if cost is None else cost}


def update_scope_backoff(backoffs: Backoffs, scope: str, /, **change: Any) -> dict[str, dict[str, Any]]:
    """These backoffs with more about one scope: keys of :class:`ScopeBackoff`."""
    typed: Any = backoffs or {}
    found: dict[str, Any] = {**backoff_map(typed)}
    return {**found, scope: {**found.get(scope, {}), **change}}


_Method = TypeVar("_Method", bound=Callable[..., Any])


def scope_cache(method: _Method) -> _Method:
    """Decorates ``get_scopes``: it is asked once for each request, also by ``get_response_backoff``."""
    caches: WeakKeyDictionary[Any, WeakKeyDictionary[Request, Scopes]] = WeakKeyDictionary()

    @wraps(method)
    async def cached(self: Any, request: Request) -> Scopes:
        cache = caches.setdefault(self, WeakKeyDictionary())
        if request not in cache:
            scopes = method(self, request)
            cache[request] = await ensure_awaitable(scopes) if inspect.isawaitable(scopes) else scopes
        return cache[request]

    return cached  # type: ignore[return-value]


class Hooks:
    """A manager as the downloader asks it: what it has, what it says, checked."""

    def __init__(self, manager: Any) -> None:
        get_scopes = getattr(manager, "get_scopes", None) or getattr(manager, "get_request_scopes", None)
        if not callable(get_scopes):
            has = type(manager).__name__
            raise TypeError(f"THROTTLING_MANAGER: want a method get_scopes; {has} has none")
        self._get_scopes = get_scopes
        self._waits = False
        """Whether it was seen to wait for something: then the queue's key is the host."""
        self.response_backoff = _own(manager, "get_response_backoff")
        self.exception_backoff = _own(manager, "get_exception_backoff")
        self.response_delay = _own(manager, "get_response_delay")

    def scopes_now(self, request: Request) -> dict[str, float | None] | None:
        """The scopes, if they can be said at once; else None."""
        typed = _scopes_in_meta(request)
        if typed is not None:
            return typed
        if self._waits:
            return None
        result = self._get_scopes(request)
        if not inspect.isawaitable(result):
            return named(result)
        steps = result.__await__()
        try:
            next(steps)
        except StopIteration as end:
            return named(end.value)
        self._waits = True
        close = getattr(result, "close", None) or getattr(result, "cancel", None)
        if close:
            close()
        return None

    async def scopes(self, request: Request) -> dict[str, float | None]:
        """The scopes of a request.

        :raises TypeError: for scopes in ``meta`` that are none.
        :raises ManagerError: if the manager fails, or says what are no scopes.
        """
        typed = _scopes_in_meta(request)
        if typed is not None:
            return typed
        try:
            found = self.scopes_now(request)
            if found is None:
                found = named(await ensure_awaitable(self._get_scopes(request)))
        except Exception as error:
            raise ManagerError("get_scopes", f"failed for {request.url}: {error!r}") from error
        return found

    async def ask(self, hook: Callable[..., Any], request: Request, *arguments: Any) -> Any:
        """The result of a hook about the answer to a request.

        :raises ManagerError: if it fails.
        """
        token = _asked_about.set(request)
        try:
            result = hook(*arguments)
            return await ensure_awaitable(result) if inspect.isawaitable(result) else result
        except Exception as error:
            name = getattr(hook, "__name__", "hook")
            raise ManagerError(name, f"failed for {request.url}: {error!r}") from error
        finally:
            _asked_about.reset(token)


def _scopes_in_meta(request: Request) -> dict[str, float | None] | None:
    """The options in a request's own meta."""
    if request.meta.get("dont_throttle"):
        return {}
    typed = request.meta.get("throttling_scopes")
    return None if typed is None else named(typed)


def checked_backoffs(hook: str, result: Any, scopes: Iterable[str]) -> dict[str, dict[str, Any]] | None:
    """The result of a hook, by scope, with the names of :class:`ScopeBackoff`; None if it has no opinion.

    :raises ManagerError: for what is no scope of the request, and for what is no number.
    """
    if isinstance(result, Mapping):
        result = {
            name: {
                _ALIASES.get(typed, typed): value
                for typed, value in (means or {}).items()
                if value is not None
            }
            if means is None or isinstance(means, Mapping)
            else means
            for name, means in result.items()
        }
    elif isinstance(result, Iterable) and not isinstance(result, str):
        result = list(result)
    checked: Any = of_hooks(hook, result, tuple(scopes), _KEYS)
    return checked  # type: ignore[no-any-return]


def _own(manager: Any, name: str) -> Callable[..., Any] | None:
    """A manager's method, unless it is the usual one: what that says the engine says faster."""
    method = getattr(manager, name, None)
    if method is None or getattr(type(manager), name, None) is getattr(ThrottlingManager, name):
        return None
    return method  # type: ignore[no-any-return]


def _request_of(response: Response) -> Request | None:
    return response.request if response.request is not None else _asked_about.get()


# THROTTLING_SCOPE_MANAGER: a strategy of one's own for a scope, in place of backoff and rampup.
#
# An event → the object's method → its ``delay`` and ``concurrency`` are read → what changed is configured.
# The engine never hears of it. An error of the object fails the request that the call was about.


@dataclass(frozen=True)
class ScopeAnswer:
    """How a request of a scope ended."""

    scope: str
    status: int | None
    """The status of the response, if there was one."""
    exception: BaseException | None
    """Why there was none."""
    latency: float | None
    """Seconds from send to response headers, if Scrapy's handler measured them."""


class ThrottlingScopeManagerProtocol(Protocol):
    """The members of a THROTTLING_SCOPE_MANAGER. ``delay`` and ``concurrency`` are read after each call."""

    delay: float | None
    """Seconds between two sends. None: the scope's own."""
    concurrency: int | None
    """Slots. None: the scope's own."""

    def on_send(self) -> None:
        """A request leaves."""

    def on_good(self, answer: ScopeAnswer) -> None:
        """An answer that is not bad."""

    def on_bad(self, answer: ScopeAnswer) -> None:
        """A bad answer: one of BACKOFF_HTTP_CODES or BACKOFF_EXCEPTIONS, or what a manager calls bad."""


class ThrottlingScopeManager:
    """The usual THROTTLING_SCOPE_MANAGER: the engine's own backoff and rampup. Subclasses replace both."""

    delay: float | None = None
    concurrency: int | None = None

    def __init__(self, crawler: Crawler, config: Mapping[str, Any]) -> None:
        self.crawler = crawler
        self.config = config

    @classmethod
    def from_crawler(cls, crawler: Crawler, config: Mapping[str, Any]) -> ThrottlingScopeManager:
        """`config`: what THROTTLING_SCOPES has for the scope, and its name as ``id``."""
        return cls(crawler, config)

    def on_send(self) -> None:
        """A request leaves."""

    def on_good(self, answer: ScopeAnswer) -> None:
        """An answer that is not bad."""

    def on_bad(self, answer: ScopeAnswer) -> None:
        """A bad answer."""


class Strategies(Managers):
    """The managers of scopes that have one. A pace that they ask for goes to the engine in its own units."""

    name = "THROTTLING_SCOPE_MANAGER"

    def __init__(self, crawler: Crawler, options: Options) -> None:
        super().__init__()
        self._crawler = crawler
        self._configs = options.configs
        self._classes = options.managers

    def name_of(self, method: str) -> str:
        return method

    @property
    def are_there(self) -> bool:
        """Whether any scope may have one."""
        return any(each is not None for each in self._classes.values())

    def begin(self, scope: str) -> Pace:
        """The options of a scope when it is made."""
        known = self.pace_of(scope)
        made = self._classes.get(scope) or self._classes.get(None)
        if known is None and made is not None:
            config = {"id": scope, **self._configs.get(scope, {})}
            known = self.keep(scope, self.ask(scope, lambda: _built(made, self._crawler, config)))
        return _engines(known)

    def forget(self, scope: str) -> None:
        """The scope is idle; one that the settings name keeps its manager and what that learned."""
        if scope not in self._classes:
            self._managers.pop(scope, None)

    def on_send(self, scope: str) -> Pace:
        """Tells that a request leaves; gives what that changes."""
        return _engines(self.call(scope, "on_send"))

    def on_answer(self, answer: ScopeAnswer, is_bad: bool) -> Pace:
        """Tells of an answer that the engine has judged; gives what that changes."""
        return _engines(self.call(answer.scope, "on_bad" if is_bad else "on_good", answer))


def _built(made: Any, crawler: Crawler, config: Mapping[str, Any]) -> Any:
    return build_from_crawler(made, crawler, config) if isinstance(made, type) else made


def _engines(pace: Pace | None) -> Pace:
    return convert_scope(pace or {}).engine

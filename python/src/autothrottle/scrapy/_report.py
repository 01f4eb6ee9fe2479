"""How a request ended, for the engine: status, headers, latency, and what a manager says.

A redirect that asks to wait does not hold the whole host. An exception that is a bug of the program is no
news of the server. Scrapy leaves the latency of the attempt before in ``meta``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals

from .._native import parse_hints, parse_robots
from .._state import ScopeOutcome
from ..errors import ManagerError
from ._managers import checked_backoffs

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from ._managers import Hooks
    from ._options import Exceptions, Options
    from ._permits import Slot

REDIRECT_DELAY = "_throttling_redirect_delay"
"""Where the delay that a redirect asks for waits for the request that follows it: its meta is a copy."""


class Reporter:
    def __init__(self, options: Options, hooks: Hooks, wall: Callable[[], int]) -> None:
        self._options = options
        self._hooks = hooks
        self._wall = wall
        timeouts = [each for each in options.exceptions[None] if "time" in each.__name__.lower()]
        self._timeouts: Exceptions = (TimeoutError, *timeouts)

    async def of_response(
        self, request: Request, response: Response, slot: Slot, report: dict[str, Any]
    ) -> None:
        """Fills the report; what a manager throws leaves in it what the response says by itself."""
        latency = request.meta.get("download_latency")
        report |= {
            "status": response.status,
            "latency": None if latency is None else int(latency * 1e9),
            "adjust_delay": request.meta.get("autothrottle_dont_adjust_delay") is not True,
        }
        if 300 <= response.status < 400 and b"Location" in response.headers:
            self._redirect(request, response)
        else:
            # As they are: Scrapy's own `items` makes each name and value anew.
            headers: Any = response.headers
            fields = dict.items(headers) if isinstance(headers, dict) else headers.items()
            report |= {"headers": fields, "wall": self._wall()}
        if self._hooks.response_backoff or self._hooks.response_delay:
            report |= await self._asked(request, response, slot)

    async def of_exception(
        self, request: Request, exception: Exception, slot: Slot, report: dict[str, Any]
    ) -> None:
        """The same for a request without a response. Left empty: no pace changes."""
        own = any(scope in self._options.exceptions for scope in slot.names)
        bad = [scope for scope in slot.names if self.is_bad_exception(exception, scope)]
        hook = self._hooks.exception_backoff
        if not bad and not own and not hook:
            return
        failure = "timeout" if isinstance(exception, self._timeouts) else "connection"
        # One that is bad is as bad as the settings of its scopes say.
        report |= {"failure": failure, "backoff": None if bad else False}
        others = [scope for scope in slot.names if scope not in bad] if bad else []
        report["scopes"] = [_outcome(slot, scope, {"backoff": False}) for scope in others]
        if hook:
            result = await self._hooks.ask(hook, request, request, exception)
            backoffs = checked_backoffs("get_exception_backoff", result, slot.names)
            if backoffs is not None:
                report |= _of_backoffs(slot, backoffs)

    def is_bad_exception(self, exception: BaseException, scope: str | None = None) -> bool:
        """Whether it makes a scope back off."""
        exceptions = self._options.exceptions
        return isinstance(exception, exceptions.get(scope, exceptions[None]))

    def _redirect(self, request: Request, response: Response) -> None:
        """A redirect's Retry-After is about the request that follows it, not about the host."""
        if b"Retry-After" not in response.headers:
            return
        delay = parse_hints(response.headers, status=response.status, wall=self._wall()).delay
        if delay is None:
            return
        if delay / 1e9 > self._options.redirect_max_delay:
            # As if it were not followed: the redirect itself is the answer.
            request.meta["dont_redirect"] = True
        else:
            request.meta[REDIRECT_DELAY] = delay / 1e9

    async def _asked(self, request: Request, response: Response, slot: Slot) -> dict[str, Any]:
        """The manager's result for an answer."""
        hooks = self._hooks
        backoffs: dict[str, dict[str, Any]] | None = None
        if hooks.response_backoff:
            if response.request is None:
                response.request = request
            result = await hooks.ask(hooks.response_backoff, request, response)
            backoffs = checked_backoffs("get_response_backoff", result, slot.names)
        delay = None
        if hooks.response_delay:
            delay = await hooks.ask(hooks.response_delay, request, response)
            delay = _checked_delay(delay)
        if backoffs is not None:
            held = {} if delay is None else {"delay": delay}
            return _of_backoffs(slot, {name: {**held, **means} for name, means in backoffs.items()})
        if delay is None:
            return {}
        return {"scopes": [_outcome(slot, scope, {"delay": delay}) for scope in slot.names]}


def _of_backoffs(slot: Slot, backoffs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The scopes that an answer concerns; what it is for the others, the engine says."""
    return {
        "scopes": [_outcome(slot, scope, means) for scope, means in backoffs.items()],
        "named_only": True,
    }


def _checked_delay(seconds: Any) -> float | None:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 <= seconds <= 1e9):
        raise ManagerError("get_response_delay", f"gave {seconds!r}; want seconds from 0, or None")
    return None if seconds is None else float(seconds)


def _outcome(slot: Slot, scope: str, means: dict[str, Any]) -> ScopeOutcome:
    def nanos(key: str) -> int | None:
        return None if means.get(key) is None else int(means[key] * 1e9)

    return ScopeOutcome(
        scope=slot.scopes[scope],
        backoff=means.get("backoff"),
        delay=nanos("delay"),
        cost=means.get("consumed_quota"),
        remaining=means.get("remaining_quota"),
        reset=nanos("reset"),
    )


HAS_ROBOTS_SIGNAL = hasattr(signals, "robots_parsed")


def user_agent(settings: BaseSettings, request: Request) -> str:
    """By what name Scrapy goes there, as its middleware finds it."""
    found = settings.get("ROBOTSTXT_USER_AGENT") or request.headers.get(b"User-Agent")
    found = found or settings.get("USER_AGENT") or ""
    return found.decode("latin-1") if isinstance(found, bytes) else str(found)


def delay_of_parser(parser: Any, agent: str) -> float | None:
    """Seconds between two requests that a parsed robots.txt asks for: the slower of its two directives.

    Scrapy tells of each by a signal. Where it has none yet, its middleware's response is read.
    """
    delays = []
    reads = getattr(parser, "crawl_delay", None) or getattr(getattr(parser, "rp", None), "crawl_delay", None)
    if reads is not None:
        delays.append(reads(agent))
    rate = getattr(getattr(parser, "rp", None), "request_rate", None)
    result = rate(agent) if rate is not None else None
    if result is not None and result.requests > 0:
        delays.append(result.seconds / result.requests)
    return max((float(each) for each in delays if each is not None and each >= 0), default=None)


def delay_of_response(request: Request, response: Response, agent: str) -> float | None:
    """The same from the file itself, if this is one that Scrapy's middleware asked for."""
    if not request.meta.get("dont_obey_robotstxt") or not request.url.endswith("/robots.txt"):
        return None
    if response.status != 200:
        return None
    delay = parse_robots(response.body, agent)
    return None if delay is None else delay / 1e9

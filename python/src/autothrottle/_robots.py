"""robots.txt for the transports: once per host, through the throttle, by the rules of RFC 9309 §2.3.1.

| answer | what it means |
|---|---|
| 2xx | what it says; kept for a day |
| 4xx | no rules |
| 5xx, no answer | no URL of the host may be fetched: asked again after a minute |

The trap is a hundred first requests to a host that each ask for the file: one of them asks, the others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from ._clock import NANOS, Clock, nanos
from ._outcome import answer_in
from .errors import DisallowedError

if TYPE_CHECKING:
    from ._exchange import Call, Core

RobotsRules: TypeAlias = Callable[[str, str, str], Callable[[str], bool]]
"""Reads a robots.txt and says which URLs may be fetched: ``rules(robots_url, text, user_agent)(url)``."""

_DAY = 86_400 * NANOS
_MINUTE = 60 * NANOS
_MOST_BYTES = 512_000
_MOST_HOSTS = 10_000
_MOST_REDIRECTS = 5


class _Known:
    """What is known of one host."""

    __slots__ = ("is_allowed", "lock", "until", "why")

    def __init__(self, lock: AbstractAsyncContextManager[Any]) -> None:
        self.lock = lock
        self.until = 0
        self.is_allowed: Callable[[str], bool] = lambda _: True
        self.why: BaseException | None = None
        """Why the file could not be had."""


class Robots:
    """Asks each host once."""

    def __init__(
        self, options: Mapping[str, Any], clock: Clock, lock: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> None:
        self._user_agent: str = options["user_agent"]
        self._rules: RobotsRules | None = options.get("rules")
        self._max_delay = nanos("robots.max_delay", options.get("max_delay", 60.0)) / NANOS
        self._clock = clock
        self._lock = lock
        self._known: dict[str, _Known] = {}

    async def admit(self, core: Core, call: Call[Any]) -> None:
        """Returns when the host's robots.txt is known and allows the URL.

        :raises DisallowedError: if it does not, or could not be had.
        """
        url = call.request.url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.path == "/robots.txt":
            return
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
        known = self._known.get(origin)
        if known is None:
            if len(self._known) >= _MOST_HOSTS:
                del self._known[next(iter(self._known))]
            known = self._known[origin] = _Known(self._lock())
        if known.until <= self._clock.now():
            async with known.lock:
                if known.until <= self._clock.now():
                    await self._ask(core, call, origin, known)
        if known.why is not None:
            raise DisallowedError(f"robots.txt of {parts.netloc} could not be had", True) from known.why
        if not known.is_allowed(url):
            raise DisallowedError(f"robots.txt of {parts.netloc} does not allow {url}")

    async def _ask(self, core: Core, call: Call[Any], origin: str, known: _Known) -> None:
        url = f"{origin}/robots.txt"
        try:
            text = await self._follow(core, call, url)
        except Exception as error:
            known.why, known.until = error, self._clock.now() + _MINUTE
            return
        known.why, known.until = None, self._clock.now() + _DAY
        core.robots(url, text, user_agent=self._user_agent, max_delay=self._max_delay)
        if self._rules is not None:
            known.is_allowed = self._rules(url, text.decode("utf-8", "replace"), self._user_agent)

    async def _follow(self, core: Core, call: Call[Any], url: str) -> bytes:
        """The file, wherever redirects lead; no rules after too many of them."""
        from ._exchange import _REDIRECTS, exchange, place_of

        for _ in range(_MOST_REDIRECTS + 1):
            exchanged = await exchange(core, call.get(url, self._user_agent), asks_robots=False)
            response, text, place = exchanged.response, b"", None
            try:
                answer = answer_in(response)
                status = answer.status if answer is not None else 0
                if status >= 500:
                    raise OSError(f"{url} answered {status}")
                if status in _REDIRECTS:
                    place = place_of(url, answer.headers if answer is not None else None)
                elif 200 <= status < 300:
                    text = await call.read(response, _MOST_BYTES)
            finally:
                await call.discard(response)
                if exchanged.release is not None:
                    exchanged.release(None)
            if place is None:
                return text[:_MOST_BYTES]
            url = place
        return b""

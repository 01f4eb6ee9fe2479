"""Scrapy's downloader in virtual time: a clock that is set, and a server that is a function.

No test sleeps: `advance` moves the clock from timer to timer and lets the loop run dry after each.
"""

from __future__ import annotations

import asyncio
import heapq
import importlib
import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings

from autothrottle.scrapy import Downloader

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

SECOND = 10**9


async def _at_once(*_: object) -> None:
    """In place of the tenth of a second that older Scrapy sleeps after each exception."""


for module in ("scrapy.core.downloader", "scrapy.core.downloader.middleware"):
    vars(importlib.import_module(module)).update(_defer_sleep_async=_at_once)


class _Timer:
    def __init__(self) -> None:
        self.is_over = False

    def cancel(self) -> None:
        self.is_over = True


class FakeClock:
    def __init__(self) -> None:
        self.at = 1000 * SECOND
        self._timers: list[tuple[int, int, _Timer, Callable[[], object]]] = []
        self._count = itertools.count()

    def now(self) -> int:
        return self.at

    def wall(self) -> int:
        return 1_700_000_000 * SECOND + self.at

    def call_later(self, seconds: float, function: Callable[[], object]) -> _Timer:
        timer = _Timer()
        at = self.at + round(seconds * SECOND)
        heapq.heappush(self._timers, (at, next(self._count), timer, function))
        return timer

    async def advance(self, seconds: float) -> None:
        """Goes on for so long, with every timer at its time."""
        end = self.at + round(seconds * SECOND)
        await settle()
        while self._timers and self._timers[0][0] <= end:
            at, _, timer, function = heapq.heappop(self._timers)
            if timer.is_over:
                continue
            self.at = max(self.at, at)
            timer.is_over = True
            function()
            await settle()
        self.at = end


async def settle() -> None:
    """Lets all that can run do so."""
    for _ in range(30):
        await asyncio.sleep(0)


class Server:
    """Answers after a latency, and notes when each request came."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.start = clock.at
        self.latency = 0.0
        self.sent: list[tuple[float, str]] = []
        self.answer: Callable[[Request], Response | Exception] = lambda request: Response(
            request.url, request=request
        )

    async def __call__(self, request: Request) -> Response:
        self.sent.append((round((self.clock.at - self.start) / SECOND, 6), request.url))
        if self.latency:
            gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.clock.call_later(self.latency, lambda: gate.set_result(None))
            await gate
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        request.meta["download_latency"] = self.latency
        return answer

    @property
    def times(self) -> list[float]:
        """When each request came, in seconds."""
        return [at for at, _ in self.sent]


class Bench:
    """A downloader with its clock and server."""

    def __init__(self, settings: dict[str, Any], spider: type[Spider] = Spider, **attributes: Any) -> None:
        self.clock = FakeClock()
        self.server = Server(self.clock)
        self.crawler = crawler_of(settings, spider, **attributes)
        fake = type("FakeTime", (Downloader,), {"clock": self.clock})
        self.downloader: Downloader = fake(self.crawler)
        handlers: Any = self.downloader.handlers
        handlers.download_request_async = self.server
        self.crawler.engine = SimpleNamespace(  # type: ignore[assignment]
            downloader=self.downloader, close_spider_async=None, _slot=None
        )
        self.results: list[Any] = []

    def get(self, url: str, **keywords: Any) -> asyncio.Future[Any]:
        """Fetches, as Scrapy's engine does."""
        return self.fetch(Request(url, dont_filter=True, **keywords))

    def fetch(self, request: Request, is_scheduled: bool = False) -> asyncio.Future[Any]:
        if is_scheduled:
            self.downloader._closing._scheduled = request
        fetched = asyncio.ensure_future(self.downloader.fetch(request).asFuture(asyncio.get_running_loop()))
        fetched.add_done_callback(lambda done: done.cancelled() or done.exception())
        return fetched

    def slot(self, key: str) -> Any:
        return self.downloader.slots[key]

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"throttling/{name}")


def crawler_of(settings: dict[str, Any], spider: type[Spider] = Spider, **attributes: Any) -> Crawler:
    loop()
    made = Settings(
        {
            "TWISTED_REACTOR": "",
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https", "ftp", "s3", "data", "file")),
            "EXTENSIONS": {},
            "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None},
            "RETRY_ENABLED": False,
            "REDIRECT_ENABLED": False,
        }
        | settings
    )
    crawler = Crawler(spider, made, init_reactor=False)
    crawler.spider = crawler._create_spider(**({"name": "test"} | attributes))
    crawler._apply_settings()
    return crawler


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in the loop of Scrapy's reactor."""
    from functools import wraps

    @wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        loop().run_until_complete(test(*arguments, **keywords))

    return run


_loop: asyncio.AbstractEventLoop | None = None


def loop() -> asyncio.AbstractEventLoop:
    """One loop for all tests, with Twisted's reactor on it: older Scrapy asks which reactor is there."""
    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
        from twisted.internet import asyncioreactor

        asyncioreactor.install(_loop)  # type: ignore[no-untyped-call]
    return _loop

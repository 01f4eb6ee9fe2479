"""A spider that is stopped while requests wait: they go back to the scheduler, and it ends at once.

Scrapy first waits for all that its downloader has, which at one request in ten seconds is minutes. The traps:
a request that is lost to a crawl with a JOBDIR; an errback that is called for a request which will be sent
after all; and a request that bypassed the scheduler (`engine.download_async`), which must not go there.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from scrapy import signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler


class Closing:
    """Hears that the spider is about to close, and from whom each request came."""

    def __init__(self, crawler: Crawler, on_close: Callable[[], None]) -> None:
        self._crawler = crawler
        self._on_close = on_close
        self._scheduled: Request | None = None
        self.has_begun = False
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    def was_scheduled(self, request: Request) -> bool:
        """Whether the scheduler gave this request just now: the engine fetches it in the same breath."""
        scheduled, self._scheduled = self._scheduled, None
        return scheduled is request

    def _spider_opened(self) -> None:
        engine: Any = self._crawler.engine
        # Scrapy sends no signal before it waits, so its public method is what tells.
        close = engine.close_spider_async

        @wraps(close)
        async def closing(*arguments: Any, **keywords: Any) -> None:
            if not self.has_begun:
                self.has_begun = True
                self._on_close()
            await close(*arguments, **keywords)

        engine.close_spider_async = closing
        scheduler = getattr(getattr(engine, "_slot", None), "scheduler", None)
        if scheduler is None:
            return
        next_request = scheduler.next_request

        @wraps(next_request)
        def noted() -> Request | None:
            self._scheduled = next_request()
            return self._scheduled

        scheduler.next_request = noted


def sent_back(request: Request) -> Request:
    """The request as the scheduler may have it again, which has seen it before."""
    again = request.copy()
    again.dont_filter = True
    return again

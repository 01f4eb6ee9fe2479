"""Requests that may not leave stay in Scrapy's scheduler, but for a few of each slot.

Scrapy's queue takes from the slot with the fewest requests in the downloader; here it does not see a slot
that has enough there: three hundred requests of one slow host would take every place before any other host is
known. A request that was taken but waits for a robots.txt counts here, and not in Scrapy.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

_MOST_OF_A_SLOT = 4
"""One that is next, and some to follow it at once; for each that flies two more, since that slot is fast."""
_MOST = 1000
"""Of all slots: four of each of 250 hosts that hold."""
_MOST_BLINDLY = 64
"""With a queue that knows no slots: any of them may be of one host."""


class Ahead:
    """The requests that were taken from the scheduler: those that wait to leave, and those that have left."""

    def __init__(self, crawler: Crawler, most: int | None, concurrency: int) -> None:
        self._crawler = crawler
        self._typed = most
        self._most = most or max(_MOST_BLINDLY, concurrency if concurrency <= _MOST else 0)
        self._concurrency = concurrency or math.inf
        self._slots: dict[str, list[int]] = {}
        """How many of a slot wait, and how many fly."""
        self._full: set[str] = set()
        """Slots of which no more should be taken."""
        self._requests: dict[Request, str] = {}
        self._flying: dict[Request, str] = {}
        self._queues: list[DownloaderAwarePriorityQueue] = []
        self._left_some = False
        """Whether some were left in the scheduler: then one that leaves makes room."""
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    def is_enough(self, active: int, others: int) -> bool:
        """Whether no more should be taken: beside `active` requests that do not wait for their scopes, and
        `others` that wait without having been taken from there.
        """
        is_enough = (
            active >= self._concurrency or len(self._requests) + others >= self._most or self._are_full()
        )
        self._left_some |= is_enough
        return is_enough

    def take(self, request: Request, slot: str) -> None:
        """The scheduler gave this one."""
        self._requests[request] = slot
        self._count(slot, 1, 0)

    def waits(self) -> None:
        """One of them waits for its scopes: it makes room for those of other scopes."""
        if not self._left_some:
            return
        self._left_some = False
        nextcall = getattr(getattr(self._crawler.engine, "_slot", None), "nextcall", None)
        if nextcall is not None:
            nextcall.schedule()

    def remove(self, request: Request) -> None:
        """It was sent: another may be taken."""
        slot = self._requests.pop(request, None)
        if slot is not None:
            self._flying[request] = slot
            self._count(slot, -1, 1)
            self.waits()

    def end(self, request: Request) -> None:
        """It is over, whether it was sent or not."""
        slot = self._flying.pop(request, None)
        if slot is not None:
            self._count(slot, 0, -1)
            return
        slot = self._requests.pop(request, None)
        if slot is not None:
            self._count(slot, -1, 0)
            self.waits()

    def room_of(self, slot: str) -> int | None:
        """How many of a slot are in the downloader; None if that is enough of it."""
        if slot in self._full:
            self._left_some = True
            return None
        waiting, flying = self._slots.get(slot, (0, 0))
        return waiting + flying

    def _count(self, slot: str, waiting: int, flying: int) -> None:
        counts = self._slots.setdefault(slot, [0, 0])
        counts[0] += waiting
        counts[1] += flying
        waiting, flying = counts
        # Never more than Scrapy would take of a slot: so its order is no other than Scrapy's.
        if waiting >= _MOST_OF_A_SLOT + 2 * flying or waiting + flying >= self._concurrency:
            self._full.add(slot)
        else:
            self._full.discard(slot)
            if not waiting and not flying:
                del self._slots[slot]

    def _are_full(self) -> bool:
        """Whether there are requests in the scheduler, and each is of a slot that has enough."""
        full = self._full
        found = False
        for queue in self._queues:
            slots = queue.pqueues
            if len(full) < len(slots) or not full.issuperset(slots):
                return False
            found |= bool(slots)
        return found

    def _spider_opened(self) -> None:
        scheduler: Any = getattr(getattr(self._crawler.engine, "_slot", None), "scheduler", None)
        for name in ("mqs", "dqs"):
            queue = getattr(scheduler, name, None)
            if isinstance(queue, DownloaderAwarePriorityQueue):
                queue._downloader_interface = _Slots(self._crawler, self.room_of)
                self._queues.append(queue)
                self._most = self._typed or _MOST


class _Slots(DownloaderInterface):
    """The downloader, as Scrapy's queue reads it: how busy each slot is."""

    def __init__(self, crawler: Crawler, room_of: Callable[[str], int | None]) -> None:
        super().__init__(crawler)
        self._room_of = room_of

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The slots of which more may be taken, with the requests that they have in the downloader."""
        rooms = ((self._room_of(name), name) for name in possible_slots)
        return [(there, name) for there, name in rooms if there is not None]


class Closing:
    """Hears that the spider is about to close, and from whom each request came.

    Scrapy first waits for all that its downloader has, which at one request in ten seconds is minutes. A
    request from the scheduler goes back to it; what bypassed it (`engine.download_async`) must not go there.
    """

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

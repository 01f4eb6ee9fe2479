"""Requests that may not leave stay in Scrapy's scheduler, but for a few of each slot.

Scrapy's queue takes from the slot with the fewest requests in the downloader; here it does not see a slot
that has enough there. The traps: a spider that begins with three hundred requests of one slow host, which
would take every place before any other host is known; and a request that was taken but has not reached the
downloader yet (it waits for a robots.txt), which Scrapy does not count.
"""

from __future__ import annotations

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
    """The requests that were taken from the scheduler and have not left."""

    def __init__(self, crawler: Crawler, most: int | None, concurrency: int) -> None:
        self._crawler = crawler
        self._typed = most
        self._most = most or max(_MOST_BLINDLY, concurrency if concurrency <= _MOST else 0)
        self._slots: dict[str, int] = {}
        self._requests: dict[Request, str] = {}
        self._left_some = False
        """Whether some were left in the scheduler: then one that leaves makes room."""
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)

    def is_enough(self, others: int) -> bool:
        """Whether no more should be taken, beside others that wait without having been taken from there."""
        is_enough = len(self._requests) + others >= self._most
        self._left_some |= is_enough
        return is_enough

    def take(self, request: Request, slot: str) -> None:
        """The scheduler gave this one."""
        self._requests[request] = slot
        self._slots[slot] = self._slots.get(slot, 0) + 1

    def leave(self, request: Request) -> None:
        """It was sent, or it will not be: another may be taken."""
        slot = self._requests.pop(request, None)
        if slot is None:
            return
        left = self._slots[slot] - 1
        if left:
            self._slots[slot] = left
        else:
            del self._slots[slot]
        if not self._left_some:
            return
        self._left_some = False
        nextcall = getattr(getattr(self._crawler.engine, "_slot", None), "nextcall", None)
        if nextcall is not None:
            nextcall.schedule()

    def room_for(self, slot: str, flying: int) -> int | None:
        """How many of a slot were taken and have not left; None if that is enough of it."""
        taken = self._slots.get(slot, 0)
        if taken < _MOST_OF_A_SLOT + 2 * flying:
            return taken
        self._left_some = True
        return None

    def _spider_opened(self) -> None:
        scheduler: Any = getattr(getattr(self._crawler.engine, "_slot", None), "scheduler", None)
        for name in ("mqs", "dqs"):
            queue = getattr(scheduler, name, None)
            if isinstance(queue, DownloaderAwarePriorityQueue):
                queue._downloader_interface = _Slots(self._crawler, self.room_for)
                self._most = self._typed or _MOST


class _Slots(DownloaderInterface):
    """What Scrapy's queue asks of the downloader: how busy each slot is."""

    def __init__(self, crawler: Crawler, room_for: Callable[[str, int], int | None]) -> None:
        super().__init__(crawler)
        self._room_for = room_for

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """The slots of which more may be taken, with the requests that they have in the downloader."""
        found = []
        for name in possible_slots:
            slot = self.downloader.slots.get(name)
            flying = len(slot.transferring) if slot else 0
            ahead = self._room_for(name, flying)
            if ahead is not None:
                found.append((ahead + flying, name))
        return found

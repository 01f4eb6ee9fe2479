"""``DOWNLOADER = "autothrottle.scrapy.Downloader"``: Scrapy's downloader, in which the engine says when.

One request's way: Scrapy's queue asks for its slot (the scopes) → `_enqueue_request` → a ticket that waits →
`_download`, which is Scrapy's → a report → the answer. Requests that wait are counted in their slot, where
Scrapy's queue sees them. Only a few are taken ahead: one slow host does not fill all places.
AutoThrottle does not run beside its successor.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.downloader import Downloader as ScrapysDownloader
from scrapy.exceptions import IgnoreRequest
from scrapy.extensions.throttle import AutoThrottle
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler

from .._permit import Started
from ..errors import ConfigError, ThrottleError
from ._managers import Hooks, ScopeAnswer, Strategies, ThrottlingManager
from ._notifier import Notifier, logger
from ._options import is_typed, read_options
from ._permits import PermitQueue, ReactorClock, Slot, restore, save
from ._queue import Ahead, Closing, sent_back
from ._report import (
    HAS_ROBOTS_SIGNAL,
    REDIRECT_DELAY,
    Reporter,
    delay_of_parser,
    delay_of_response,
    user_agent,
)
from ._shared import GroupListener, leave, make_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from .._clock import Clock

_OUR_SLOT = "_throttling_slot"
"""Where the slot that we gave a request stands: one in ``download_slot`` that differs is the user's."""


class Downloader(ScrapysDownloader):
    """Sends a request when all of its scopes allow it."""

    clock: Clock = ReactorClock()

    def __init__(self, crawler: Crawler) -> None:
        self._permits: PermitQueue | None = None
        self._options = options = read_options(crawler.settings, crawler.spider)
        try:
            engine = make_engine(options, self.clock)
        except ConfigError as error:
            raise options.translate(error) from None
        with _jitter_of_scrapys(crawler.settings, options.engine["defaults"].get("jitter")):
            super().__init__(crawler)
        self._notifier = Notifier(crawler, options)
        self._notifier.paces()
        self._strategies = Strategies(crawler, options)
        self._is_told = options.debug or self._strategies.are_there
        engine.watch("answers" if self._is_told else "changes")
        self._permits = PermitQueue(engine, self.clock, self._notice)
        if options.shared_url is not None:
            engine.listen(GroupListener(self._permits, self._notifier))
        self._hooks = Hooks(_manager(crawler, options.manager or ThrottlingManager))
        self._reporter = Reporter(options, self._hooks, self.clock.wall)
        self._handles: dict[str, tuple[int, int]] = {}
        self._bypassing: set[Request] = set()
        self._waiting_bypassing = 0
        self._answered: tuple[Slot, Response | None, BaseException | None, float | None] | None = None
        self._failed: Exception | None = None
        self._closing = Closing(crawler, self._permits.stop)
        self._ahead = Ahead(crawler, options.lookahead, options.engine.get("maxInFlight", 0))
        self._codes: dict[str, tuple[int, ...]] = {}
        self._jobdir = job_dir(crawler.settings)
        if self._jobdir and restore(self._permits, self._jobdir):
            self._notifier.count("restored")
        _replace_autothrottle(crawler)
        if options.obeys_robots and HAS_ROBOTS_SIGNAL:
            crawler.signals.connect(self._robots_parsed, signal=signals.robots_parsed)

    # Methods that Scrapy calls

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Response | Request]:
        """Sends a request through the middlewares."""
        if self._closing.was_scheduled(request):
            self._ahead.take(request, self.get_slot_key(request))
        else:
            self._bypassing.add(request)
        return super().fetch(request).addBoth(self._passed, request)

    def needs_backout(self) -> bool:
        """Whether the downloader is full: as many requests as Scrapy allows do not wait for their scopes, or
        enough of each slot wait.
        """
        active = len(self.active) - (self._permits.waiting if self._permits is not None else 0)
        return self._closing.has_begun or self._ahead.is_enough(active, self._waiting_bypassing)

    def get_slot_key(self, request: Request) -> str:
        """The name of the request's slot: its scopes; its host where they cannot be said yet."""
        typed = self._typed_slot(request)
        if typed is not None:
            return typed
        try:
            names = self._hooks.scopes_now(request)
        except Exception:
            # Wrong ones fail the request when it is sent; here it would stop the crawl.
            names = None
        return urlparse_cached(request).hostname or "" if names is None else "+".join(names)

    def close(self) -> None:
        """The spider closed: what was learned is kept."""
        super().close()
        permits, self._permits = self._permits, None
        if permits is None:
            return
        permits.close()
        self._notifier.closed(permits)
        if self._jobdir:
            save(permits, self._jobdir)
        leave(permits.engine)

    def is_bad_status(self, status: int) -> bool:
        """Whether BACKOFF_HTTP_CODES has it."""
        backoff = self._options.engine["defaults"]["backoff"]
        return isinstance(backoff, dict) and status in backoff["statusCodes"]

    def is_bad_exception(self, exception: BaseException) -> bool:
        """Whether BACKOFF_EXCEPTIONS has it."""
        return self._reporter.is_bad_exception(exception)

    # One request

    async def _enqueue_request(self, request: Request) -> Response | Request:  # type: ignore[override]
        typed = self._typed_slot(request)
        costs = {typed: None} if typed is not None else await self._hooks.scopes(request)
        key = self.get_slot_key(request)
        if self._closing.has_begun:
            return self._give_back(request)
        slot = self._slot(key, list(costs))
        if typed is None:
            request.meta[_OUR_SLOT] = key
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self.signals.send_catch_log(
            signal=signals.request_reached_downloader, request=request, spider=self.crawler.spider
        )
        try:
            if not slot.names:
                return await self._download(slot, request)  # type: ignore[arg-type]
            return await self._throttled(slot, request, [1.0 if c is None else c for c in costs.values()])
        finally:
            slot.active.remove(request)
            slot.lastseen = time.monotonic()

    async def _throttled(self, slot: Slot, request: Request, costs: list[float]) -> Response | Request:
        permits = self._permits
        assert permits is not None
        only_ones = all(each == 1 for each in costs)
        delay = _own_delay(request)
        sent = self.clock.now()
        ticket, gate = permits.submit(slot.handles, None if only_ones else costs, request.priority, delay)
        self._notifier.count("requests")
        if gate is not None:
            self._notifier.count("delayed")
            bypasses = request in self._bypassing
            self._waiting_bypassing += bypasses
            self._notifier.waiting(self._waiting_bypassing)
            self._ahead.waits()
            try:
                at = await maybe_deferred_to_future(gate)
            except ThrottleError:
                raise  # It was not taken in: there is nothing to give back.
            except BaseException:
                permits.cancel(ticket)
                raise
            finally:
                self._waiting_bypassing -= bypasses
            if at is None:
                return self._give_back(request)
            sent = at
            permits.report_sent(ticket, sent)
        self._ahead.remove(request)
        permits.departs(ticket, slot)
        report: dict[str, Any] = {}
        heard: tuple[Response | None, BaseException | None] = None, None
        # Scrapy leaves the latency of the attempt before where it was.
        request.meta.pop("download_latency", None)
        try:
            for name in slot.names if self._strategies.are_there else ():
                self._configure(slot, name, self._strategies.on_send(name))
            try:
                started = partial(permits.report_sent, ticket, sent)
                response = await Started(self._download(slot, request), started)  # type: ignore[arg-type]
            except Exception as error:
                answer = getattr(error, "response", None)
                heard = answer, None if answer is not None else error
                if answer is not None:
                    await self._reporter.of_response(request, answer, slot, report)
                else:
                    await self._reporter.of_exception(request, error, slot, report)
                raise
            heard = response, None
            await self._reporter.of_response(request, response, slot, report)
            if self._options.obeys_robots and not HAS_ROBOTS_SIGNAL:
                agent = user_agent(self.settings, request)
                self._crawl_delay(request, delay_of_response(request, response, agent))
        finally:
            self._settle(ticket, slot, request, heard, report)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return response

    def _settle(
        self,
        ticket: int,
        slot: Slot,
        request: Request,
        heard: tuple[Response | None, BaseException | None],
        report: dict[str, Any],
    ) -> None:
        permits = self._permits
        if permits is None:
            return
        slot.was_answered = slot.was_answered or heard[0] is not None
        if self._is_told:
            self._answered = slot, *heard, request.meta.get("download_latency")
        try:
            permits.settle(ticket, report)
        finally:
            self._answered = None

    def _process_queue(self, slot: Any) -> None:
        """Scrapy's way to send what waits in a slot. No request does."""

    def _give_back(self, request: Request) -> Request:
        """A request that waits while the spider closes goes back to the scheduler, if it came from there."""
        if request in self._bypassing:
            raise IgnoreRequest("the spider closes")
        self._notifier.sent_back(request)
        return sent_back(request)

    def _passed(self, result: Any, request: Request) -> Any:
        self._bypassing.discard(request)
        self._ahead.end(request)
        return result

    # Slots and scopes

    def _typed_slot(self, request: Request) -> str | None:
        """A ``download_slot`` of the user's own. One that we gave is found anew: a redirect changes hosts."""
        meta = request.meta
        slot = meta.get(self.DOWNLOAD_SLOT)
        if slot is None or "throttling_scopes" in meta or slot == meta.get(_OUR_SLOT):
            return None
        return str(slot)

    def _slot(self, key: str, names: list[str]) -> Slot:
        slot: Any = self.slots.get(key)
        if slot is None or slot.names != tuple(names):
            slot = Slot(self._permits, names, self._take_handle)  # type: ignore[arg-type]
            self.slots[key] = slot
            collect = getattr(self, "_start_slot_gc", None)
            if collect is not None:
                collect()
        return slot  # type: ignore[no-any-return]

    def _get_slot(self, request: Request, spider: Spider | None = None) -> tuple[str, Any]:
        key = self.get_slot_key(request)
        names = self._hooks.scopes_now(request)
        typed = self._typed_slot(request)
        return key, self._slot(key, [typed] if typed is not None else list(names or ([key] if key else [])))

    def _slot_gc(self, age: float = 60) -> None:
        """Forgets unused slots; what the engine learned stays."""
        for key, slot in list(self.slots.items()):
            if not slot.active:
                del self.slots[key]
                self._give_handles(slot)  # type: ignore[arg-type]

    def _take_handle(self, name: str) -> int:
        assert self._permits is not None
        handle, users = self._handles.get(name, (None, 0))
        if handle is None:
            handle = self._permits.engine.scope(name)
            told = self._strategies.begin(name)
            if told:
                self._permits.engine.configure(self.clock.now(), handle, told)
        self._handles[name] = handle, users + 1
        return handle

    def _give_handles(self, slot: Slot) -> None:
        for name in slot.names:
            handle, users = self._handles[name]
            if users > 1:
                self._handles[name] = handle, users - 1
            elif self._permits is not None:
                del self._handles[name]
                self._strategies.forget(name)
                self._permits.engine.release(handle)

    def _configure(self, slot: Slot, name: str, told: dict[str, Any]) -> None:
        if told and self._permits is not None:
            self._permits.engine.configure(self.clock.now(), slot.scopes[name], told)
            self._permits.drain()

    # Notices of the engine

    def _notice(self, notice: Any) -> None:
        if notice.kind != "answer":
            self._notifier.notice(notice)
            return
        if self._answered is None:
            return
        slot, response, exception, latency = self._answered
        name = notice.scope
        if self._options.debug and response is not None and name == slot.names[0]:
            self._notifier.debug(slot, notice.delay_before / 1e9, notice.delay / 1e9, latency, response)
        if self._strategies.are_there:
            status = response.status if response is not None else None
            answer = ScopeAnswer(name, status, exception, latency)
            try:
                self._configure(slot, name, self._strategies.on_answer(answer, notice.is_bad))
            except Exception as error:
                self._failed = error

    # robots.txt

    def _robots_parsed(self, robotparser: Any, request: Request) -> None:
        agent = user_agent(self.settings, request)
        self._crawl_delay(request, delay_of_parser(robotparser, agent))

    def _crawl_delay(self, request: Request, seconds: float | None) -> None:
        """The host's own scope keeps to it, or if the request has none, all of its scopes do."""
        if seconds is None or self._permits is None:
            return
        seconds = min(seconds, self._options.robots_max_delay)
        host = urlparse_cached(request)
        names = list(self._hooks.scopes_now(request) or [host.hostname or ""])
        own = [name for name in names if name in (host.hostname, host.netloc)]
        engine, now = self._permits.engine, self.clock.now()
        for name in own or names:
            outcome = engine.crawl_delay(now, engine.intern(name), int(seconds * 1e9))
            self._notifier.robots(name, seconds, outcome)
        self._permits.drain()


@contextmanager
def _jitter_of_scrapys(settings: BaseSettings, jitter: Any) -> Iterator[None]:
    """Scrapy reads jitter as a number or as a flag: a range, and what a command line gives, would stop it."""
    most = (
        max(map(abs, jitter)) if isinstance(jitter, list) else 0.5 if jitter is True else float(jitter or 0)
    )
    kept = []
    for name, value in (("DOWNLOAD_DELAY_JITTER", most), ("RANDOMIZE_DOWNLOAD_DELAY", most > 0)):
        attribute = settings.attributes.get(name)
        if attribute is not None and is_typed(settings, name):
            kept.append((attribute, attribute.value))
            attribute.value = value
    try:
        yield
    finally:
        for attribute, value in kept:
            attribute.value = value


def _manager(crawler: Crawler, typed: Any) -> Any:
    return build_from_crawler(typed, crawler) if isinstance(typed, type) else typed


def _own_delay(request: Request) -> int:
    """Nanoseconds that the request itself waits at least: once, not with each retry."""
    meta = request.meta
    asked = meta.pop(REDIRECT_DELAY, None)
    if asked is None and not meta.get("retry_times") and not meta.get("redirect_times"):
        asked = meta.get("throttling_delay", meta.get("delay"))
    if asked is None:
        return 0
    if isinstance(asked, bool) or not isinstance(asked, (int, float)) or not 0 <= asked < 1e9:
        raise TypeError(f"meta throttling_delay (or delay): want seconds from 0; got {asked!r}")
    return int(asked * 1e9)


def _replace_autothrottle(crawler: Crawler) -> None:
    """Scrapy's extension would change delays in vain, and print each line twice."""
    for extension in getattr(crawler.extensions, "middlewares", ()):
        if isinstance(extension, AutoThrottle):
            crawler.signals.disconnect(extension._spider_opened, signal=signals.spider_opened)
            crawler.signals.disconnect(extension._response_downloaded, signal=signals.response_downloaded)
            if type(extension) is not AutoThrottle:
                logger.warning("%s is replaced by AutoThrottle in the engine", type(extension).__name__)

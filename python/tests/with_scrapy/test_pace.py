"""Requests leave as the settings and the draft's examples say, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from harness import SECOND, Bench, settle, virtual
from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.squeues import LifoMemoryQueue
from twisted.internet import error

from autothrottle.errors import CostExceedsQuotaError, ScopeDownError

EXACT = {"RANDOMIZE_DOWNLOAD_DELAY": False, "BACKOFF_JITTER": 0}
FREE = {**EXACT, "DOWNLOAD_DELAY": 0, "DOWNLOAD_DELAY_PER_SLOT": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}


def answers(bench: Bench, status: int, headers: dict[str, str] | None = None) -> None:
    bench.server.answer = lambda request: Response(
        request.url, status=status, headers=headers or {}, request=request
    )


@virtual
async def test_the_drafts_example_to_the_millisecond() -> None:
    bench = Bench({**EXACT, "CONCURRENT_REQUESTS_PER_DOMAIN": 2, "DOWNLOAD_DELAY": 0.3})
    for index in range(3):
        bench.get(f"https://a.example/{index}")
    await bench.clock.advance(3)
    assert bench.server.times == [0, 0.3, 1.0]


@virtual
async def test_a_second_between_two_and_one_at_a_time_where_nobody_said_anything() -> None:
    bench = Bench(EXACT)
    fetched = [bench.get(f"https://a.example/{index}") for index in range(3)]
    other = bench.get("https://b.example/")
    await settle()
    assert [each.done() for each in fetched] == [True, False, False]
    assert other.done(), "a waiting host never slows another"
    await bench.clock.advance(5)
    assert bench.server.times == [0, 0, 1, 2]
    assert [each.result().status for each in fetched] == [200] * 3
    assert (bench.stat("requests"), bench.stat("delayed")) == (4, 2)


@virtual
async def test_a_gap_counts_from_when_the_reactor_lets_the_bytes_leave() -> None:
    bench = Bench({**EXACT, "DOWNLOAD_DELAY": 1})
    bench.server.latency = 0.1
    bench.get("https://a.example/0")
    await settle()
    # As a long `start()` does: no timer fires, and the connection that was started gets no further.
    bench.clock.at += 3 * SECOND // 2
    bench.get("https://a.example/1")
    await bench.clock.advance(5)
    assert bench.server.times == [0, 2.5], "the first left after 1.5 s"
    # The connection is there: what keeps the reactor a moment later keeps no bytes.
    bench.get("https://a.example/2")
    await bench.clock.advance(0.05)
    bench.clock.at += 3 * SECOND // 2
    bench.get("https://a.example/3")
    await bench.clock.advance(5)
    assert bench.server.times[2:] == [6.5, 8.05]


@virtual
async def test_scopes_of_the_drafts_default() -> None:
    scopes = {"quotes.toscrape.com": {"concurrency": 16, "delay": 0.0}}
    bench = Bench({**EXACT, "THROTTLING_SCOPES": scopes})
    bench.server.latency = 0.5
    for index in range(20):
        bench.get(f"https://quotes.toscrape.com/{index}")
    await bench.clock.advance(0.1)
    assert len(bench.server.sent) == 16, "16 slots"
    await bench.clock.advance(1)
    assert bench.server.times[16:] == [1.0] * 4, "a slot rests for a second, as the draft says"


@virtual
async def test_scopes_in_meta_as_text_set_and_costs() -> None:
    scopes = {"api": {"concurrency": 2, "delay": 0}, "users": {"delay": 5.0}, "cost": {"quota": 100.0}}
    bench = Bench({**FREE, "THROTTLING_SCOPES": scopes})
    bench.get("https://a.example/", meta={"throttling_scopes": {"api", "users"}})
    bench.get("https://b.example/", meta={"throttling_scopes": "users"})
    bench.get("https://c.example/", meta={"throttling_scopes": "api"})
    costly = {"throttling_scopes": {"cost": 60.0}}
    bench.get("https://d.example/1", meta=costly)
    bench.get("https://d.example/2", meta=costly)
    await bench.clock.advance(100)
    assert bench.server.sent == [
        (0, "https://a.example/"),
        (0, "https://c.example/"),
        (0, "https://d.example/1"),
        (5, "https://b.example/"),
        (60, "https://d.example/2"),
    ]


@virtual
async def test_a_quota_beside_a_pace_for_hosts_is_no_pace() -> None:
    bench = Bench({**EXACT, "DOWNLOAD_DELAY": 0, "THROTTLING_SCOPES": {"cost": {"quota": 100.0}}})
    for index in range(21):
        bench.get(f"https://{index}.example/", meta={"throttling_scopes": {f"{index}.example": 1, "cost": 5}})
    await bench.clock.advance(59)
    assert bench.server.times == [0] * 20
    await bench.clock.advance(2)
    assert bench.server.times[20:] == [60]


@virtual
async def test_a_host_that_is_away_ends_a_crawl_in_minutes_and_the_log_says_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench({**EXACT, "BACKOFF_JITTER": 0})
    bench.server.answer = lambda request: ConnectionRefusedError()
    fetched = [bench.get(f"https://away.example/{index}") for index in range(20)]
    await bench.clock.advance(120)
    assert all(each.done() for each in fetched)
    assert isinstance(fetched[-1].exception(), ScopeDownError)
    said = [record.getMessage() for record in caplog.records if "is down" in record.getMessage()]
    assert len(said) == 1
    assert '"down_after": seconds' in said[0]


@virtual
async def test_a_cost_that_no_window_holds_fails_its_request() -> None:
    bench = Bench({**FREE, "THROTTLING_SCOPES": {"cost": {"quota": 100.0}}})
    fetched = bench.get("https://a.example/", meta={"throttling_scopes": {"cost": 101}})
    await settle()
    assert isinstance(fetched.exception(), CostExceedsQuotaError)
    wrong = bench.get("https://a.example/", meta={"throttling_scopes": 5})
    await settle()
    assert wrong.exception() is not None
    assert not bench.downloader.active


@virtual
async def test_a_delay_and_a_slot_of_the_requests_own() -> None:
    bench = Bench({**FREE, "THROTTLING_SCOPES": {"mine": {"delay": 4}}})
    bench.get("https://a.example/later", meta={"throttling_delay": 7})
    bench.get("https://a.example/now")
    bench.get("https://b.example/", meta={"download_slot": "mine"})
    bench.get("https://c.example/", meta={"download_slot": "mine"})
    await bench.clock.advance(10)
    assert bench.server.times == [0, 0, 4, 7]
    again = Request("https://a.example/retry", meta={"throttling_delay": 7, "retry_times": 1})
    bench.fetch(again)
    await settle()
    assert len(bench.server.sent) == 5, "a retry does not wait for it once more"
    wrong = bench.get("https://a.example/", meta={"throttling_delay": "soon"})
    await settle()
    assert isinstance(wrong.exception(), TypeError)


@virtual
async def test_meta_by_the_drafts_first_names() -> None:
    bench = Bench({**FREE, "DOWNLOAD_DELAY": 9})
    bench.get("https://a.example/1")
    bench.get("https://a.example/2", meta={"dont_throttle": True})
    bench.get("https://b.example/", meta={"delay": 4})
    await bench.clock.advance(5)
    assert bench.server.times == [0, 0, 4]
    wrong = bench.get("https://c.example/", meta={"delay": "soon"})
    await settle()
    assert isinstance(wrong.exception(), TypeError)


@virtual
async def test_a_slot_that_we_gave_is_found_anew_after_a_redirect() -> None:
    bench = Bench(FREE)
    request = Request("https://a.example/")
    bench.fetch(request)
    await settle()
    assert request.meta["download_slot"] == "a.example"
    followed = request.replace(url="https://b.example/")
    assert bench.downloader.get_slot_key(followed) == "b.example"
    typed = Request("https://a.example/", meta={"download_slot": "mine"})
    bench.fetch(typed)
    await settle()
    assert bench.downloader.get_slot_key(typed.replace(url="https://b.example/")) == "mine"


@virtual
async def test_a_delay_counts_from_when_a_request_is_on_its_way() -> None:
    bench = Bench({**FREE, "DOWNLOAD_DELAY": 1})
    bench.server.latency = 0.1

    async def connects(request: Request) -> Response:
        bench.clock.at += 300_000_000
        return await bench.server(request)

    handlers: Any = bench.downloader.handlers
    handlers.download_request_async = connects
    for index in range(3):
        bench.get(f"https://a.example/{index}")
    await bench.clock.advance(9)
    assert bench.server.times == [0.3, 1.6, 2.9]


@virtual
async def test_backoff_doubles_and_a_hold_is_kept() -> None:
    bench = Bench({**FREE, "CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    answers(bench, 429)
    for index in range(4):
        bench.get(f"https://a.example/{index}")
    await bench.clock.advance(10)
    assert bench.server.times == [0, 1, 3, 7]
    assert bench.stat("backoff") == 4
    answers(bench, 429, {"Retry-After": "30"})
    bench.get("https://b.example/1")
    await settle()
    bench.get("https://b.example/2")
    await bench.clock.advance(29)
    assert len(bench.server.sent) == 5
    await bench.clock.advance(3)
    assert bench.server.times[-1] == pytest.approx(10 + 31), "and the second that servers cut off"
    assert bench.stat("hold") == 2


@virtual
async def test_exceptions_that_are_bad_answers_and_those_that_are_not() -> None:
    timed_out: Any = error.TimeoutError
    refused: Any = error.ConnectionRefusedError
    for raised, steps in (
        (timed_out(), 1),
        (TimeoutError(), 1),
        (refused(), 1),
        (ValueError("a bug"), 0),
        (NotConfigured("no handler"), 0),
    ):
        bench = Bench(FREE)
        bench.server.answer = lambda request, raised=raised: raised  # type: ignore[misc]
        fetched = bench.get("https://a.example/")
        await settle()
        assert fetched.exception() is raised
        assert bench.slot("a.example").stats()[0].backoff_step == steps, raised
        assert bench.slot("a.example").stats()[0].in_flight == 0


@virtual
async def test_exceptions_of_one_scope() -> None:
    own = {"a.example": {"backoff": {"exceptions": ["builtins.KeyError"]}}}
    bench = Bench({**FREE, "THROTTLING_SCOPES": own})
    bench.server.answer = lambda request: KeyError("x") if "key" in request.url else TimeoutError()
    bench.get("https://a.example/key")
    bench.get("https://b.example/key")
    bench.get("https://c.example/time")
    await settle()
    assert [bench.slot(f"{each}.example").stats()[0].backoff_step for each in "abc"] == [1, 0, 1]
    bench.get("https://a.example/time")
    await bench.clock.advance(5)
    assert bench.slot("a.example").stats()[0].backoff_step == 1


@virtual
async def test_a_redirect_delays_only_the_request_that_follows_it() -> None:
    bench = Bench({**FREE, "REDIRECT_MAX_DELAY": 20})
    answers(bench, 302, {"Location": "/next", "Retry-After": "9"})
    request = Request("https://a.example/")
    bench.fetch(request)
    await settle()
    bench.get("https://a.example/other")
    bench.fetch(request.replace(url="https://b.example/next"))
    await bench.clock.advance(20)
    assert [round(at) for at in bench.server.times] == [0, 0, 9]
    answers(bench, 302, {"Location": "/next", "Retry-After": "90"})
    far = Request("https://c.example/")
    bench.fetch(far)
    await settle()
    assert far.meta["dont_redirect"] is True, "beyond REDIRECT_MAX_DELAY the redirect is the answer"


@virtual
async def test_the_queue_and_programs_see_the_same() -> None:
    bench = Bench(EXACT)
    reached: list[Any] = []
    bench.crawler.signals.connect(
        lambda request: reached.append(request), signals.request_reached_downloader, weak=False
    )
    bench.server.latency = 0.5
    for index in range(3):
        bench.get(f"https://a.example/{index}")
    await settle()
    slot = bench.slot("a.example")
    assert (len(slot.active), len(slot.transferring), len(reached)) == (3, 1, 3)
    slot.delay = 3
    assert slot.delay == 3
    slot.concurrency = 2
    assert slot.concurrency == 2
    await bench.clock.advance(10)
    assert bench.server.times == [0, 3, 6]
    assert not bench.downloader.active
    bench.downloader._slot_gc()
    assert not bench.downloader.slots


@virtual
async def test_only_so_many_are_taken_ahead() -> None:
    bench = Bench({**EXACT, "THROTTLING_LOOKAHEAD": 5})
    for index in range(6):
        assert not bench.downloader.needs_backout()
        bench.fetch(Request(f"https://a.example/{index}"), is_scheduled=True)
        await settle()
    assert bench.downloader.needs_backout(), "one flies, five wait"
    await bench.clock.advance(1)
    assert not bench.downloader.needs_backout()


class Scheduler:
    """Scrapy's queue, and what its engine does with it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.queue = DownloaderAwarePriorityQueue.from_crawler(bench.crawler, LifoMemoryQueue, "")
        self.empty = 0
        engine: Any = bench.crawler.engine
        engine._slot = SimpleNamespace(
            scheduler=SimpleNamespace(mqs=self.queue), nextcall=SimpleNamespace(schedule=self.take)
        )
        bench.crawler.signals.send_catch_log(signals.spider_opened, spider=bench.crawler.spider)

    def push(self, *paths: str) -> None:
        for path in paths:
            self.queue.push(Request(f"https://{path}"))
        self.take()

    def take(self) -> None:
        asyncio.get_running_loop().call_soon(self._take)

    def _take(self) -> None:
        while not self.bench.downloader.needs_backout():
            request = self.queue.pop()
            if request is None:
                self.empty += 1
                return
            self.bench.fetch(request, is_scheduled=True).add_done_callback(lambda _: self.take())


@virtual
async def test_the_downloader_is_full_where_scrapys_is() -> None:
    bench = Bench({**FREE, "CONCURRENT_REQUESTS": 2, "CONCURRENT_REQUESTS_PER_DOMAIN": 8})
    bench.server.latency = 1
    scheduler = Scheduler(bench)
    for host in "ab":
        assert not bench.downloader.needs_backout()
        scheduler.push(f"{host}.example/")
        await settle()
    assert bench.downloader.needs_backout(), "as many fly as may"
    await bench.clock.advance(1)
    assert not bench.downloader.needs_backout()


@virtual
async def test_a_request_that_waits_for_its_host_leaves_room_for_other_hosts() -> None:
    bench = Bench({**EXACT, "CONCURRENT_REQUESTS": 2})
    scheduler = Scheduler(bench)
    scheduler.push(*(f"a.example/{index}" for index in range(6)))
    await settle()
    assert (len(bench.server.sent), bench.downloader._permits.waiting) == (1, 2)  # type: ignore[union-attr]
    assert bench.downloader.needs_backout(), "of a.example there is enough, and of no other host is any"
    assert scheduler.empty == 0, "the scheduler is not empty, and no signal says so"
    scheduler.push("b.example/")
    await settle()
    assert [url for _, url in bench.server.sent] == ["https://a.example/5", "https://b.example/"]


@virtual
async def test_the_order_is_that_of_scrapys_queue() -> None:
    bench = Bench({**EXACT, "CONCURRENT_REQUESTS": 1})
    bench.server.latency = 0.5
    scheduler = Scheduler(bench)
    scheduler.push("a.example/1")
    await settle()
    scheduler.push("a.example/4", "a.example/3")
    await bench.clock.advance(0.4)
    scheduler.push("a.example/2")
    await bench.clock.advance(10)
    assert [url[-1] for _, url in bench.server.sent] == list("1234")
    assert bench.server.times == [0, 1, 2, 3]


@virtual
async def test_requests_that_bypass_the_scheduler_are_warned_of_once(caplog: Any) -> None:
    bench = Bench({**EXACT, "DELAYED_REQUESTS_WARN_THRESHOLD": 2})
    with caplog.at_level(logging.WARNING, "autothrottle.scrapy"):
        for index in range(5):
            bench.get(f"https://a.example/{index}")
        await settle()
    (warning,) = caplog.records
    assert warning.getMessage().startswith("2 requests that bypassed the scheduler")


@virtual
async def test_a_request_without_a_host_is_not_throttled() -> None:
    bench = Bench(EXACT)
    for index in range(3):
        bench.get(f"data:,{index}")
    await settle()
    assert len(bench.server.sent) == 3


@virtual
async def test_jobdir_keeps_the_pace(tmp_path: Any) -> None:
    settings = {**FREE, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "JOBDIR": str(tmp_path)}
    bench = Bench(settings)
    answers(bench, 503)
    bench.get("https://a.example/")
    await settle()
    assert bench.slot("a.example").delay == 1
    bench.downloader.close()
    again = Bench(settings)
    assert again.stat("restored") == 1
    assert again.downloader._get_slot(Request("https://a.example/"))[1].delay == 1
    again.downloader.close()
    (tmp_path / "throttling.json").write_text('{"version": 1')
    anew = Bench(settings)
    assert anew.stat("restored") is None
    assert anew.downloader._get_slot(Request("https://a.example/"))[1].delay == 0


@virtual
async def test_a_waiting_request_fails_when_the_host_is_down() -> None:
    defaults = {"down_after": 10, "concurrency": 1, "delay": 1, "slot_delay": 0, "jitter": False}
    bench = Bench({"THROTTLING_DEFAULTS": defaults, "THROTTLING_SCOPES": {"well.example": {"delay": 60}}})
    answer = bench.server.answer
    bench.server.answer = lambda request: (
        ConnectionRefusedError("away") if "api.example" in request.url else answer(request)
    )
    away = [bench.get(f"https://api.example/{page}") for page in range(30)]
    well = [bench.get(f"https://well.example/{page}") for page in range(3)]
    await bench.clock.advance(60)
    errors = [type(each.exception()) if each.done() else None for each in away]
    sent = errors.index(ScopeDownError)
    assert 3 <= sent <= 6
    assert errors == [ConnectionRefusedError] * sent + [ScopeDownError] * (30 - sent)
    # The others wait for their turn as before.
    assert [each.done() for each in well] == [True, True, False]


@virtual
async def test_crawl_delay_is_kept_under_concurrent_requests_per_domain() -> None:
    bench = Bench({**FREE, "THROTTLING_SCOPES": {"mine.example": {"concurrency": 8}}})
    parser = ProtegoRobotParser(b"User-agent: *\nCrawl-delay: 5\n", None)
    for host in ("a.example", "mine.example"):
        bench.downloader._robots_parsed(parser, Request(f"https://{host}/robots.txt"))
    bench.server.latency = 7
    for index in range(3):
        bench.get(f"https://a.example/{index}")
        bench.get(f"https://mine.example/{index}")
    await bench.clock.advance(30)
    sent = {host: [at for at, url in bench.server.sent if host in url] for host in ("//a.", "//mine.")}
    assert sent["//a."] == [0, 7, 14], "one at a time: five seconds apart, but each takes seven"
    assert sent["//mine."] == [0, 0, 0], "a scope of your own keeps its slots"

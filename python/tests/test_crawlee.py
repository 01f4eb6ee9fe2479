"""The client for crawlee-python: a real crawler over real sockets, in fake time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("crawlee")

from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from autothrottle import ThreadThrottle, Throttle
from autothrottle.crawlee import ThrottledHttpClient
from autothrottle.testing import FakeClock
from helpers import Fake, server

Drive = Callable[[Throttle, Awaitable[Any]], Awaitable[Any]]


@pytest.fixture
def told() -> Iterator[Fake]:
    with server() as running:
        yield running


def throttle_of(clock: FakeClock, **options: Any) -> tuple[Throttle, list[float]]:
    throttle = Throttle(**{"clock": clock, "delay": 1, "jitter": False, "backoff": False, **options})
    at: list[float] = []
    throttle.on("send", lambda event: at.append(event.at))
    return throttle, at


def crawler_of(throttle: Throttle) -> tuple[HttpCrawler, list[tuple[str, int]]]:
    crawler = HttpCrawler(  # type: ignore[call-arg]
        http_client=ThrottledHttpClient(throttle),
        storage_client=MemoryStorageClient(),
        navigation_timeout=timedelta(hours=1),
        concurrency_settings=ConcurrencySettings(desired_concurrency=8),
        configure_logging=False,
    )
    seen: list[tuple[str, int]] = []

    @crawler.router.default_handler
    async def handler(context: HttpCrawlingContext) -> None:
        seen.append((context.request.url, context.http_response.status_code))

    return crawler, seen


async def test_pages_wait_for_their_turn(clock: FakeClock, drive: Drive, told: Fake) -> None:
    throttle, at = throttle_of(clock)
    crawler, seen = crawler_of(throttle)
    urls = [f"{told.url}{page}" for page in range(3)]
    statistics = await drive(throttle, crawler.run(urls))
    assert sorted(seen) == [(url, 200) for url in urls]
    assert statistics.requests_finished == 3
    assert at == [0, 1, 2]
    assert throttle.stats().in_flight == 0


async def test_refusals_are_heard_and_crawlee_tries_again(clock: FakeClock, drive: Drive, told: Fake) -> None:
    told.answers = [(503, {"Retry-After": "30"}, b"")]
    throttle, at = throttle_of(clock)
    crawler, seen = crawler_of(throttle)
    await drive(throttle, crawler.run([told.url]))
    assert seen == [(told.url, 200)]
    assert at[0] == 0
    assert at[1] > 30


async def test_failed_connections_back_off(clock: FakeClock, drive: Drive, told: Fake) -> None:
    told.answers = [(0, {}, b"")]
    throttle, _ = throttle_of(clock, backoff=True)
    steps: list[str] = []
    throttle.on("backoff", lambda event: steps.append(event.scope))
    crawler, seen = crawler_of(throttle)
    await drive(throttle, crawler.run([told.url]))
    assert seen == [(told.url, 200)]
    assert steps == [told.url.split("/")[2]]


async def test_a_request_says_more(clock: FakeClock, drive: Drive, told: Fake) -> None:
    throttle, _ = throttle_of(clock)
    crawler, _ = crawler_of(throttle)
    request = Request.from_url(told.url, user_data={"throttle": {"scopes": "api"}})
    await drive(throttle, crawler.run([request]))
    assert set(throttle.stats().scopes) == {"api"}


async def test_requests_of_a_handler_and_downloads_wait(clock: FakeClock, drive: Drive, told: Fake) -> None:
    throttle, at = throttle_of(clock, release="body", retry={"limit": 1})
    client = ThrottledHttpClient(throttle)

    async def work() -> bytes:
        response = await client.send_request(told.url, method="PUT", payload=b"whole")
        assert throttle.stats().in_flight == 0
        async with client.stream(told.url) as streamed:
            assert throttle.stats().in_flight == 1
            parts = [part async for part in streamed.read_stream()]
        return await response.read() + b"".join(parts)

    async with client:
        assert await drive(throttle, work()) == b"okok"
        assert throttle.stats().in_flight == 0
        told.answers = [(503, {}, b"")]
        with pytest.raises(RuntimeError, match="mine"):
            await drive(throttle, broken_off(client, told.url))
    assert throttle.stats().in_flight == 0
    assert at == [0, 1, 2, 3]


async def broken_off(client: ThrottledHttpClient, url: str) -> None:
    async with client.stream(url):
        raise RuntimeError("mine")


async def test_a_timeout_of_crawlee_gives_the_place_back(clock: FakeClock, told: Fake) -> None:
    throttle, at = throttle_of(clock)
    waits = asyncio.Event()
    throttle.on("queued", lambda _: waits.set())
    async with ThrottledHttpClient(throttle) as client:
        await client.crawl(Request.from_url(told.url))
        waiting = asyncio.ensure_future(client.crawl(Request.from_url(told.url)))
        await waits.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    stats = throttle.stats()
    assert (at, stats.in_flight, stats.waiting) == ([0], 0, 0)


def test_another_kind_of_throttle_is_refused() -> None:
    with pytest.raises(TypeError, match="ThrottledHttpClient: want a Throttle"):
        ThrottledHttpClient(ThreadThrottle())  # type: ignore[arg-type]

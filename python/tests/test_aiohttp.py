"""The middleware of aiohttp, over real sockets and in fake time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from autothrottle import (
    BodyNotReplayableError,
    DisallowedError,
    RetryAfterTooLongError,
    Throttle,
    request_options,
)
from autothrottle.aiohttp import ThrottleMiddleware
from autothrottle.robots import rules
from autothrottle.testing import FakeClock
from servers import Told, server

Drive = Callable[[Throttle, Awaitable[Any]], Awaitable[Any]]


@pytest.fixture
def told() -> Iterator[Told]:
    with server() as running:
        yield running


@asynccontextmanager
async def session_of(
    clock: FakeClock, **options: Any
) -> AsyncIterator[tuple[Throttle, aiohttp.ClientSession]]:
    throttle = Throttle(**{"clock": clock, "delay": 1, "jitter": False, "backoff": False, **options})
    async with aiohttp.ClientSession(middlewares=[ThrottleMiddleware(throttle)]) as session:
        yield throttle, session


async def text(response: Awaitable[aiohttp.ClientResponse]) -> str:
    return await (await response).text()


async def test_requests_wait_for_their_turn(clock: FakeClock, drive: Drive, told: Told) -> None:
    async with session_of(clock) as (throttle, session):
        at: list[float] = []
        throttle.on("send", lambda event: at.append(event.at))
        texts = await drive(throttle, asyncio.gather(*(text(session.get(told.url)) for _ in range(3))))
        assert texts == ["ok"] * 3
        assert at == [0, 1, 2]


async def test_refusals_are_heard_and_tried_again(clock: FakeClock, drive: Drive, told: Told) -> None:
    told.answers = [(429, {"Retry-After": "30"}, b"slow"), (503, {}, b"")]
    async with session_of(clock, retry={"limit": 3}) as (throttle, session):
        assert await drive(throttle, text(session.get(told.url))) == "ok"
        assert len(told.asked) == 3
        assert clock.seconds > 30


async def test_bodies_are_sent_again_where_they_can_be(clock: FakeClock, drive: Drive, told: Told) -> None:
    async def once() -> AsyncIterator[bytes]:
        yield b"once"

    told.answers = [(503, {}, b"")]
    async with session_of(clock, retry={"limit": 1}) as (throttle, session):
        assert await drive(throttle, text(session.put(told.url, data=b"bytes"))) == "ok"
        assert [body for *_, body in told.asked] == [b"bytes"] * 2
        told.answers = [(503, {}, b"")]
        with pytest.raises(BodyNotReplayableError):
            await drive(throttle, session.put(told.url, data=once(), headers={"Content-Length": "4"}))
        assert throttle.stats().in_flight == 0


async def test_each_hop_of_a_redirect_waits(clock: FakeClock, drive: Drive, told: Told) -> None:
    told.answers = [(302, {"Location": "/there", "Retry-After": "20"}, b"")]
    async with session_of(clock) as (throttle, session):
        at: list[float] = []
        throttle.on("send", lambda event: at.append(event.at))
        assert await drive(throttle, text(session.get(told.url))) == "ok"
        assert at == [0, 20]
        assert [path for _, path, _ in told.asked] == ["/", "/there"]


async def test_robots_txt_is_asked_for_first(clock: FakeClock, drive: Drive, told: Told) -> None:
    told.answers = [(200, {}, b"User-agent: *\nCrawl-delay: 5\nDisallow: /private")]
    robots: Any = {"user_agent": "foobot", "rules": rules}
    async with session_of(clock, robots=robots) as (throttle, session):
        assert await drive(throttle, text(session.get(told.url))) == "ok"
        with pytest.raises(DisallowedError):
            await drive(throttle, session.get(f"{told.url}private"))
        assert [path for _, path, _ in told.asked] == ["/robots.txt", "/"]
        assert clock.seconds >= 5


async def test_a_wait_that_is_too_long_is_an_error(clock: FakeClock, drive: Drive, told: Told) -> None:
    told.answers = [(429, {"Retry-After": "4000"}, b"later")]
    async with session_of(clock, retry={"limit": 3, "max_retry_after": 60}) as (throttle, session):
        with pytest.raises(RetryAfterTooLongError) as caught:
            await drive(throttle, session.get(told.url))
        assert isinstance(caught.value.response, aiohttp.ClientResponse)
        assert await caught.value.response.text() == "later"


async def test_slots_come_back_with_the_headers_or_with_the_body(
    clock: FakeClock, drive: Drive, told: Told
) -> None:
    large = b"x" * 1_000_000
    for release, held in (("headers", 0), ("body", 1)):
        async with session_of(clock, release=release, delay=0) as (throttle, session):
            told.answers = [(200, {}, large)]
            async with session.get(told.url) as response:
                assert throttle.stats().in_flight == held
                await response.read()
                assert throttle.stats().in_flight == 0
            told.answers = [(200, {}, large)]
            async with session.get(told.url):
                pass
            assert throttle.stats().in_flight == 0
            told.answers = [(204, {}, b"")]
            async with session.get(told.url):
                assert throttle.stats().in_flight == 0


async def test_failures_are_raised_as_they_are(clock: FakeClock) -> None:
    async with session_of(clock, backoff=True, delay=0) as (throttle, session):
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get("http://127.0.0.1:1/")
        assert throttle.scope("127.0.0.1:1").stats.backoff_step == 1


async def test_a_block_says_more(clock: FakeClock, told: Told) -> None:
    async with session_of(clock) as (throttle, session):
        with request_options(scopes="api"):
            await text(session.get(told.url))
        assert set(throttle.stats().scopes) == {"api"}

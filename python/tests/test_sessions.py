"""The transports of httpx, the middleware of aiohttp and the adapter of requests, over real sockets and in
fake time: each case holds for all. A thread that waits moves the clock by itself.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from autothrottle import (
    BodyNotReplayableError,
    DisallowedError,
    RetryAfterTooLongError,
    ThreadThrottle,
    Throttle,
    request_options,
)
from autothrottle.aiohttp import ThrottleMiddleware
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.requests import ThrottleAdapter
from autothrottle.robots import rules
from autothrottle.testing import FakeClock
from helpers import Fake, server

Drive = Callable[[Throttle, Awaitable[Any]], Awaitable[Any]]


class Aiohttp:
    """Requests of aiohttp, each to its end."""

    failure: type[Exception] = aiohttp.ClientConnectionError

    def __init__(self, drive: Drive, **options: Any) -> None:
        self.drive = drive
        self.throttle = Throttle(**options)
        self.session = aiohttp.ClientSession(middlewares=[ThrottleMiddleware(self.throttle)])

    async def ask(self, method: str, url: str, **options: Any) -> tuple[int, str]:
        async def asked() -> tuple[int, str]:
            async with self.session.request(method, url, **options) as response:
                return response.status, await response.text()

        answer: tuple[int, str] = await self.drive(self.throttle, asked())
        return answer

    async def held(self, url: str, *, is_read: bool) -> list[int]:
        """The slots that are held while an answer is open, once it was read, and after it."""
        async with self.session.get(url) as response:
            seen = [self.throttle.stats().in_flight]
            if is_read:
                await response.read()
                seen.append(self.throttle.stats().in_flight)
        return [*seen, self.throttle.stats().in_flight]

    @staticmethod
    async def text_of(response: Any) -> str:
        assert isinstance(response, aiohttp.ClientResponse)
        return await response.text()

    async def close(self) -> None:
        await self.session.close()


class Requests:
    """The same of requests."""

    failure: type[Exception] = requests.ConnectionError

    def __init__(self, _: Drive, **options: Any) -> None:
        self.throttle = ThreadThrottle(**options)
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.mount("http://", ThrottleAdapter(self.throttle))

    async def ask(self, method: str, url: str, **options: Any) -> tuple[int, str]:
        response = self.session.request(method, url, **options)
        return response.status_code, response.text

    async def held(self, url: str, *, is_read: bool) -> list[int]:
        with self.session.get(url, stream=True) as response:
            seen = [self.throttle.stats().in_flight]
            if is_read:
                assert response.content is not None
                seen.append(self.throttle.stats().in_flight)
        return [*seen, self.throttle.stats().in_flight]

    @staticmethod
    async def text_of(response: Any) -> str:
        assert isinstance(response, requests.Response)
        return response.text

    async def close(self) -> None:
        self.session.close()


class AsyncHttpx(Aiohttp):
    """The same of httpx."""

    failure = httpx.ConnectError

    def __init__(self, drive: Drive, **options: Any) -> None:
        self.drive = drive
        self.throttle = Throttle(**options)
        transport = AsyncThrottleTransport(self.throttle)
        self.client = httpx.AsyncClient(transport=transport, follow_redirects=True, trust_env=False)

    async def ask(self, method: str, url: str, data: Any = None, **options: Any) -> tuple[int, str]:
        asked = self.client.request(method, url, content=data, **options)
        response: httpx.Response = await self.drive(self.throttle, asked)
        return response.status_code, response.text

    async def held(self, url: str, *, is_read: bool) -> list[int]:
        async with self.client.stream("GET", url) as response:
            seen = [self.throttle.stats().in_flight]
            if is_read:
                await response.aread()
                seen.append(self.throttle.stats().in_flight)
        return [*seen, self.throttle.stats().in_flight]

    @staticmethod
    async def text_of(response: Any) -> str:
        assert isinstance(response, httpx.Response)
        return (await response.aread()).decode()

    async def close(self) -> None:
        await self.client.aclose()


class Httpx(Requests):
    """The same of httpx, for threads."""

    failure = httpx.ConnectError

    def __init__(self, _: Drive, **options: Any) -> None:
        self.throttle = ThreadThrottle(**options)
        transport = ThrottleTransport(self.throttle)
        self.client = httpx.Client(transport=transport, follow_redirects=True, trust_env=False)

    async def ask(self, method: str, url: str, data: Any = None, **options: Any) -> tuple[int, str]:
        response = self.client.request(method, url, content=data, **options)
        return response.status_code, response.text

    async def held(self, url: str, *, is_read: bool) -> list[int]:
        with self.client.stream("GET", url) as response:
            seen = [self.throttle.stats().in_flight]
            if is_read:
                response.read()
                seen.append(self.throttle.stats().in_flight)
        return [*seen, self.throttle.stats().in_flight]

    @staticmethod
    async def text_of(response: Any) -> str:
        assert isinstance(response, httpx.Response)
        return response.read().decode()

    async def close(self) -> None:
        self.client.close()


Opens = Callable[..., Any]


@pytest.fixture
def told() -> Iterator[Fake]:
    with server() as running:
        yield running


CLIENTS: list[type[Any]] = [Aiohttp, Requests, AsyncHttpx, Httpx]


@pytest.fixture(params=CLIENTS)
def opens(request: pytest.FixtureRequest, clock: FakeClock, drive: Drive) -> Opens:
    """A session whose throttle has these options."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Aiohttp | Requests]:
        usual = {"clock": clock, "delay": 1, "jitter": False, "backoff": False}
        session = request.param(drive, **{**usual, **options})
        try:
            yield session
        finally:
            await session.close()

    return opened


def sends(session: Aiohttp | Requests) -> list[float]:
    at: list[float] = []
    session.throttle.on("send", lambda event: at.append(event.at))
    return at


async def test_requests_wait_for_their_turn(opens: Opens, told: Fake) -> None:
    async with opens() as session:
        at = sends(session)
        for _ in range(3):
            assert await session.ask("GET", told.url) == (200, "ok")
        assert at == [0, 1, 2]
        assert list(session.throttle.stats().scopes) == [told.url.split("/")[2]]


async def test_refusals_are_heard_and_tried_again(opens: Opens, clock: FakeClock, told: Fake) -> None:
    told.answers = [(429, {"Retry-After": "30"}, b"slow"), (0, {}, b""), (503, {}, b"")]
    async with opens(retry={"limit": 3}) as session:
        assert await session.ask("GET", told.url) == (200, "ok")
        assert len(told.asked) == 4
        assert clock.seconds > 30
        assert session.throttle.stats().in_flight == 0


async def test_bodies_are_sent_again_where_they_can_be(opens: Opens, told: Fake) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"once"

    told.answers = [(503, {}, b"")] * 2
    async with opens(retry={"limit": 1}) as session:
        assert await session.ask("PUT", told.url, data=b"bytes") == (503, "")
        assert [body for *_, body in told.asked] == [b"bytes"] * 2
        is_async = isinstance(session, Aiohttp)
        if type(session) is Requests:
            told.answers = [(503, {}, b"")]
            file = io.BytesIO(b"skipped, then sent")
            file.seek(9)
            assert await session.ask("PUT", told.url, data=file) == (200, "ok")
            assert [body for *_, body in told.asked[-2:]] == [b"then sent"] * 2
        told.answers = [(503, {}, b"")]
        once: Any = parts() if is_async else iter([b"once"])
        with pytest.raises(BodyNotReplayableError):
            await session.ask("PUT", told.url, data=once, headers={"Content-Length": "4"})
        assert session.throttle.stats().in_flight == 0


async def test_each_hop_of_a_redirect_waits(opens: Opens, told: Fake) -> None:
    told.answers = [(302, {"Location": "/there", "Retry-After": "20"}, b"")]
    async with opens() as session:
        at = sends(session)
        assert await session.ask("GET", told.url) == (200, "ok")
        assert at == [0, 20]
        assert [path for _, path, _ in told.asked] == ["/", "/there"]


async def test_robots_txt_is_asked_for_first(opens: Opens, clock: FakeClock, told: Fake) -> None:
    told.answers = [(200, {}, b"User-agent: *\nCrawl-delay: 5\nDisallow: /private")]
    async with opens(robots={"user_agent": "foobot", "rules": rules}) as session:
        assert await session.ask("GET", told.url) == (200, "ok")
        with pytest.raises(DisallowedError):
            await session.ask("GET", f"{told.url}private")
        assert [path for _, path, _ in told.asked] == ["/robots.txt", "/"]
        assert clock.seconds >= 5


async def test_a_wait_that_is_too_long_is_an_error(opens: Opens, told: Fake) -> None:
    told.answers = [(429, {"Retry-After": "4000"}, b"later")]
    async with opens(retry={"limit": 3, "max_retry_after": 60}) as session:
        with pytest.raises(RetryAfterTooLongError) as caught:
            await session.ask("GET", told.url)
        assert caught.value.retry_after == 4000
        assert await session.text_of(caught.value.response) == "later"
        assert session.throttle.stats().in_flight == 0


@pytest.mark.parametrize(("release", "held"), [("headers", 0), ("body", 1)])
async def test_slots_come_back_with_the_headers_or_with_the_body(
    opens: Opens, told: Fake, release: str, held: int
) -> None:
    large = b"x" * 1_000_000
    async with opens(release=release, delay=0) as session:
        told.answers = [(200, {}, large), (200, {}, large), (204, {}, b"")]
        assert await session.held(told.url, is_read=True) == [held, 0, 0]
        assert await session.held(told.url, is_read=False) == [held, 0]
        empty = await session.held(told.url, is_read=False)
        assert empty[-1] == 0
        assert type(session) is not Aiohttp or empty[0] == 0
        await session.ask("GET", told.url)
        assert session.throttle.stats().in_flight == 0


async def test_failures_are_raised_as_they_are(opens: Opens) -> None:
    async with opens(backoff=True, delay=0) as session:
        with pytest.raises(session.failure):
            await session.ask("GET", "http://127.0.0.1:1/")
        assert session.throttle.scope("127.0.0.1:1").stats.backoff_step == 1


async def test_a_block_says_more(opens: Opens, told: Fake) -> None:
    async with opens() as session:
        with request_options(scopes={"api": 2, "account": 1}):
            await session.ask("GET", told.url)
        assert set(session.throttle.stats().scopes) == {"api", "account"}


def test_an_adapter_cannot_be_pickled(clock: FakeClock) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ThrottleAdapter(ThreadThrottle(clock=clock)))

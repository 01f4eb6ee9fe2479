"""The transports of httpx, beyond the tests for all clients (test_sessions.py), over one that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from autothrottle import (
    ConfigError,
    ManagerError,
    RetryAfterTooLongError,
    Throttle,
    ThrottleTimeoutError,
    request_options,
)
from autothrottle.httpx import AsyncThrottleTransport
from autothrottle.testing import FakeClock, settled
from helpers import driven

URL = "https://example.com/"
Handler = Callable[[httpx.Request], Any]


class Server:
    """Answers in turn, and notes when it was asked for what."""

    def __init__(self, clock: FakeClock, *answers: httpx.Response | Exception) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.asked: list[tuple[float, str]] = []
        self.bodies: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((self.clock.seconds, str(request.url)))
        self.bodies.append(request.content)
        answer = self.answers.pop(0) if self.answers else httpx.Response(200, text="ok")
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(clock: FakeClock, server: Handler, **options: Any) -> tuple[Throttle, httpx.AsyncClient]:
    throttle = Throttle(**{"clock": clock, "delay": 1, "jitter": False, "backoff": False, **options})
    transport = AsyncThrottleTransport(throttle, httpx.MockTransport(server))
    return throttle, httpx.AsyncClient(transport=transport)


async def test_a_retry_lets_others_pass_while_it_waits(clock: FakeClock) -> None:
    server = Server(clock, httpx.Response(503, headers={"Retry-After": "30"}))
    _, client = client_of(clock, server, retry={"limit": 1}, concurrency=1)
    first = asyncio.ensure_future(client.get(URL))
    await settled()
    second = asyncio.ensure_future(client.get("https://other.example/"))
    await clock.advance(1)
    assert (second.done(), first.done()) == (True, False)
    await clock.advance(40)
    assert (await first).status_code == 200


async def test_a_post_is_not_sent_twice(clock: FakeClock) -> None:
    server = Server(clock, httpx.Response(503))
    _, client = client_of(clock, server, retry={"limit": 3})
    assert (await driven(clock, client.post(URL, json={}))).status_code == 503
    assert len(server.asked) == 1


class Parts(httpx.AsyncByteStream):
    """A body that comes in parts, and may break."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"a"
        if self.error is not None:
            raise self.error


async def test_failures_are_tried_again_and_raised_as_they_are(clock: FakeClock) -> None:
    server = Server(clock, httpx.ReadTimeout("slow"), httpx.ConnectError("gone"), httpx.ReadError("cut"))
    _, client = client_of(clock, server, retry={"limit": 2})
    with pytest.raises(httpx.ReadError):
        await driven(clock, client.get(URL))
    assert len(server.asked) == 3


async def test_a_mistake_of_the_callers_is_no_news(clock: FakeClock) -> None:
    server = Server(clock, httpx.UnsupportedProtocol("gopher"), httpx.PoolTimeout("full"))
    throttle, client = client_of(clock, server, retry={"limit": 2}, backoff=True)
    with pytest.raises(httpx.UnsupportedProtocol):
        await driven(clock, client.get(URL))
    with pytest.raises(httpx.PoolTimeout):
        await driven(clock, client.get(URL))
    assert throttle.scope("example.com").stats.backoff_step == 0
    assert throttle.stats().in_flight == 0


async def test_each_hop_of_a_redirect_waits(clock: FakeClock) -> None:
    there = {"Location": "https://other.example/there#part", "Retry-After": "5"}
    back = {"Location": URL}
    server = Server(clock, httpx.Response(302, headers=there), httpx.Response(302, headers=back))
    _, client = client_of(clock, server, release="body")
    response = await driven(clock, client.get(URL, follow_redirects=True))
    assert response.status_code == 200
    assert server.asked == [(0, URL), (5, "https://other.example/there#part"), (5, f"{URL}#part")]


async def test_a_redirect_that_asks_for_too_long_is_an_error(clock: FakeClock) -> None:
    server = Server(clock, httpx.Response(302, headers={"Location": "/next", "Retry-After": "50"}))
    _, client = client_of(clock, server, redirect_max_delay=10)
    with pytest.raises(RetryAfterTooLongError):
        await driven(clock, client.get(URL, follow_redirects=True))


async def test_a_redirect_to_no_url_is_the_answer(clock: FakeClock) -> None:
    _, client = client_of(clock, Server(clock, httpx.Response(302, headers={"Location": "https://[b/"})))
    response = await driven(clock, client.get(URL))
    assert response.status_code == 302


async def test_a_body_that_is_here_already_gives_its_slot_back(clock: FakeClock) -> None:
    throttle, client = client_of(clock, Server(clock), release="body")
    assert (await client.get(URL)).text == "ok"
    assert throttle.stats().in_flight == 0


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [("HEAD", 200, {}), ("GET", 204, {}), ("GET", 304, {}), ("GET", 200, {"Content-Length": "0"})],
)
async def test_an_answer_without_a_body_gives_its_slot_back(
    clock: FakeClock, method: str, status: int, headers: dict[str, str]
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, stream=Parts())

    throttle, client = client_of(clock, answer, release="body")
    async with client.stream(method, URL):
        assert throttle.stats().in_flight == 0


async def test_a_body_that_breaks_is_news(clock: FakeClock) -> None:
    body = Parts(httpx.ReadError("cut"))
    throttle, client = client_of(
        clock, lambda _: httpx.Response(200, stream=body), release="body", backoff=True
    )
    with pytest.raises(httpx.ReadError):
        await client.get(URL)
    assert throttle.scope("example.com").stats.backoff_step == 1


async def test_a_request_says_more_by_extension_or_block(clock: FakeClock) -> None:
    throttle, client = client_of(clock, Server(clock))
    with request_options(scopes="api", delay=5):
        await driven(clock, client.get(URL), 5)
    await driven(clock, client.get(URL, extensions={"throttle": {"scopes": ["other"], "priority": 1}}))
    assert set(throttle.stats().scopes) == {"api", "other"}
    with pytest.raises(ConfigError, match=r'extensions\["throttle"\]\.prority: want one of scopes, priority'):
        await client.get(URL, extensions={"throttle": {"prority": 1}})
    with pytest.raises(ConfigError, match="timeout: want max_wait, its name now"):
        request_options(timeout=1).__enter__()  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="prority"), request_options(prority=1):  # type: ignore[call-arg]
        pass


async def test_a_request_gives_up(clock: FakeClock) -> None:
    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    throttle, client = client_of(clock, never, request_timeout=3, backoff=True)
    with pytest.raises(ThrottleTimeoutError, match="not answered within 3 s"):
        await driven(clock, client.get(URL))
    assert throttle.scope("example.com").stats.backoff_step == 1
    waiting = client.get(URL, extensions={"throttle": {"max_wait": 0.5, "delay": 5}})
    with pytest.raises(ThrottleTimeoutError, match="waited"):
        await driven(clock, waiting)


async def test_a_cancelled_request_leaves_nothing_behind(clock: FakeClock) -> None:
    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    for options in ({}, {"request_timeout": 50}):
        throttle, client = client_of(clock, never, **options)
        tasks = [asyncio.ensure_future(client.get(URL)) for _ in range(3)]
        await settled()
        for task in tasks:
            task.cancel()
        await settled()
        assert (throttle.stats().in_flight, throttle.stats().waiting) == (0, 0)


async def test_hooks_know_better(clock: FakeClock) -> None:
    async def backoff(response: httpx.Response, request: Any) -> Any:
        await response.aread()
        return {"example.com": {"delay": 9}} if response.text == "busy" else None

    server = Server(clock, httpx.Response(200, text="busy"))
    throttle, client = client_of(clock, server, get_response_backoff=backoff, backoff=True)
    await driven(clock, client.get(URL), 0)
    hold = throttle.scope("example.com").stats.hold_until
    assert hold == pytest.approx(9, abs=0.01)

    throttle, client = client_of(clock, Server(clock), get_hints=lambda _: {"remaining": 0, "reset": 20})
    await driven(clock, client.get(URL), 0)
    assert throttle.peek(URL).at == pytest.approx(clock.seconds + 20, abs=1.1)

    server = Server(clock, httpx.Response(429))
    throttle, client = client_of(clock, server, get_response_delay=lambda _: 7)
    await driven(clock, client.get(URL), 0)
    assert throttle.peek(URL).reason == "hold"

    throttle, client = client_of(
        clock, Server(clock, httpx.ConnectError("x")), get_error_backoff=lambda *_: {}
    )
    with pytest.raises(httpx.ConnectError):
        await driven(clock, client.get(URL), 0)

    throttle, client = client_of(clock, Server(clock), get_hints=lambda _: {"delay": -1})
    with pytest.raises(ManagerError, match=r"get_hints gave -1; want seconds from 0 to a year"):
        await driven(clock, client.get(URL), 0)

    server = Server(clock, httpx.Response(503))
    throttle, client = client_of(clock, server, get_hints=lambda _: 1 / 0, backoff=True)
    with pytest.raises(ManagerError, match="get_hints failed"):
        await driven(clock, client.get(URL), 0)
    stats = throttle.scope("example.com").stats
    assert (stats.in_flight, stats.backoff_step) == (0, 1)

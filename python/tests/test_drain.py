"""``drain``: no new request comes in, and it returns when all that came in before is over."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest

from autothrottle import ClosedError, Permit, ThreadThrottle
from autothrottle.httpx import AsyncThrottleTransport
from autothrottle.testing import FakeClock
from helpers import URL, Response, plain


async def sleep(clock: FakeClock, seconds: float) -> None:
    over = asyncio.get_running_loop().create_future()
    clock.call_later(seconds, lambda: over.set_result(None))
    await over


async def test_a_request_that_was_taken_in_ends_and_a_new_one_is_refused(clock: FakeClock) -> None:
    throttle = plain(clock)
    done: list[float] = []

    async def work() -> Response:
        await sleep(clock, 0.1)
        done.append(clock.seconds)
        return Response()

    taken = [asyncio.create_task(throttle.run(URL, work)) for _ in range(3)]
    await clock.advance(0)
    over = asyncio.create_task(throttle.drain())
    await clock.advance(0)
    mapped = throttle.map([URL], lambda _: work())
    for way in (throttle.acquire(URL), throttle.run(URL, work), anext(mapped)):
        with pytest.raises(ClosedError, match="the throttle drains: it takes in no more"):
            await way
    assert not over.done()
    await clock.advance(10)
    await asyncio.gather(*taken)
    await over
    assert done == pytest.approx([0.1, 1.1, 2.1])
    with pytest.raises(ClosedError, match="the throttle is closed"):
        await throttle.acquire(URL)
    await throttle.drain()


async def test_calls_inside_and_again_belong_to_it(clock: FakeClock) -> None:
    throttle = plain(clock, retry={"limit": 2}, backoff=False)
    calls = 0

    async def work(permit: Permit) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionResetError
        permit.settle(Response())
        async with throttle.acquire(URL):
            pass
        await sleep(clock, 30)
        return "kept"

    taken = asyncio.create_task(throttle.run(URL, work, retry=True))
    await clock.advance(0)
    over = asyncio.create_task(throttle.drain())
    await clock.advance(20)
    assert not over.done()
    await clock.advance(60)
    assert await taken == "kept"
    await over


async def test_transports_go_on_with_redirects_retries_and_robots(clock: FakeClock) -> None:
    throttle = plain(clock, retry={"limit": 2}, backoff=False, robots={"user_agent": "bot"})
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        asked.append(path)
        if path == "/busy" and asked.count(path) == 1:
            return httpx.Response(503)
        if path == "/moved":
            return httpx.Response(302, headers={"location": "/there"})
        return httpx.Response(200)

    transport = AsyncThrottleTransport(throttle, httpx.MockTransport(answer))
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        taken = [asyncio.create_task(client.get(f"{URL}{path}")) for path in ("moved", "busy")]
        await clock.advance(0)
        over = asyncio.create_task(throttle.drain())
        await clock.advance(0)
        with pytest.raises(ClosedError, match="drains"):
            await client.get(URL)
        await clock.advance(60)
        assert [(await each).status_code for each in taken] == [200, 200]
        await over
    assert sorted(asked) == ["/busy", "/busy", "/moved", "/robots.txt", "/there"]


async def test_close_ends_it_early(clock: FakeClock) -> None:
    throttle = plain(clock, delay=60)
    permit = await throttle.acquire(URL)
    waits = asyncio.create_task(throttle.run(URL, Response))
    await clock.advance(0)
    over = asyncio.create_task(throttle.drain())
    await clock.advance(0)
    throttle.close()
    with pytest.raises(ClosedError, match="is closed"):
        await waits
    assert not over.done()
    permit.settle(Response())
    await over


def test_threads(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock, delay=1, jitter=False)
    started, go = threading.Event(), threading.Event()
    got: list[Any] = []

    def work() -> Response:
        started.set()
        go.wait()
        got.append("done")
        return Response()

    thread = threading.Thread(target=lambda: throttle.run(URL, work))
    thread.start()
    started.wait()

    def drain() -> None:
        throttle.drain()
        got.append("drained")

    drains = threading.Thread(target=drain)
    drains.start()
    while not throttle._scheduler.takes_no_more:
        pass
    with pytest.raises(ClosedError, match="drains"):
        throttle.acquire(URL)
    go.set()
    drains.join()
    thread.join()
    assert got == ["done", "drained"]

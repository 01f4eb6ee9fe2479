"""A request that begins later than it was allowed: gaps and latencies count from when it is on its way."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import httpx
import pytest

from autothrottle._permit import Begun
from autothrottle.httpx import AsyncThrottleTransport
from autothrottle.testing import FakeClock
from helpers import URL, plain


async def test_a_gap_counts_from_when_a_function_waits(clock: FakeClock) -> None:
    throttle, begun = plain(clock), []

    async def connects() -> None:
        clock.jump(0.3)
        begun.append(clock.seconds)
        await asyncio.sleep(0)

    tasks = [asyncio.create_task(throttle.run(URL, connects)) for _ in range(3)]
    await clock.advance(9)
    await asyncio.gather(*tasks)
    assert begun == [0.3, 1.6, 2.9]


async def test_a_gap_counts_from_when_a_task_has_its_permit(clock: FakeClock) -> None:
    throttle = plain(clock, concurrency=9, scopes={"example.com": {"concurrency": 9}})
    throttle.on("send", lambda event: clock.jump(0.2) if event.at > 0 else None)
    tasks = [asyncio.ensure_future(throttle.acquire(URL)) for _ in range(3)]
    await clock.advance(9)
    permits = [await task for task in tasks]
    assert [permit.sent_at for permit in permits] == [0, 1.2, 2.4]
    for permit in permits:
        permit.settle(status=200)


async def test_a_latency_is_none_of_the_client(clock: FakeClock) -> None:
    latencies: list[Any] = []

    async def server(_: httpx.Request) -> httpx.Response:
        clock.jump(0.3)
        answered = asyncio.get_running_loop().create_future()
        clock.call_later(0.1, lambda: answered.set_result(None))
        await answered
        return httpx.Response(200)

    throttle = plain(clock)
    throttle.on("settle", lambda event: latencies.append(event.latency))
    async with httpx.AsyncClient(
        transport=AsyncThrottleTransport(throttle, httpx.MockTransport(server))
    ) as client:
        tasks = [asyncio.create_task(client.get(URL)) for _ in range(2)]
        await clock.advance(9)
        await asyncio.gather(*tasks)
    assert latencies == [pytest.approx(0.1)] * 2


async def test_half_a_millisecond_is_not_told(clock: FakeClock) -> None:
    throttle = plain(clock)

    async def work() -> None:
        clock.jump(0.0004)
        await asyncio.sleep(0)

    tasks = [asyncio.create_task(throttle.run(URL, work)) for _ in range(2)]
    await clock.advance(0.9)
    assert clock.next_at == 1
    await clock.advance(9)
    await asyncio.gather(*tasks)


async def test_who_looks_at_a_task_sees_its_work(clock: FakeClock) -> None:
    async def gives_up() -> str:
        # As httpx does by its timeouts: it asks in what state the task's coroutine is.
        with anyio.move_on_after(0):
            await anyio.sleep(3600)
        return repr(asyncio.current_task())

    said = await plain(clock).run(URL, gives_up, request_timeout=60)
    assert "gives_up" in said


async def test_what_begins_is_awaited_as_ever() -> None:
    said: list[str] = []

    async def fails() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise KeyError("cancelled") from None

    task = asyncio.ensure_future(Begun(fails(), lambda: said.append("begun")))
    await asyncio.sleep(0)
    assert said == ["begun"]
    task.cancel()
    with pytest.raises(KeyError):
        await task
    never = asyncio.ensure_future(Begun(fails(), lambda: said.append("never")))
    never.cancel()
    with pytest.raises(asyncio.CancelledError):
        await never
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_result(7)
    assert await Begun(future, lambda: said.append("at once")) == 7
    assert said == ["begun"]

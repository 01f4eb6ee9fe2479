"""``throttle.map``: many items, pulled as fast as they can be sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import pytest

from autothrottle import Throttle
from autothrottle.testing import FakeClock

URLS = [f"https://example.com/{number}" for number in range(4)]


def fast(clock: FakeClock) -> Throttle:
    return Throttle(clock=clock, delay=1, jitter=False, concurrency=16)


async def collect(clock: FakeClock, items: AsyncIterator[Any], seconds: float) -> list[Any]:
    async def all_of() -> list[Any]:
        return [item async for item in items]

    task = asyncio.create_task(all_of())
    await clock.advance(seconds)
    return await task


async def number(url: str) -> int:
    if url.endswith("2"):
        raise KeyError(url)
    return int(url[-1])


async def test_results_come_in_the_order_of_the_items(clock: FakeClock) -> None:
    async def slow_first(url: str) -> str:
        if url.endswith("0"):
            await asyncio.sleep(0)
        return url

    assert await collect(clock, fast(clock).map(URLS, slow_first), 4) == URLS


async def test_errors_end_it_are_left_out_or_given(clock: FakeClock) -> None:
    with pytest.raises(KeyError):
        await collect(clock, fast(clock).map(URLS, number), 4)
    assert await collect(clock, fast(clock).map(URLS, number, errors="skip"), 4) == [0, 1, 3]
    given = await collect(clock, fast(clock).map(URLS, number, errors="return"), 4)
    assert [type(each) for each in given] == [int, int, KeyError, int]


async def test_an_endless_source_is_pulled_only_as_fast_as_it_can_be_sent(clock: FakeClock) -> None:
    pulled = []

    def endless() -> Iterator[str]:
        for each in count():
            pulled.append(each)
            yield f"https://example.com/{each}"

    results = []

    async def take() -> None:
        async for result in fast(clock).map(endless(), number, buffer=5, errors="skip", ordered=False):
            results.append(result)
            if len(results) == 3:
                break

    task = asyncio.create_task(take())
    await clock.advance(10)
    await task
    assert results == [0, 1, 3]
    assert len(pulled) <= 4 + 5


async def test_an_async_source_ends_with_the_loop(clock: FakeClock) -> None:
    ended = []

    async def source() -> AsyncIterator[str]:
        try:
            for url in URLS:
                yield url
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    throttle = fast(clock)
    results = throttle.map(source(), number, errors="return")

    async def take() -> list[int]:
        taken = []
        async for result in results:
            taken.append(result)
            if len(taken) == 2:
                await results.aclose()  # type: ignore[attr-defined]
                break
        return taken

    task = asyncio.create_task(take())
    await clock.advance(5)
    assert await task == [0, 1]
    assert ended == [True]
    assert throttle.stats().waiting == 0


async def test_targets_and_scopes_may_be_told_of_items(clock: FakeClock) -> None:
    throttle = fast(clock)

    async def name(item: dict[str, str]) -> str:
        return item["name"]

    items = [{"name": "a", "host": "https://a.example/"}, {"name": "b", "host": "https://b.example/"}]
    mapped = throttle.map(items, name, target=lambda item: item["host"])
    assert await collect(clock, mapped, 0) == ["a", "b"]
    mapped = throttle.map(items, name, scopes=lambda item: item["name"])
    assert await collect(clock, mapped, 0) == ["a", "b"]
    assert set(throttle.stats().scopes) == {"a.example", "b.example", "a", "b"}


def test_what_makes_no_sense_is_refused(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match=r"map\.buffer: want a whole number from 1"):
        fast(clock).map(URLS, number, buffer=0)
    with pytest.raises(ValueError, match=r"map\.errors"):
        fast(clock).map(URLS, number, errors="settle")  # type: ignore[arg-type]

"""``run``, ``wrap`` and ``map``: what they hear, retries of their own, the permit, real costs per scope."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from autothrottle import (
    ConfigError,
    ManagerError,
    Permit,
    RetryAfterTooLongError,
    ScopeOptions,
    ThreadThrottle,
    Throttle,
)
from autothrottle.testing import FakeClock
from helpers import URL, Response, driven, plain, warned


class RefusedError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.response = Response(status)


def server(*statuses: int) -> tuple[Callable[[], Response], list[int]]:
    """Answers in turn, then 200; and what it answered."""
    left, said = list(statuses), []

    def answer() -> Response:
        said.append(left.pop(0) if left else 200)
        return Response(said[-1])

    return answer, said


async def test_a_when_that_fails_is_the_end_of_a_call(clock: FakeClock) -> None:
    def fail(_: object) -> bool:
        raise ValueError("no")

    throttle = plain(clock, retry={"limit": 3, "when": fail}, backoff=False)
    heard = warned(throttle)
    with pytest.raises(ManagerError):
        await driven(clock, throttle.run(URL, lambda: Response(503), retry=True))
    gc.collect()
    await clock.advance(60)
    stats = throttle.stats()
    assert (stats.sent, stats.waiting, stats.in_flight, heard) == (1, 0, 0, [])


async def test_run_calls_again(clock: FakeClock) -> None:
    throttle = plain(clock, retry={"limit": 1}, backoff=False)
    answer, said = server(503, 429)
    assert (await driven(clock, throttle.run(URL, answer, retry={"limit": 3}))).status_code == 200
    assert said == [503, 429, 200]
    answer, said = server(503, 503, 503)
    assert (await driven(clock, throttle.run(URL, answer, retry=True))).status_code == 503
    assert said == [503, 503]
    answer, said = server(404)
    assert (await driven(clock, throttle.run(URL, answer, retry=True))).status_code == 404
    assert throttle.stats().in_flight == throttle.stats().waiting == 0


async def test_errors_and_what_the_permit_was_told_are_tried_again(clock: FakeClock) -> None:
    throttle = plain(clock, backoff=False)
    calls: list[float] = []

    @throttle.wrap(retry={"limit": 2})
    async def refused(url: str) -> str:
        calls.append(clock.seconds)
        if len(calls) == 1:
            raise ConnectionResetError
        if len(calls) == 2:
            raise RefusedError(503)
        return url

    assert await driven(clock, refused(URL)) == URL
    assert calls == [0, 1, 2]

    async def text(url: str, permit: Permit) -> str:
        calls.append(clock.seconds)
        permit.settle(Response(429 if len(calls) < 6 else 200))
        return "text"

    calls.clear()
    pages = throttle.map([URL] * 4, text, retry={"limit": 5})

    async def all_of() -> list[str]:
        return [page async for page in pages]

    assert await driven(clock, all_of()) == ["text"] * 4
    assert len(calls) == 4 + 5
    assert throttle.stats().in_flight == throttle.stats().waiting == 0


async def test_a_bug_is_not_tried_again(clock: FakeClock) -> None:
    throttle = plain(clock)
    calls: list[int] = []

    def bug() -> None:
        calls.append(1)
        raise KeyError

    with pytest.raises(KeyError):
        await driven(clock, throttle.run(URL, bug, retry={"limit": 3}))
    assert calls == [1]


async def test_a_cancelled_function_gives_its_next_attempt_back(clock: FakeClock) -> None:
    throttle = plain(clock)

    async def told_and_hangs(permit: Permit) -> None:
        permit.settle(status=503)
        await asyncio.Event().wait()

    task = asyncio.ensure_future(throttle.run(URL, told_and_hangs, retry={"limit": 3}))
    await clock.advance(0)
    task.cancel()
    await clock.advance(10)
    assert task.cancelled()
    assert throttle.stats().in_flight == throttle.stats().waiting == 0


async def test_too_long_a_wait_is_an_error(clock: FakeClock) -> None:
    throttle = plain(clock, retry={"limit": 1, "max_retry_after": 10})
    late = Response(429, {"Retry-After": "100"})
    with pytest.raises(RetryAfterTooLongError) as raised:
        await driven(clock, throttle.run(URL, lambda: late, retry=True))
    assert raised.value.response is late


async def test_threads_call_again_too(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock, delay=1, jitter=False, backoff=False)
    answer, said = server(503, 429)
    assert throttle.run(URL, answer, retry={"limit": 2}).status_code == 200
    assert said == [503, 429, 200]
    assert throttle.wrap(retry={"limit": 1})(lambda url: url)(URL) == URL


@pytest.mark.parametrize(
    ("retry", "message"),
    [
        (3, r'retry: want True, or \{"limit": 3\} .*; got 3'),
        ({"limit": 3, "methods": ["GET"]}, r'retry.methods: want \{"limit": 3\} alone: a function is called'),
        ({"limit": 3, "status_codes": [500]}, "retry.status_codes: want it in the throttle's own retry"),
        (
            {"should_retry": bool},
            "retry.should_retry: want .* alone, as status_codes .*503 to be called",
        ),
        (True, "got True, but the throttle has no retry"),
    ],
)
async def test_a_retry_that_makes_no_sense(clock: FakeClock, retry: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await plain(clock).run(URL, Response, retry=retry)


async def test_the_throttles_retry_says_that_it_does_not_reach_run(clock: FakeClock) -> None:
    throttle = plain(clock, retry={"limit": 2})
    told = warned(throttle)
    await driven(clock, throttle.run(URL, Response))
    assert told == []
    for _ in range(2):
        await driven(clock, throttle.run(URL, lambda: Response(503)))
    said = "retry of the throttle is for requests of transports: run, wrap and map take retry=True"
    assert told == [("no-effect", said)]


async def test_answers_are_heard(clock: FakeClock) -> None:
    heard: list[int | None] = []
    throttle = plain(clock, delay=0)
    throttle.on("settle", lambda event: heard.append(event.status))

    class Broken:
        @property
        def status_code(self) -> int:
            raise RuntimeError("closed")

    results = (Response(201), {"response": Response(202)}, SimpleNamespace(response=Response(203)), Broken())
    for result in results:
        await driven(clock, throttle.run(URL, lambda result=result: result), 1)

    def wrapped() -> None:
        try:
            raise RefusedError(429)
        except RefusedError as refused:
            raise LookupError("no page") from refused

    with pytest.raises(LookupError):
        await driven(clock, throttle.run(URL, wrapped), 1)
    assert heard == [201, 202, 203, None, 429]
    assert throttle.stats().in_flight == 0


async def test_fields_without_a_value_keep_nothing_from_being_heard(clock: FakeClock) -> None:
    throttle = plain(clock)
    headers: Any = {"Retry-After": "30", "RateLimit": None}
    await driven(clock, throttle.run(URL, lambda: Response(429, headers)), 1)
    assert throttle.scope("example.com").stats.hold_until == 31


async def test_tasks_that_were_cancelled_are_no_deaf_ones(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    told: list[str] = []
    throttle.on("warning", lambda event: told.append(event.code))
    for _ in range(25):
        task = asyncio.ensure_future(throttle.run(URL, asyncio.Event().wait))
        await clock.advance(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (told, throttle.stats().in_flight) == ([], 0)


async def test_a_deaf_function_is_told_once_a_scope(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    told: list[tuple[str, str | None]] = []
    throttle.on("warning", lambda event: told.append((event.code, event.scope)))
    for count in range(60):
        result = Response() if count == 15 else "a text"
        await driven(clock, throttle.run(URL, lambda result=result: result), 1)
        assert told == ([] if count < 35 else [("no-status", "example.com")])
    for _ in range(30):
        await driven(clock, throttle.run(None, lambda: "no URL", scopes="jobs"), 1)
    assert len(told) == 1


async def test_real_costs_by_scope(clock: FakeClock) -> None:
    quotas: dict[str, ScopeOptions] = {"rpm": {"quota": 10}, "tpm": {"quota": 1000}}
    throttle = Throttle(clock=clock, scopes=quotas)

    def left() -> list[float | None]:
        return [throttle.scope(name).stats.quota_left for name in quotas]

    permit = await throttle.acquire(scopes={"rpm": 1, "tpm": 500})
    assert left() == [9, 500]
    permit.settle(status=200, cost={"tpm": 300})
    assert left() == [9, 700]
    permit = await throttle.acquire(scopes={"rpm": 1, "tpm": 500})
    with pytest.raises(TypeError, match="want a mapping of scope to cost"):
        permit.settle(status=200, cost=300)
    assert throttle.stats().in_flight == 0
    permit = await throttle.acquire(scopes=["rpm", "tpm"])
    with pytest.raises(ValueError, match="want costs of rpm, tpm; got one of 'tokens'"):
        permit.settle(status=200, cost={"tokens": 3})
    assert throttle.stats().in_flight == 0


# map: many items, pulled as fast as they can be sent.

URLS = [f"https://example.com/{number}" for number in range(4)]


def fast(clock: FakeClock) -> Throttle:
    return Throttle(clock=clock, delay=1, jitter=False, max_in_flight=16)


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
        for each in itertools.count():
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


def test_a_wrong_value_is_refused(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match=r"map\.buffer: want a whole number from 1"):
        fast(clock).map(URLS, number, buffer=0)
    with pytest.raises(ValueError, match=r"map\.errors"):
        fast(clock).map(URLS, number, errors="settle")  # type: ignore[arg-type]

"""Requests inside of functions that have a permit: no slot waits for itself, and answers count."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import httpx
import pytest

from autothrottle import ManagerError, Permit, ThreadThrottle, Throttle
from autothrottle._permit import _around
from autothrottle._watch import Following
from autothrottle.errors import NestedError
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.testing import FakeClock
from helpers import URL, Response, driven, plain, warned

OTHER = "https://other.example/"


def client_of(clock: FakeClock, throttle: Throttle, *statuses: int) -> tuple[httpx.AsyncClient, list[float]]:
    """A client of this throttle, and when its server was asked."""
    asked: list[float] = []
    left = list(statuses)

    def answer(_: httpx.Request) -> httpx.Response:
        asked.append(clock.seconds)
        return httpx.Response(left.pop(0) if left else 200, text="ok")

    return httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, httpx.MockTransport(answer))), asked


async def test_a_throttled_client_in_run_takes_the_permit(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    client, asked = client_of(clock, throttle, 429)
    sent: list[int] = []
    throttle.on("settle", lambda event: sent.append(event.status or 0))

    async def text(url: str) -> str:
        return (await client.get(url)).text

    assert await driven(clock, throttle.run(URL, text, URL)) == "ok"
    assert (asked, sent) == ([0], [429]), "heard, although a text was returned"
    assert throttle.scope("example.com").stats.backoff_step == 1


async def test_a_function_that_begins_the_next_one_before_it_ends_keeps_no_permit_but_the_last(
    clock: FakeClock,
) -> None:
    throttle = plain(clock, concurrency=2)
    kept: list[int] = []
    tasks: list[asyncio.Task[None]] = []

    async def poll(permit: Permit) -> None:
        around = _around.get()
        kept.append(len(around) if isinstance(around, tuple) else 1)
        permit.settle(status=200)
        if len(kept) < 50:
            tasks.append(asyncio.create_task(throttle.run(URL, poll)))

    await driven(clock, throttle.run(URL, poll))
    for task in tasks:
        await driven(clock, task)
    assert len(kept) == 50
    assert max(kept) <= 2


async def test_each_further_request_waits_for_the_pace(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    client, asked = client_of(clock, throttle)

    async def three(url: str) -> int:
        await client.get(url)
        await asyncio.gather(client.get(url), client.get(url))
        return 3

    pages = throttle.map([URL, f"{URL}2"], three)

    async def all_of() -> list[int]:
        return [page async for page in pages]

    assert await driven(clock, all_of()) == [3, 3]
    assert asked == [0, 1, 2, 3, 4, 5]
    assert throttle.stats().in_flight == 0


async def test_the_block_of_a_permit_and_wrap_do_it_as_well(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    client, asked = client_of(clock, throttle)

    async def block() -> None:
        async with throttle.acquire(URL):
            await client.get(URL)
            await client.get(URL)
        with await throttle.acquire(URL):
            await client.get(URL)

    @throttle.wrap
    async def get(url: str) -> httpx.Response:
        return await client.get(url)

    await driven(clock, block())
    await driven(clock, get(URL))
    await driven(clock, client.get(URL))
    assert asked == [0, 1, 2, 600, 1200]
    assert throttle.stats().in_flight == 0


async def test_slots_that_functions_hold_for_one_another_come_back(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    client, asked = client_of(clock, throttle)
    told = warned(throttle)

    async def elsewhere(_: str) -> int:
        return (await client.get(OTHER)).status_code

    assert await driven(clock, throttle.run(URL, elsewhere, URL)) == 200
    assert len(asked) == 1
    ((code, message),) = told
    assert code == "nested"
    assert message.endswith(
        "wait for (example.com): their slots are given back; raise `concurrency` or `max_in_flight`"
    )
    assert throttle.stats().in_flight == 0


async def test_in_a_shared_limit_they_come_back_when_nothing_moves(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    # As if other processes could give slots back.
    throttle._scheduler.following = Following(throttle._scheduler, cast("Any", None))
    client, _ = client_of(clock, throttle)
    told = warned(throttle)

    async def elsewhere(_: str) -> int:
        return (await client.get(OTHER)).status_code

    task = asyncio.ensure_future(throttle.run(URL, elsewhere, URL))
    await clock.advance(9)
    assert (told, task.done()) == ([], False)
    await clock.advance(10)
    assert ([code for code, _ in told], await task) == (["nested"], 200)
    assert throttle.stats().in_flight == 0


async def test_a_request_that_waits_for_resume_is_not_stuck(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1, defaults={"concurrency": 5})
    client, _ = client_of(clock, throttle)
    told = warned(throttle)

    async def elsewhere(_: str) -> int:
        throttle.pause()
        return (await client.get(OTHER)).status_code

    task = asyncio.ensure_future(throttle.run(URL, elsewhere, URL))
    await clock.advance(60)
    assert ("nested" in dict(told), throttle.stats().in_flight) == (False, 1)
    throttle.resume()
    await clock.advance(5)
    assert ("nested" in dict(told), await task) == (True, 200)


async def test_with_slots_left_another_scope_waits_for_its_own_pace_alone(clock: FakeClock) -> None:
    throttle = plain(clock, scopes={"other.example": {"delay": 5}})
    client, asked = client_of(clock, throttle)
    throttle.on("warning", lambda event: pytest.fail(event.message))

    async def elsewhere(permit: Permit) -> Response:
        await client.get(OTHER)
        await client.get(OTHER)
        assert not permit.is_settled
        return Response()

    await driven(clock, throttle.run(URL, elsewhere))
    assert asked == [0, 5]


async def test_another_cost_is_another_request(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, scopes={"example.com": {"quota": 10, "concurrency": 2}})

    async def costly() -> None:
        async with throttle.acquire(URL, cost=4) as permit:
            permit.settle(status=200)

    await driven(clock, throttle.run(URL, costly), 1)
    assert throttle.scope("example.com").stats.quota_left == 5


async def test_run_calls_again_for_what_a_request_inside_was_answered(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1, backoff=False)
    client, asked = client_of(clock, throttle, 503, 200, 503)

    async def twice(url: str) -> int:
        first = await client.get(url)
        await client.get(url)
        return first.status_code

    assert await driven(clock, throttle.run(URL, twice, URL, retry={"limit": 2})) == 200
    assert len(asked) == 6, "503 200 │ 503 200 │ 200 200"
    assert throttle.stats().in_flight == throttle.stats().waiting == 0


async def test_it_waits_as_long_as_the_server_asked(clock: FakeClock) -> None:
    throttle = plain(clock, backoff=False)
    called: list[float] = []

    def told(permit: Permit) -> None:
        called.append(clock.seconds)
        permit.settle(status=429 if len(called) == 1 else 200, headers={"Retry-After": "20"})

    await driven(clock, throttle.run(URL, told, retry={"limit": 1}))
    assert called == [0, 21]


async def test_tasks_beside_the_function_are_not_inside(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=1)
    client, asked = client_of(clock, throttle)
    gate = asyncio.Event()

    async def waits() -> None:
        await gate.wait()

    running = asyncio.ensure_future(throttle.run(URL, waits))
    other = asyncio.ensure_future(client.get(URL))
    await clock.advance(10)
    assert (asked, other.done()) == ([], False)
    gate.set()
    await clock.advance(10)
    await asyncio.gather(running, other)


def test_threads_nest_alike(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock, delay=1, jitter=False, max_in_flight=1)
    inner = ThrottleTransport(throttle, httpx.MockTransport(lambda _: httpx.Response(429)))
    done: list[float] = []

    def nested() -> None:
        with httpx.Client(transport=inner) as client:
            assert throttle.run(URL, lambda: client.get(URL).text) == ""
            with throttle.acquire(URL):
                client.get(URL)
                client.get(URL)
            done.append(clock.seconds)

    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join(20)
    assert done
    assert throttle.scope("example.com").stats.backoff_step > 0
    assert throttle.stats().in_flight == 0


HOOKS = ["get_hints", "get_response_delay", "get_response_backoff", "get_error_backoff"]
PAGE = "https://a.example/"


def answers_to(hook: str) -> httpx.MockTransport:
    """The requests that a hook is asked about."""

    def answer(_: httpx.Request) -> httpx.Response:
        if hook == "get_error_backoff":
            raise httpx.ConnectError("refused")
        return httpx.Response(200)

    return httpx.MockTransport(answer)


def is_refused(error: ManagerError, told: list[tuple[str, str]]) -> None:
    cause = error.__cause__
    assert isinstance(cause, NestedError)
    assert cause.code == "ERR_NESTED"
    assert str(cause).startswith(f"{PAGE}status waits for a slot that its own hook holds: ")
    assert told == []


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_that_waits_for_the_slot_of_its_own_request_is_refused(hook: str) -> None:
    clients: list[httpx.AsyncClient] = []

    async def ask(*_: object) -> None:
        await clients[0].get(f"{PAGE}status")

    options: Any = {hook: ask}
    throttle = Throttle(delay=0, max_in_flight=1, **options)
    told = warned(throttle)
    clients.append(httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, answers_to(hook))))
    with pytest.raises(ManagerError) as caught:
        await asyncio.wait_for(clients[0].get(PAGE), 5)
    is_refused(caught.value, told)


def test_a_thread_gets_it_as_well() -> None:
    clients: list[httpx.Client] = []
    options: Any = {"get_hints": lambda _: clients[0].get(f"{PAGE}status")}
    throttle = ThreadThrottle(delay=0, max_in_flight=1, **options)
    told = warned(throttle)
    clients.append(httpx.Client(transport=ThrottleTransport(throttle, answers_to("get_hints"))))
    with pytest.raises(ManagerError) as caught:
        clients[0].get(PAGE)
    is_refused(caught.value, told)


async def test_a_hook_that_asks_where_slots_are_left_is_answered() -> None:
    asked: list[str] = []
    clients: list[httpx.AsyncClient] = []

    async def ask(response: httpx.Response) -> None:
        if str(response.url) == PAGE:
            asked.append((await clients[0].get(f"{PAGE}status")).text)

    options: Any = {"get_hints": ask}
    throttle = Throttle(defaults={"concurrency": 2, "delay": 0, "slot_delay": 0}, **options)
    answers = httpx.MockTransport(lambda _: httpx.Response(200, text="fine"))
    clients.append(httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, answers)))
    assert (await clients[0].get(PAGE)).text == "fine"
    assert asked == ["fine"]
    assert throttle.stats().settled == 2

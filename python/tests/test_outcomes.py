"""Answers and their effect on a throttle, its notices, and managers that decide the pace in its place."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest

from autothrottle import (
    ManagerError,
    StalledError,
    Throttle,
)
from autothrottle._permit import Started
from autothrottle.httpx import AsyncThrottleTransport
from autothrottle.testing import FakeClock, settled
from helpers import URL, Response, plain, sends, warned


async def test_events_tell_what_happens(clock: FakeClock) -> None:
    throttle, heard = plain(clock, delay=0), []
    for kind in ("queued", "send", "settle", "backoff", "hold", "delay"):
        throttle.on(kind, lambda event: heard.append(event.kind))
    events: list[Any] = []

    @throttle.on("settle")
    def settle(event: Any) -> None:
        events.append(event)

    await throttle.run(URL, lambda: Response(429, {"Retry-After": "3"}))
    assert heard[:3] == ["queued", "send", "settle"]
    assert {"backoff", "hold"} <= set(heard)
    assert (events[0].status, events[0].target, events[0].scopes) == (429, URL, ("example.com",))
    throttle.off("settle", settle)
    throttle.scope("example.com").reset()
    await throttle.run(URL, Response)
    assert len(events) == 1
    with pytest.raises(ValueError, match="want one of queued, send"):
        throttle.on("sent", print)  # type: ignore[call-overload]


async def test_a_listener_that_fails_keeps_nobody_from_leaving(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = plain(clock)
    throttle.on("send", lambda _: 1 / 0)
    assert await sends(throttle, clock, 2, 1) == [0, 1]
    assert "a listener of 'send' failed" in caplog.text


async def test_a_listener_may_ask_for_more(clock: FakeClock) -> None:
    throttle, at = plain(clock), []
    more: list[asyncio.Future[Any]] = []

    def again(event: Any) -> None:
        if len(more) < 2:
            more.append(asyncio.ensure_future(throttle.acquire(URL)))

    throttle.on("send", again)
    at = await sends(throttle, clock, 1, 3)
    assert at == [0]
    for each in more:
        (await each).settle()
        await clock.advance(3)


async def test_a_stall_is_told_and_may_fail_those_who_wait(clock: FakeClock) -> None:
    throttle = plain(clock, stall_after=10, backoff={"max_delay": 1})
    throttle.on("stall", lambda event: event.fail())
    failed = []

    async def one() -> None:
        try:
            await throttle.run(URL, lambda: Response(503))
        except StalledError as error:
            failed.append(str(error))

    tasks = [asyncio.create_task(one()) for _ in range(40)]
    await clock.advance(40)
    await asyncio.gather(*tasks)
    assert failed
    assert failed[0].startswith("example.com has answered only badly for 1")


async def test_warnings_are_logged_once(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    throttle = plain(clock, warn_threshold=2)
    warnings = warned(throttle)
    await sends(throttle, clock, 5, 5)
    assert [code for code, _ in warnings] == ["many-waiting"]
    assert caplog.text.count("2 requests wait") == 1


async def test_autothrottles_line_is_logged(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    throttle = plain(clock, autothrottle=True, debug=True)
    with caplog.at_level(logging.DEBUG, "autothrottle"):
        async with throttle.acquire(URL) as permit:
            permit.settle(Response(), latency=0.2)
    assert "slot: example.com | conc: 0 | delay:" in caplog.text
    assert "latency:  200 ms" in caplog.text


async def test_a_permit_that_nobody_settles_is_given_back(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = plain(clock, delay=0)
    await throttle.acquire(URL)
    gc.collect()
    await settled()
    assert throttle.stats().in_flight == 0
    assert "collected as garbage before it was settled" in caplog.text


async def test_an_outcome_without_sense_gives_the_slot_back_all_the_same(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    for wrong in (
        {"status": 42},
        {"response": {"status": 200}},
        {"status": 200, "latency": -1},
        {"status": 200, "scopes": "other"},
        {"status": 200, "hints": {"delay": "x"}},
    ):
        permit = await throttle.acquire(URL)
        with pytest.raises((TypeError, ValueError, ManagerError)):
            permit.settle(**wrong)
        assert throttle.stats().in_flight == 0


async def test_an_outcome_concerns_the_scopes_it_names(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, concurrency=9)
    permit = await throttle.acquire(scopes=["api", "account"])
    permit.settle(status=429, scopes={"account": {"delay": 20}})
    stats = throttle.stats().scopes
    assert (stats["api"].backoff_step, stats["account"].backoff_step) == (0, 1)
    assert stats["account"].hold_until == pytest.approx(20, abs=0.01)


async def test_a_scope_of_which_only_its_quota_is_told_backs_off_as_the_status_says(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, defaults={"quota": 100, "delay": 0})
    permit = await throttle.acquire(scopes=["api", "account"])
    permit.settle(status=200, scopes={"api": {"cost": 30}, "account": {"remaining": 0, "reset": 20}})
    stats = throttle.stats().scopes
    assert (stats["api"].quota_left, throttle.peek(scopes="account").at) == (70, 20)
    assert [stats[name].backoff_step for name in ("api", "account")] == [0, 0]


async def test_hints_take_the_place_of_headers(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    permit = await throttle.acquire(URL)
    permit.settle(status=429, headers={"Retry-After": "1"}, hints={"delay": timedelta(seconds=50)})
    assert throttle.scope("example.com").stats.hold_until == pytest.approx(50, abs=0.01)


async def test_dialects_are_read_as_the_options_say(clock: FakeClock) -> None:
    hints = {"example.com": {"retry_after": "X-Wait", "retry_after_unit": "ms"}}
    throttle = plain(clock, delay=0, hints=hints)
    permit = await throttle.acquire(URL)
    permit.settle(status=429, headers={"X-Wait": "7000"})
    hold = throttle.scope("example.com").stats.hold_until
    assert hold is not None
    assert 7 <= hold <= 8.1


async def test_a_manager_sets_the_pace(clock: FakeClock) -> None:
    class Careful:
        delay = 0.0

        def on_bad(self, event: Any) -> None:
            self.delay = 30.0

        def on_good(self, event: Any) -> None:
            self.delay = 2.0

    throttle = Throttle(clock=clock, jitter=False, manager=lambda scope: Careful())  # type: ignore[arg-type,return-value]
    await throttle.run(URL, Response)
    assert throttle.scope("example.com").stats.delay == 2
    await clock.advance(2)
    await throttle.run(URL, lambda: Response(503))
    assert throttle.scope("example.com").stats.delay == 30


async def test_a_manager_that_fails_fails_its_request(clock: FakeClock) -> None:
    class Broken:
        def on_send(self, event: Any) -> None:
            raise ZeroDivisionError

    throttle = Throttle(clock=clock, manager=lambda scope: Broken())  # type: ignore[arg-type,return-value]
    with pytest.raises(ManagerError, match=r"manager of example\.com failed"):
        await throttle.acquire(URL)
    assert throttle.stats().in_flight == 0


async def test_a_wait_beyond_a_day_is_cut_with_a_warning(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    warnings = warned(throttle)
    await throttle.run(URL, lambda: Response(429, {"Retry-After": "3600"}))
    assert throttle.scope("example.com").stats.hold_until == pytest.approx(3601)
    assert not warnings
    throttle.scope("example.com").reset()
    await throttle.run(URL, lambda: Response(429, {"Retry-After": "100000"}))
    await clock.advance(90_000)
    await throttle.run(URL, Response)
    message = (
        "backoff.max_hold cuts a wait of example.com: the server asked for 100000 s, and 86400 s are kept"
    )
    assert warnings == [("wait-capped", message)]


# A request that begins later than it was allowed: gaps and latencies count from when it is on its way.


async def test_a_gap_counts_from_when_a_function_waits(clock: FakeClock) -> None:
    throttle, started = plain(clock), []

    async def connects() -> None:
        clock.jump(0.3)
        started.append(clock.seconds)
        await asyncio.sleep(0)

    tasks = [asyncio.create_task(throttle.run(URL, connects)) for _ in range(3)]
    await clock.advance(9)
    await asyncio.gather(*tasks)
    assert started == [0.3, 1.6, 2.9]


async def test_a_gap_counts_from_when_a_task_has_its_permit(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=9, scopes={"example.com": {"concurrency": 9}})
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


async def test_a_look_at_a_task_shows_its_work(clock: FakeClock) -> None:
    async def gives_up() -> str:
        # As httpx does by its timeouts: it asks in what state the task's coroutine is.
        with anyio.move_on_after(0):
            await anyio.sleep(3600)
        return repr(asyncio.current_task())

    said = await plain(clock).run(URL, gives_up, request_timeout=60)
    assert "gives_up" in said


async def test_a_call_that_begins_is_awaited_as_ever() -> None:
    said: list[str] = []

    async def fails() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise KeyError("cancelled") from None

    task = asyncio.ensure_future(Started(fails(), lambda: said.append("started")))
    await asyncio.sleep(0)
    assert said == ["started"]
    task.cancel()
    with pytest.raises(KeyError):
        await task
    never = asyncio.ensure_future(Started(fails(), lambda: said.append("never")))
    never.cancel()
    with pytest.raises(asyncio.CancelledError):
        await never
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    future.set_result(7)
    assert await Started(future, lambda: said.append("at once")) == 7
    assert said == ["started"]


# Servers with several budgets: what an answer says of one is for the requests that spend from it.

SITE = "https://api.github.com"


def answer(name: str, left: int) -> dict[str, Any]:
    """An answer of GitHub's."""
    headers = {"x-ratelimit-remaining": str(left), "x-ratelimit-reset": "60", "x-ratelimit-resource": name}
    return {"status": 200, "headers": headers}


class GitHub:
    """Two resources: 5 searches, and as much as one likes of the rest."""

    def __init__(self, throttle: Throttle, clock: FakeClock) -> None:
        self.throttle, self.clock = throttle, clock
        self.left = {"core": 5000, "search": 5}
        self.sent: list[tuple[str, float]] = []

    async def get(self, path: str) -> None:
        async with self.throttle.acquire(SITE + path) as permit:
            self.sent.append((path, self.clock.seconds))
            name = "search" if path.startswith("/search") else "core"
            self.left[name] -= 1
            assert self.left[name] >= 0, "none is refused"
            answered = asyncio.get_running_loop().create_future()
            self.clock.call_later(0.05, lambda: answered.set_result(None))
            await answered
            permit.settle(**answer(name, self.left[name]))


def made(clock: FakeClock, **options: Any) -> Throttle:
    return Throttle(clock=clock, defaults={"concurrency": 4, "delay": 0}, **options)


async def test_an_empty_search_does_not_hold_the_others(clock: FakeClock) -> None:
    throttle = made(clock)
    site = GitHub(throttle, clock)
    paths = [f"/search/issues?q={n}" if n % 3 == 0 else f"/repos/o{n}/n{n}" for n in range(60)]
    tasks = [asyncio.create_task(site.get(path)) for path in paths]
    await clock.advance(20)
    assert len(site.sent) == 45, "5 searches, 40 others"
    stats = throttle.scope("api.github.com").stats
    assert (stats.waiting, stats.reason) == (15, "quota")
    assert stats.budgets["search"].waiting == 15
    assert stats.budgets["search"].quota_left == 0
    assert 55 < (stats.budgets["search"].recovers_at or 0) < 62
    assert list(throttle.stats().scopes) == ["api.github.com"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert throttle.scope("api.github.com").stats.budgets["search"].waiting == 0


async def test_routes_are_in_the_snapshot(clock: FakeClock) -> None:
    throttle = made(clock)
    site = GitHub(throttle, clock)
    for path in ("/search/issues", "/user", "/search/issues", "/user"):
        task = asyncio.create_task(site.get(path))
        await clock.advance(1)
        await task
    snapshot = json.loads(json.dumps(throttle.snapshot()))
    other = FakeClock()
    again = GitHub(made(other, snapshot=snapshot), other)
    tasks = [asyncio.create_task(again.get("/user")) for _ in range(4)]
    await other.advance(0.01)
    assert len(again.sent) == 4, "a route that is known is not tried one by one"
    await other.advance(1)
    await asyncio.gather(*tasks)


async def test_a_server_that_names_none_has_one(clock: FakeClock) -> None:
    throttle = made(clock)
    async with throttle.acquire("https://api.example/a") as permit:
        permit.settle(status=200, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"})
    assert throttle.peek("https://api.example/b").at == 60
    assert throttle.scope("api.example").stats.budgets == {}

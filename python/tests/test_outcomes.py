"""What a throttle hears of answers, what it tells, and who decides the pace in its place."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import timedelta
from typing import Any

import pytest

from autothrottle import (
    ManagerError,
    StalledError,
    Throttle,
)
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
    assert warnings == [("hold-cut", message)]

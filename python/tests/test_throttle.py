"""``Throttle`` for asyncio, in fake time."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from autothrottle import (
    ClosedError,
    CostExceedsQuotaError,
    ManagerError,
    QueueFullError,
    SnapshotError,
    StalledError,
    Throttle,
    ThrottleTimeoutError,
    add_scope,
    by_host,
)
from autothrottle.testing import FakeClock, settled

URL = "https://example.com/"


@dataclass
class Response:
    """What any client gives."""

    status_code: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def plain(clock: FakeClock, **options: Any) -> Throttle:
    """A second between two sends, without jitter."""
    return Throttle(**{"clock": clock, "delay": 1, "jitter": False, **options})


async def sends(
    throttle: Throttle, clock: FakeClock, count: int, seconds: float, **options: Any
) -> list[float]:
    """When ``count`` requests that end at once leave."""
    at: list[float] = []

    async def one() -> None:
        async with throttle.acquire(**{"target": URL, **options}) as permit:
            at.append(permit.sent_at)
            permit.settle(Response())

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    await clock.advance(seconds)
    await asyncio.gather(*tasks)
    return at


async def test_requests_leave_a_delay_apart(clock: FakeClock) -> None:
    assert await sends(plain(clock), clock, 4, 3) == [0, 1, 2, 3]


async def test_a_rate_is_evenly_spaced(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, rate="240/min")
    assert await sends(throttle, clock, 3, 1) == [0, 0.25, 0.5]


async def test_times_are_timedeltas_as_well(clock: FakeClock) -> None:
    throttle = plain(clock, delay=timedelta(milliseconds=250))
    assert await sends(throttle, clock, 3, 1) == [0, 0.25, 0.5]


async def test_hosts_do_not_wait_for_each_other(clock: FakeClock) -> None:
    throttle = plain(clock)
    async with throttle.acquire("https://one.example/"), throttle.acquire("https://two.example/") as permit:
        assert permit.scopes == ("two.example",)
        assert clock.seconds == 0


async def test_a_slot_is_held_until_it_is_settled(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, concurrency=8, scopes={"example.com": {"concurrency": 1}})
    first = await throttle.acquire(URL)
    second = asyncio.ensure_future(throttle.acquire(URL))
    await clock.advance(5)
    assert not second.done()
    first.settle(Response())
    await settled()
    assert (await second).sent_at == 5
    (await second).settle()


async def test_the_higher_priority_is_first(clock: FakeClock) -> None:
    throttle, order = plain(clock), []

    async def one(priority: float) -> None:
        async with throttle.acquire(URL, priority=priority):
            order.append(priority)

    tasks = [asyncio.create_task(one(priority)) for priority in (0, 0, 5, -1, 9)]
    await clock.advance(10)
    await asyncio.gather(*tasks)
    assert order == [0, 9, 5, 0, -1]


async def test_a_request_has_a_delay_of_its_own(clock: FakeClock) -> None:
    assert await sends(plain(clock), clock, 1, 7, delay=7) == [7]


async def test_costs_are_paid_from_quotas(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, concurrency=9, quota={"limit": 10, "window": 60})
    assert await sends(throttle, clock, 3, 60, cost=4) == [0, 0, 60]
    with pytest.raises(CostExceedsQuotaError):
        await throttle.acquire(URL, cost=11)


async def test_scopes_and_their_costs_are_named(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, delay=0, scopes={"account": {"quota": {"limit": 3, "window": 10}}})
    async with throttle.acquire(scopes={"api": 1, "account": 3}) as permit:
        assert permit.scopes == ("api", "account")
    assert throttle.peek(scopes={"account": 1}).reason == "quota"
    assert throttle.peek(scopes=["api"]).at == 0


async def test_a_wait_ends_with_its_timeout_and_leaves_its_place(clock: FakeClock) -> None:
    throttle = plain(clock)
    async with throttle.acquire(URL):
        pass
    late = asyncio.ensure_future(throttle.acquire(URL, timeout=0.5))
    after = asyncio.ensure_future(throttle.acquire(URL))
    await clock.advance(1)
    with pytest.raises(ThrottleTimeoutError, match=r"waited 0\.5 s for permission"):
        await late
    assert isinstance(late.exception(), TimeoutError)
    assert (await after).sent_at == 1
    (await after).settle()


async def test_a_cancelled_task_gives_its_place_back(clock: FakeClock) -> None:
    throttle = plain(clock, concurrency=9, scopes={"example.com": {"concurrency": 9}})
    async with throttle.acquire(URL):
        pass
    tasks = [asyncio.ensure_future(throttle.acquire(URL)) for _ in range(3)]
    await settled()
    tasks[0].cancel()
    await clock.advance(2)
    assert tasks[0].cancelled()
    assert [(await task).sent_at for task in tasks[1:]] == [1, 2]
    assert throttle.stats().cancelled == 1
    for task in tasks[1:]:
        (await task).settle()


async def test_a_permit_that_never_arrives_gives_slot_and_cost_back(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, quota={"limit": 2, "window": 60}, concurrency=9)
    first = await throttle.acquire(scopes={"example.com": 1})
    throttle.pause()
    task = asyncio.ensure_future(throttle.acquire(URL))
    await settled()
    throttle.resume()  # the permit is given here; the task has not seen it yet
    task.cancel()
    await settled()
    stats = throttle.stats()
    assert (stats.in_flight, stats.scopes["example.com"].quota_left) == (1, 1)
    first.settle()


async def test_run_hears_refusals_of_any_client(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)

    async def refused() -> Response:
        return Response(429, {"Retry-After": "30"})

    response = await throttle.run(URL, refused)
    assert response.status_code == 429
    assert throttle.scope("example.com").stats.hold_until == pytest.approx(30, abs=1.1)
    assert throttle.peek(URL).reason == "hold"


async def test_an_error_in_the_block_says_what_it_says(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)

    class RefusedError(Exception):
        response = Response(503)

    steps = []
    for error in (ValueError("a bug"), asyncio.CancelledError(), ConnectionResetError(), RefusedError()):
        throttle.scope("example.com").reset()
        with pytest.raises(type(error)):
            async with throttle.acquire(URL):
                raise error
        steps.append(throttle.scope("example.com").stats.backoff_step)
    assert steps == [0, 0, 1, 1]


async def test_run_takes_plain_functions_and_arguments(clock: FakeClock) -> None:
    assert await plain(clock).run(URL, lambda a, b: a + b, 1, 2) == 3


async def test_run_gives_up_after_request_timeout(clock: FakeClock) -> None:
    throttle = plain(clock, request_timeout=5)
    ended = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.create_task(throttle.run(URL, never))
    await clock.advance(5)
    with pytest.raises(ThrottleTimeoutError, match="not answered within 5 s"):
        await task
    assert ended == [True]
    assert throttle.stats().in_flight == 0
    assert throttle.scope("example.com").stats.backoff_step == 1


async def test_wrap_keeps_the_function_and_throttles_it(clock: FakeClock) -> None:
    throttle, at = plain(clock), []

    @throttle.wrap
    async def get(url: str, *, page: int = 1) -> tuple[str, int]:
        """Gets."""
        at.append(clock.seconds)
        return url, page

    @throttle.wrap(target=lambda self, url: url, priority=3)
    async def method(self: object, url: str) -> str:
        return url

    tasks = [asyncio.create_task(get(URL, page=2)), asyncio.create_task(get(URL))]
    await clock.advance(1)
    assert [await task for task in tasks] == [(URL, 2), (URL, 1)]
    assert (at, get.__name__, get.__doc__) == ([0, 1], "get", "Gets.")
    assert await method(throttle, "https://other.example/") == "https://other.example/"


async def test_get_scopes_names_them_now_or_later(clock: FakeClock) -> None:
    async def later(request: Any) -> Any:
        await asyncio.sleep(0)
        return add_scope(by_host(request), "all")

    for hook in (lambda request: [by_host(request), "all"], later):
        throttle = plain(clock, get_scopes=hook)
        async with throttle.acquire(URL) as permit:
            assert permit.scopes == ("example.com", "all")


async def test_a_hook_that_fails_fails_its_own_request(clock: FakeClock) -> None:
    hooks: list[Any] = [lambda _: 1 / 0, lambda _: 5, lambda _: [], lambda _: {"a": "b"}]
    for hook in hooks:
        throttle = plain(clock, get_scopes=hook)
        with pytest.raises(ManagerError, match="get_scopes"):
            await throttle.acquire(URL)
        assert throttle.stats().waiting == 0


async def test_a_scope_is_held_paused_changed_and_reset(clock: FakeClock) -> None:
    throttle = plain(clock)
    scope = throttle.scope("example.com")
    scope.hold(3)
    assert await sends(throttle, clock, 1, 3) == [3]
    scope.configure(delay=0.5)
    assert await sends(throttle, clock, 1, 1) == [3.5]
    scope.pause()
    assert scope.stats.paused
    assert throttle.peek(URL).reason == "paused"
    scope.resume()
    throttle.pause()
    assert throttle.stats().paused
    throttle.resume()
    scope.hold(timedelta(hours=1))
    scope.reset()
    assert scope.stats.hold_until is None


async def test_robots_txt_sets_the_pace_of_defaults_only(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = plain(clock, scopes={"own.example": {"delay": 2}})
    text = "User-agent: *\nCrawl-delay: 4\n"
    assert throttle.robots(URL, text, user_agent="bot") == 4
    assert await sends(throttle, clock, 2, 4) == [0, 4]
    assert throttle.robots("own.example", text, user_agent="bot") == 4
    assert "robots.txt of own.example asks for one request at a time, 4 s apart" in caplog.text
    assert throttle.scope("other.example").crawl_delay(9) == "applied"
    assert throttle.scope("own.example").crawl_delay(9) == "overruled"


async def test_what_was_learned_goes_on_elsewhere(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    await throttle.run(URL, lambda: Response(429, {"Retry-After": "30"}))
    snapshot = throttle.snapshot()
    other = plain(FakeClock(100, wall=None), delay=0, snapshot=snapshot)
    hold = other.scope("example.com").stats.hold_until
    assert hold is not None
    assert 129 < hold < 132
    with pytest.raises(SnapshotError):
        plain(clock, snapshot={"version": 99})


async def test_what_waits_when_it_is_closed_fails(clock: FakeClock) -> None:
    throttle = plain(clock)
    flying = await throttle.acquire(URL)
    waiting = asyncio.ensure_future(throttle.acquire(URL))
    await settled()
    reason = RuntimeError("enough")
    throttle.close(reason)
    with pytest.raises(ClosedError) as caught:
        await waiting
    assert caught.value.__cause__ is reason
    with pytest.raises(ClosedError):
        await throttle.acquire(URL)
    flying.settle(Response())
    await throttle.idle()


async def test_idle_waits_for_all(clock: FakeClock) -> None:
    async with plain(clock) as throttle:
        task = asyncio.create_task(throttle.run(URL, asyncio.sleep, 0))
    with pytest.raises(ClosedError):
        await task
    throttle = plain(clock)
    permit = await throttle.acquire(URL)
    idle = asyncio.create_task(throttle.idle())
    await settled()
    assert not idle.done()
    permit.settle()
    await idle


async def test_as_many_wait_as_max_waiting(clock: FakeClock) -> None:
    throttle = plain(clock, max_waiting=1)
    async with throttle.acquire(URL):
        waiting = asyncio.ensure_future(throttle.acquire(URL))
        await settled()
        with pytest.raises(QueueFullError):
            await throttle.acquire(URL)
        waiting.cancel()
        await settled()


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
    warnings: list[Any] = []
    throttle.on("warning", warnings.append)
    await sends(throttle, clock, 5, 5)
    assert [event.code for event in warnings] == ["many-waiting"]
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


def test_a_throttle_belongs_to_its_loop(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)

    async def use() -> None:
        async with throttle.acquire(URL):
            pass

    asyncio.run(use())
    with pytest.raises(RuntimeError, match="belongs to another event loop"):
        asyncio.run(use())


async def test_the_timer_is_one_and_goes_when_nobody_waits(clock: FakeClock) -> None:
    throttle = plain(clock)
    async with throttle.acquire(URL):
        pass
    tasks = [asyncio.ensure_future(throttle.acquire(URL, timeout=100)) for _ in range(50)]
    await settled()
    assert clock.timers == 1
    for task in tasks:
        task.cancel()
    await settled()
    assert clock.timers == 0


async def test_a_laptop_that_slept_does_not_send_a_burst(clock: FakeClock) -> None:
    throttle = plain(clock)
    async with throttle.acquire(URL):
        pass
    tasks = [asyncio.ensure_future(throttle.acquire(URL)) for _ in range(3)]
    await settled()
    clock.jump(3600)
    await clock.advance(0)
    assert sum(task.done() for task in tasks) == 1
    for task in tasks:
        await clock.advance(1)
        (await task).settle()


async def test_what_is_no_target_says_so(clock: FakeClock) -> None:
    throttle = plain(clock)
    for wrong in ("example.com", "", None, 5):
        with pytest.raises(ValueError, match="want a URL with a host"):
            await throttle.acquire(wrong)
    with pytest.raises(ValueError, match="want the host alone"):
        throttle.scope(URL)
    with pytest.raises(TypeError, match="priority: want a number"):
        throttle.acquire(URL, priority="high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout: want seconds from 0 to a year"):
        throttle.acquire(URL, timeout=-1)

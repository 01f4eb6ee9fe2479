"""``Throttle`` for asyncio, in fake time."""

from __future__ import annotations

import asyncio
import pickle
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from autothrottle import (
    CancelEvent,
    ClosedError,
    CostExceedsQuotaError,
    ManagerError,
    QueueFullError,
    ScopeDownError,
    SnapshotError,
    ThreadThrottle,
    Throttle,
    ThrottleTimeoutError,
    add_scope,
    by_host,
)
from autothrottle.testing import FakeClock, settled
from helpers import URL, Response, plain, sends, warned


async def test_requests_leave_a_delay_apart(clock: FakeClock) -> None:
    assert await sends(plain(clock), clock, 4, 3) == [0, 1, 2, 3]


async def test_a_slot_is_held_until_it_is_settled(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, max_in_flight=8, scopes={"example.com": {"concurrency": 1}})
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
    late = asyncio.ensure_future(throttle.acquire(URL, max_wait=0.5))
    after = asyncio.ensure_future(throttle.acquire(URL))
    await clock.advance(1)
    with pytest.raises(ThrottleTimeoutError, match=r"waited 0\.5 s for permission"):
        await late
    assert isinstance(late.exception(), TimeoutError)
    assert (await after).sent_at == 1
    (await after).settle()


async def test_a_cancelled_task_gives_its_place_back(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=9, scopes={"example.com": {"concurrency": 9}})
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
    throttle = plain(clock, delay=0, backoff={})

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
    throttle = plain(clock, request_timeout=5, backoff={})
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


async def test_idle_waits_for_a_hook(clock: FakeClock) -> None:
    gate: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    throttle = plain(clock, get_scopes=lambda _: gate)
    acquired, idle = asyncio.ensure_future(throttle.acquire(URL)), asyncio.ensure_future(throttle.idle())
    await settled()
    assert not idle.done()
    gate.set_result("mine")
    (await acquired).settle()
    await idle


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


async def test_robots_txt_binds_under_scopes_of_ones_own(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0, concurrency=9, get_scopes=lambda request: "mine")
    assert await sends(throttle, clock, 2, 9) == [0, 0]
    throttle.robots(URL, "User-agent: *\nCrawl-delay: 4\n", user_agent="bot")
    assert await sends(throttle, clock, 2, 9) == [9, 13]
    assert await sends(throttle, clock, 2, 5, scopes={"api": 3}) == [18, 22]
    assert throttle.peek(URL, scopes="api").at == 26
    assert await sends(throttle, clock, 2, 0, target="https://other.example/") == [23, 23]
    throttle.robots(URL, "", user_agent="bot")
    assert await sends(throttle, clock, 2, 0) == [23, 23]


async def test_learned_state_goes_on_elsewhere(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    await throttle.run(URL, lambda: Response(429, {"Retry-After": "30"}))
    snapshot = throttle.snapshot()
    other = plain(FakeClock(100, wall=None), delay=0, snapshot=snapshot)
    hold = other.scope("example.com").stats.hold_until
    assert hold is not None
    assert 129 < hold < 132
    with pytest.raises(SnapshotError):
        plain(clock, snapshot={"version": 99})


async def test_a_request_that_waits_when_it_is_closed_fails(clock: FakeClock) -> None:
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
    permit = await throttle.acquire(URL)
    waiting = asyncio.ensure_future(throttle.acquire(URL))
    await settled()
    with pytest.raises(QueueFullError):
        await throttle.acquire(URL)
    waiting.cancel()
    await settled()
    permit.settle()


def test_a_throttle_belongs_to_its_loop(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)

    async def use() -> None:
        async with throttle.acquire(URL):
            pass

    asyncio.run(use())
    other = asyncio.new_event_loop()
    try:
        other.run_until_complete(use())
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            asyncio.run(use())
    finally:
        other.close()


def test_a_throttle_of_a_module_goes_on_in_the_next_run(clock: FakeClock) -> None:
    throttle = plain(clock, delay=10, retry={"limit": 1})
    sent: list[float] = []

    async def use(many: int) -> None:
        for _ in range(many):
            tasks = [asyncio.ensure_future(throttle.acquire(URL, max_wait=5000)) for _ in range(2)]
            await clock.advance(20)
            for task in tasks:
                permit = await task
                sent.append(permit.sent_at)
                permit.settle(status=200)

    async def leave() -> None:
        asyncio.ensure_future(throttle.acquire(URL)).add_done_callback(lambda _: None)
        await settled()

    asyncio.run(use(1))
    asyncio.run(leave())  # ends while a task waits
    asyncio.run(use(2))
    gaps = [later - before for before, later in pairwise(sent)]
    assert len(sent) == 6
    assert all(gap >= 10 for gap in gaps), "the pace goes on"
    assert throttle.stats().waiting == throttle.stats().in_flight == 0


async def test_the_timer_is_one_and_goes_when_nobody_waits(clock: FakeClock) -> None:
    throttle = plain(clock)
    async with throttle.acquire(URL):
        pass
    tasks = [asyncio.ensure_future(throttle.acquire(URL, max_wait=100)) for _ in range(50)]
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


async def test_a_value_that_is_no_target_says_so(clock: FakeClock) -> None:
    throttle = plain(clock)
    for wrong in ("example.com", "", None, 5):
        with pytest.raises(ValueError, match="want a URL with a host"):
            await throttle.acquire(wrong)
    with pytest.raises(ValueError, match="want the host alone"):
        throttle.scope(URL)
    with pytest.raises(TypeError, match="priority: want a number"):
        throttle.acquire(URL, priority="high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_wait: want seconds from 0 to a year"):
        throttle.acquire(URL, max_wait=-1)


async def test_a_rate_counts_cost_and_is_corrected_after_the_answer(clock: FakeClock) -> None:
    tokens: Any = {"rate": {"limit": 30_000, "window": 60, "burst": 30_000}}
    throttle = Throttle(scopes={"tokens": tokens, "calls": {"delay": 0}}, clock=clock)
    with pytest.raises(CostExceedsQuotaError, match=r"tokens.*rate.*ever allows"):
        await throttle.acquire(scopes={"tokens": 30_001, "calls": 1})
    permit = await throttle.acquire(scopes={"tokens": 1000, "calls": 1})
    permit.adjust({"tokens": 20_000})
    permit.adjust({"tokens": 31_000})
    assert throttle.peek(scopes={"tokens": 500}).at == 3
    permit.settle(status=200, cost={"tokens": 30_000})
    assert throttle.peek(scopes={"tokens": 500}).at == 1, "told twice, counted once"
    with pytest.raises(ValueError, match="want costs of"):
        permit.adjust({"other": 1})
    with pytest.raises(TypeError, match="want a mapping"):
        permit.adjust(1)


# Failing fast: hosts that are down, and stalls that a listener hears of.


async def test_requests_to_a_dead_host_are_over_soon(clock: FakeClock) -> None:
    # Without jitter the seventh failure is at 63 s; some draws with it end after the two minutes.
    throttle = plain(clock, delay=1, down_after=60, backoff={"jitter": 0})
    sent: list[float] = []
    errors: list[BaseException] = []

    def refuse() -> Response:
        sent.append(throttle.now())
        raise ConnectionRefusedError

    async def one() -> None:
        try:
            await throttle.run(URL, refuse)
        except (ConnectionError, ScopeDownError) as error:
            errors.append(error)

    tasks = [asyncio.create_task(one()) for _ in range(50)]
    await clock.advance(120)
    await asyncio.gather(*tasks)
    down = [error for error in errors if isinstance(error, ScopeDownError)]
    assert len(errors) == 50
    assert len(sent) < 12
    assert len(down) == 50 - len(sent)
    assert str(down[0]).startswith("example.com is down: no answer has come for ")
    again = pickle.loads(pickle.dumps(down[0]))
    assert (again.scope, again.seconds) == (down[0].scope, down[0].seconds)
    await one()
    assert isinstance(errors[-1], ScopeDownError)


async def test_a_stall_that_nobody_listens_to_is_a_warning(clock: FakeClock) -> None:
    throttle = plain(clock, backoff={"max_delay": 1})
    warnings = warned(throttle)
    tasks = [asyncio.create_task(throttle.run(URL, lambda: Response(503))) for _ in range(150)]
    await clock.advance(300)
    await asyncio.gather(*tasks)
    assert [code for code, _ in warnings if code == "stall"] == ["stall"]


async def test_a_timeout_that_a_known_hold_outlasts_is_refused_at_once(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    throttle.scope("example.com").hold(60)
    message = r"would be held for 60 s, longer than its max_wait, 5 s"
    with pytest.raises(ThrottleTimeoutError, match=message):
        await throttle.acquire(URL, max_wait=5)
    assert (throttle.stats().waiting, clock.now()) == (0, 0)
    waits = asyncio.ensure_future(throttle.acquire(URL, max_wait=61))
    await clock.advance(61)
    (await waits).settle()
    with ThreadThrottle(delay=0) as threads:
        threads.scope("example.com").hold(60)
        with pytest.raises(ThrottleTimeoutError, match="would be held"):
            threads.acquire(URL, max_wait=5)


async def test_a_request_that_gives_up_its_place_is_told_with_the_reason(clock: FakeClock) -> None:
    throttle = plain(clock, delay=60)
    told: list[CancelEvent] = []
    throttle.on("cancel", told.append)
    (await throttle.acquire(URL)).settle()
    late = asyncio.ensure_future(throttle.acquire(URL, max_wait=5))
    cut = asyncio.ensure_future(throttle.acquire(URL))
    closed = asyncio.ensure_future(throttle.acquire(URL))
    await clock.advance(5)
    cut.cancel()
    await asyncio.wait([late, cut])
    throttle.close()
    await asyncio.wait([closed])
    assert [(type(event.error).__name__, event.at) for event in told] == [
        ("ThrottleTimeoutError", 5),
        ("CancelledError", 5),
        ("ClosedError", 5),
    ]
    assert {(event.kind, event.target, event.scopes) for event in told} == {("cancel", URL, ("example.com",))}
    assert [event.id for event in told] == [2, 3, 4], "they count from 1, and the first one left"
    late.exception()
    closed.exception()


async def test_run_lets_as_much_time_pass_as_work_needs_and_tells_work_that_never_ends(
    clock: FakeClock,
) -> None:
    throttle = plain(clock, delay=60)
    answers = [Response(429, {"retry-after": "300"})]

    async def page(number: int) -> int:
        return (await throttle.run(URL, lambda: answers.pop() if answers else Response(200))).status_code

    # A coroutine, a task and a list of them; what it gives, and what it raises.
    assert await clock.run(page(1)) == 429
    assert await clock.run(asyncio.ensure_future(page(2))) == 200
    assert list(await clock.run(asyncio.gather(page(3), page(4)))) == [200, 200]
    assert 400 < clock.seconds < 700
    with pytest.raises(ZeroDivisionError):
        await clock.run(throttle.run(URL, lambda: 1 / 0))
    throttle.scope("example.com").hold(3000)
    stuck = asyncio.ensure_future(throttle.acquire(URL))
    with pytest.raises(RuntimeError, match="not done after 600 s: settle its permits, resume"):
        await clock.run(stuck, at_most=600)
    with pytest.raises(RuntimeError, match="although no timer is armed"):
        await FakeClock().run(stuck)
    assert not stuck.done(), "a task of the caller's goes on"
    (await clock.run(stuck)).settle()

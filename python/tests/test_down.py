"""Failing fast: hosts that are down, and stalls that a listener hears of."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from autothrottle import CancelEvent, ScopeDownError, ThreadThrottle, ThrottleTimeoutError
from autothrottle.testing import FakeClock
from helpers import URL, Response, plain, warned


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
    message = r"would be held for 60 s, longer than its timeout \(5 s\) allows"
    with pytest.raises(ThrottleTimeoutError, match=message):
        await throttle.acquire(URL, timeout=5)
    assert (throttle.stats().waiting, clock.now()) == (0, 0)
    waits = asyncio.ensure_future(throttle.acquire(URL, timeout=61))
    await clock.advance(61)
    (await waits).settle()
    with ThreadThrottle(delay=0) as threads:
        threads.scope("example.com").hold(60)
        with pytest.raises(ThrottleTimeoutError, match="would be held"):
            threads.acquire(URL, timeout=5)


async def test_a_request_that_gives_up_its_place_is_told_with_the_reason(clock: FakeClock) -> None:
    throttle = plain(clock, delay=60)
    told: list[CancelEvent] = []
    throttle.on("cancel", told.append)
    (await throttle.acquire(URL)).settle()
    late = asyncio.ensure_future(throttle.acquire(URL, timeout=5))
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
    assert len({event.id for event in told}) == 3
    late.exception()
    closed.exception()

"""Fixtures of the tests. Coroutines run on a loop of their own; time is a ``FakeClock``'s: none sleeps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from autothrottle import Throttle
from autothrottle.testing import FakeClock, settled

T = TypeVar("T")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    work = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    # No test takes time: what is not over by then hangs.
    asyncio.run(asyncio.wait_for(work, 30))
    return True


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def drive(clock: FakeClock) -> Callable[[Throttle, Awaitable[Any]], Awaitable[Any]]:
    """Runs something to its end over real sockets, in fake time that moves while no request is in flight."""

    async def driven(throttle: Throttle, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.sleep(0)
            if throttle.stats().in_flight == 0 and clock.next_at is not None:
                await settled()
                if not task.done() and throttle.stats().in_flight == 0 and clock.next_at is not None:
                    await clock.advance(max(0.0, clock.next_at - clock.seconds))
        return await task

    return driven

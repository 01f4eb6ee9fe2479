"""Who leaves later than it was granted, in a group: the next one waits its gap from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from autothrottle import Throttle
from autothrottle.testing import settled

from .test_group import gaps, pair
from .world import Event, Process


@pytest.mark.parametrize("is_writer", [False, True], ids=["a member", "the writer"])
def test_who_leaves_late_makes_the_next_one_wait_its_gap_from_there(is_writer: bool) -> None:
    world, *both = pair()
    late, other = both if is_writer else reversed(both)
    left: list[float] = []

    def slowly(ticket: int) -> None:
        """Its first connection: the request is on its way only then."""

        def leave() -> None:
            assert late.host.is_awaited
            late.host.left(late.ns, ticket)
            left.append(world.now)

        world.after(40, late, leave)

    late.work = slowly
    other.work = lambda _: left.append(world.now)
    for process, ms in ((other, 0), (late, 10), (other, 20), (other, 30)):
        world.after(ms, process, partial(process.submit, "gap"))
    world.run(1000)
    assert gaps(left) == [pytest.approx(gap, abs=3) for gap in (190, 150, 150)]


class ClockOf:
    """The clock of a process, as a throttle has it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def now(self) -> int:
        return self._process.ns

    def wall(self) -> int:
        return round(self._process.wall() * 1e6)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Event:
        return self._process.call_later(seconds * 1000, callback)

    def wait(self, condition: Any, seconds: float | None) -> None:
        raise NotImplementedError


async def test_a_throttle_whose_function_begins_late_tells_its_group() -> None:
    world, writer, member = pair()
    left: list[float] = []
    shared: Any = SimpleNamespace(open_host=lambda *_: member.host)
    throttle = Throttle(clock=ClockOf(member), shared=shared)

    async def connects() -> None:
        world.now += 40
        left.append(world.now)
        await asyncio.sleep(0)

    writer.work = lambda _: left.append(world.now)
    writer.submit("gap")
    task = asyncio.ensure_future(throttle.run(None, connects, scopes="gap"))
    await settled()
    for ms in (20, 30):
        world.after(ms, writer, partial(writer.submit, "gap"))
    for _ in range(800):
        world.run(1)
        await settled()
    await task
    assert gaps(left) == [pytest.approx(gap, abs=3) for gap in (190, 150, 150)]

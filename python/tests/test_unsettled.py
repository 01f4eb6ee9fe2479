"""A permit that is never settled is said, where requests wait for it and where the program ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autothrottle import Throttle
from autothrottle.testing import FakeClock
from helpers import URL, warned

HERE = Path(__file__).resolve().parent
ONE: dict[str, Any] = {"delay": 0, "concurrency": 1}
END = "the program ends, and 1 permit was not settled: use `with`"


async def test_requests_that_wait_for_a_permit_that_is_never_settled_are_told_of(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, **ONE)
    said = warned(throttle)
    held = await throttle.acquire(URL)
    waiting = asyncio.ensure_future(one(throttle))
    await clock.advance(59)
    assert not said
    await clock.advance(2)
    ((code, message),) = said
    assert code == "unsettled"
    assert "have waited for a minute, and 1 permit was not settled meanwhile" in message
    held.settle(status=200)
    await waiting


async def test_a_block_that_takes_long_is_no_fault(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, **ONE)
    said = warned(throttle)
    async with throttle.acquire(URL):
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(600)
    await waiting
    with await throttle.acquire(URL):
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(600)
    await waiting
    # One after the other, each settled: that takes long, and none is forgotten.
    for _ in range(3):
        permit = await throttle.acquire(URL)
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(40)
        permit.settle(status=200)
        await waiting
    assert not said


async def one(throttle: Throttle) -> None:
    async with throttle.acquire(URL):
        pass


TASK = """
async def main():
    kept.append(throttle := Throttle())
    {}
asyncio.run(main())
"""
LOST = "was collected as garbage before it was settled: use `with`"
PROGRAMS = {
    "a task": (TASK.format("kept.append(await throttle.acquire(URL))"), END),
    "a lost one": (TASK.format("await throttle.acquire(URL)"), LOST),
    "a thread": ("throttle = ThreadThrottle()\nheld = throttle.acquire(URL)", END),
}
FINE = "t = ThreadThrottle()\nwith t.acquire(URL):\n    pass\nt.acquire(URL).settle(status=200)"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_ends_with_one_says_so(name: str) -> None:
    program, what = PROGRAMS[name]
    assert what in stderr_of(program)


def test_a_program_that_settles_them_says_nothing() -> None:
    assert stderr_of(FINE) == ""


def stderr_of(program: str) -> str:
    head = "import asyncio\nfrom autothrottle import *\nkept, URL = [], 'https://a.example/'\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr

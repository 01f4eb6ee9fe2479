"""What tests of throttles share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from autothrottle import ThreadThrottle, Throttle
from autothrottle.testing import FakeClock

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


async def driven(clock: FakeClock, work: Any, seconds: float = 600) -> Any:
    """What it gives within that many seconds of fake time."""
    task = asyncio.ensure_future(work)
    await clock.advance(seconds)
    assert task.done(), "it hangs"
    return await task


def warned(throttle: Throttle | ThreadThrottle) -> list[tuple[str, str]]:
    """The warnings that it tells from now on: code and message."""
    told: list[tuple[str, str]] = []
    throttle.on("warning", lambda event: told.append((event.code, event.message)))
    return told

"""What tests of throttles share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from autothrottle import Throttle
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

"""Servers with several budgets: what an answer says of one is for the requests that spend from it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from autothrottle import Throttle
from autothrottle.testing import FakeClock

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

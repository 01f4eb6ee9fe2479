"""Plays ``tests/vectors/routes.jsonl``: requests at their instants, what their servers answer, and when each
leaves. JavaScript and Rust play the same cases (``tests/js/routes.test.ts``, ``tower/tests/routes.rs``).
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from autothrottle import Throttle
from autothrottle.testing import FakeClock
from helpers import Response, vectors

CASES = vectors("routes")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_routes(case: dict[str, Any], clock: FakeClock) -> None:
    options = {{"maxInFlight": "max_in_flight"}.get(key, key): each for key, each in case["options"].items()}
    throttle = Throttle(**options, clock=clock)
    restarts = case.get("restarts")
    tasks, left = [], []

    def send(ask: dict[str, Any], number: int, leaves: list[float | None]) -> Any:
        url = ask["url"].replace("{n}", str(number))
        method = ask.get("method")

        async def answer() -> Response:
            leaves[number] = round(clock.seconds * 1000)
            done = asyncio.Event()
            clock.call_later(ask.get("takes", 10) / 1000, done.set)
            await done.wait()
            return Response(ask.get("status", 200), ask.get("fields", {}))

        return throttle.run(url if method is None else SimpleNamespace(url=url, method=method), answer)

    for ask in case["asks"]:
        await clock.advance(ask["at"] / 1000 - clock.seconds)
        if restarts is not None and ask["at"] >= restarts:
            throttle = Throttle(**options, clock=clock, snapshot=throttle.snapshot())
            restarts = None
        leaves: list[float | None] = [None] * ask.get("count", 1)
        left.append(leaves)
        tasks += [asyncio.ensure_future(send(ask, number, leaves)) for number in range(len(leaves))]
    await clock.advance(30)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [set(leaves) for leaves in left] == [{ask["leaves"]} for ask in case["asks"]]

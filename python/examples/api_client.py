"""A client of an API with a budget: costs in units, retries by the server's own word, state that survives a
restart.

python examples/api_client.py https://api.example/v1/ state.json
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx

from autothrottle import SnapshotError, Throttle
from autothrottle.httpx import AsyncThrottleTransport


def throttle_of(state: Path) -> Throttle:
    """A hundred units a second and a thousand an hour, as far as they were not used before."""
    settings: dict[str, Any] = {
        "rate": {"limit": 100, "burst": 25},
        "quota": {"limit": 1000, "window": 3600},
        "retry": {"limit": 5, "max_retry_after": 120},
    }
    try:
        return Throttle(**settings, snapshot=json.loads(state.read_text()))
    except (FileNotFoundError, json.JSONDecodeError, SnapshotError):
        return Throttle(**settings)


async def ask(base: str, state: Path, transport: httpx.AsyncBaseTransport | None = None) -> list[int]:
    """A cheap question first, then two dear ones."""
    throttle = throttle_of(state)
    throttled = AsyncThrottleTransport(throttle, transport)
    async with httpx.AsyncClient(base_url=base, transport=throttled) as client:
        cheap = client.get("items", extensions={"throttle": {"priority": 1}})
        dear = (client.get(f"reports/{each}", extensions={"throttle": {"cost": 25}}) for each in (1, 2))
        responses = await asyncio.gather(cheap, *dear)
    state.write_text(json.dumps(throttle.snapshot()))  # noqa: ASYNC240
    return [response.status_code for response in responses]


if __name__ == "__main__":
    print(asyncio.run(ask(sys.argv[1], Path(sys.argv[2]))))

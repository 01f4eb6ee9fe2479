"""One limit for many processes: run it several times at once, also on other machines.

python examples/many_processes.py redis://localhost:6379/0 https://example.com/ https://example.com/about
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import redis
import requests

from autothrottle import ThreadThrottle
from autothrottle.redis import shared
from autothrottle.requests import ThrottleAdapter


def fetch_all(store: str, urls: Iterable[str]) -> list[int]:
    """Gets each URL. All processes together send as much as one may."""
    with (
        redis.Redis.from_url(store) as client,
        ThreadThrottle(rate="5/s", concurrency=8, shared=shared(client, name="examples")) as throttle,
        requests.Session() as session,
    ):
        throttle.on("warning", print)
        for scheme in ("https://", "http://"):
            session.mount(scheme, ThrottleAdapter(throttle))
        with ThreadPoolExecutor(8) as pool:
            return [response.status_code for response in pool.map(session.get, urls)]


if __name__ == "__main__":
    print(fetch_all(sys.argv[1], sys.argv[2:]))

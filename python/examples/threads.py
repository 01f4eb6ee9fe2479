"""Threads with requests: one throttle for all of them.

python examples/threads.py https://example.com/ https://example.com/about
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import requests

from autothrottle import ThreadThrottle
from autothrottle.requests import ThrottleAdapter


def fetch_all(urls: Iterable[str], throttle: ThreadThrottle) -> list[int]:
    """Gets each URL, in as many threads as there may be requests in flight."""
    with requests.Session() as session:
        session.mount("https://", ThrottleAdapter(throttle))
        session.mount("http://", ThrottleAdapter(throttle))
        with ThreadPoolExecutor(8) as pool:
            return [response.status_code for response in pool.map(session.get, urls)]


if __name__ == "__main__":
    print(fetch_all(sys.argv[1:], ThreadThrottle(rate="5/s", concurrency=8, retry={"limit": 3})))

"""A polite crawl with httpx: pages are pulled as fast as each server allows, from any number of URLs.

python examples/crawl.py https://example.com/ https://example.com/about
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable

import httpx

from autothrottle import Throttle


async def crawl(urls: Iterable[str], client: httpx.AsyncClient) -> list[int]:
    """Gets each URL and prints what became of it. ``map`` hears the answers: 429 and Retry-After, too."""
    throttle = Throttle(delay=0.5, request_timeout=30)
    throttle.on("backoff", lambda event: print(f"{event.scope}: every {event.delay:.1f} s from now on"))
    statuses = []
    async for page in throttle.map(urls, client.get, errors="return", ordered=False):
        status = page.status_code if isinstance(page, httpx.Response) else 0
        print(status or page, getattr(page, "url", ""))
        statuses.append(status)
    return statuses


async def main() -> None:
    async with httpx.AsyncClient() as client:
        await crawl(sys.argv[1:] or ["https://example.com/"], client)


if __name__ == "__main__":
    asyncio.run(main())

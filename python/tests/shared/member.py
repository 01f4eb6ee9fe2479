"""One of several processes that share a limit: ``member.py {kind, port, name, url, options, cluster}``. It
asks for pages until it is killed. ``tests/shared/member.mjs`` is its sister in Node, and takes the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import urllib.request
from typing import Any

import redis
import redis.asyncio

from autothrottle import ThreadThrottle, Throttle
from autothrottle.redis import shared


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as response:
        response.read()
        return response


async def with_tasks(settings: dict[str, Any]) -> None:
    kind = redis.asyncio.RedisCluster if settings["cluster"] else redis.asyncio.Redis
    client = kind(host="127.0.0.1", port=settings["port"])
    throttle = Throttle(**settings["options"], shared=shared(client, name=settings["name"]))
    throttle.on("warning", lambda warning: print(warning.code, flush=True))

    async def ask() -> None:
        while True:
            await throttle.run(settings["url"], lambda: asyncio.to_thread(get, settings["url"]))

    await asyncio.gather(*(ask() for _ in range(4)))


def with_threads(settings: dict[str, Any]) -> None:
    kind = redis.RedisCluster if settings["cluster"] else redis.Redis
    client = kind(host="127.0.0.1", port=settings["port"])
    throttle = ThreadThrottle(**settings["options"], shared=shared(client, name=settings["name"]))
    throttle.on("warning", lambda warning: print(warning.code, flush=True))

    def ask() -> None:
        while True:
            throttle.run(settings["url"], lambda: get(settings["url"]))

    for _ in range(4):
        threading.Thread(target=ask, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if given["kind"] == "tasks":
        asyncio.run(with_tasks(given))
    else:
        with_threads(given)

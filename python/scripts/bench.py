"""What a request costs in Python: ``python python/scripts/bench.py``. CPU time, without any network.

A cycle is one request: in, out, and what became of it. The budget of the engine's is 200 µs.

The trap is the first call, which compiles the component and fills caches: it is told on its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from autothrottle import ThreadThrottle, Throttle
from autothrottle.engine import Engine

ROUNDS = 5
CYCLES = 2000
URL = "https://example.com/"
FIELDS = {
    "Content-Type": "text/html",
    "Date": "Sat, 21 Nov 2026 12:00:00 GMT",
    "RateLimit": '"default";r=50;t=30',
}


class Response:
    """What a client gives."""

    status_code = 200
    headers = FIELDS


def measured(name: str, run: Callable[[], None]) -> None:
    """The best of some rounds, in microseconds of CPU a cycle."""
    run()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        times.append((time.process_time() - start) / CYCLES * 1e6)
    print(f"{name:44} {min(times):6.0f} µs")


def cycles(engine: Engine, fields: dict[str, str] | None) -> Callable[[], None]:
    """Requests of an engine, one after the other."""
    scope = engine.scope("example.com")

    def run() -> None:
        for _ in range(CYCLES):
            now = time.monotonic_ns()
            ticket = engine.submit(now, [scope])
            assert engine.poll(now).send == [ticket]
            engine.settle(time.monotonic_ns(), ticket, status=200, latency=1_000_000, headers=fields)

    return run


def tasks() -> Callable[[], None]:
    """The same of a throttle for tasks."""
    loop = asyncio.new_event_loop()
    throttle = Throttle(delay=0)

    async def work() -> None:
        for _ in range(CYCLES):
            async with throttle.acquire(URL) as permit:
                permit.settle(Response())

    return lambda: loop.run_until_complete(work())


def in_line() -> Callable[[], None]:
    """Tasks that wait for each other: one slot."""
    loop = asyncio.new_event_loop()
    throttle = Throttle(delay=0, concurrency=1, warn_threshold=CYCLES * 2)

    async def one() -> None:
        async with throttle.acquire(URL) as permit:
            permit.settle(Response())
            await asyncio.sleep(0)

    async def work() -> None:
        permit = await throttle.acquire(URL)
        waiting = [asyncio.ensure_future(one()) for _ in range(CYCLES)]
        await asyncio.sleep(0)
        permit.settle(Response())
        await asyncio.gather(*waiting)

    return lambda: loop.run_until_complete(work())


def threads() -> Callable[[], None]:
    """The same of a throttle for threads."""
    throttle = ThreadThrottle(delay=0)

    def run() -> None:
        for _ in range(CYCLES):
            with throttle.acquire(URL) as permit:
                permit.settle(Response())

    return run


def main() -> None:
    """Measures all of them."""
    start = time.process_time()
    engine = Engine({"defaults": {"delay": 0}})
    print(f"{'the first engine of the process':44} {(time.process_time() - start) * 1000:6.0f} ms")
    measured("engine: submit, poll, settle", cycles(engine, None))
    measured("engine: the same, with header fields", cycles(engine, FIELDS))
    measured("Throttle: async with acquire, settle", tasks())
    measured("Throttle: the same, after waiting in line", in_line())
    measured("ThreadThrottle: with acquire, settle", threads())


if __name__ == "__main__":
    main()

"""What a request costs in Python: ``python python/scripts/bench.py``. CPU time, without any network.

A cycle is one request: in, out, and what became of it. Ten thousand tasks stand beside what does less:
a task that only sleeps, asyncio's semaphore, and aiolimiter where it is installed.

The trap is the first call, which fills caches: it is measured on its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from autothrottle import ThreadThrottle, Throttle
from autothrottle.engine import Engine

ROUNDS = 5
CYCLES = 2000
TASKS = 10_000
URL = "https://example.com/"
FIELDS = {
    "Content-Type": "text/html",
    "Date": "Sat, 21 Nov 2026 12:00:00 GMT",
    "RateLimit": '"default";r=1000000;t=1',
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
    print(f"{name:44} {min(times):6.1f} µs")


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


def many(one: Callable[[int], Awaitable[None]]) -> float:
    """Ten thousand tasks at a time: microseconds of CPU a task."""

    async def work() -> None:
        await asyncio.gather(*(one(place) for place in range(TASKS)))

    start = time.process_time()
    asyncio.run(work())
    return (time.process_time() - start) / TASKS * 1e6


def side_by_side() -> None:
    """What a permit costs a task, beside what does less."""
    wide = {"concurrency": TASKS * 2, "warn_threshold": TASKS * 2, "warnings": False}

    def throttled(hosts: int = 1, told: bool = False, **pace: object) -> Callable[[int], Awaitable[None]]:
        made: list[tuple[object, Throttle]] = []
        urls = [f"https://{place}.example/" for place in range(hosts)]
        defaults = {"concurrency": TASKS * 2, **(pace or {"delay": 0, "slot_delay": 0})}

        async def one(place: int) -> None:
            loop = asyncio.get_running_loop()
            if not made or made[0][0] is not loop:
                made[:] = [(loop, Throttle(defaults=defaults, **wide))]  # type: ignore[arg-type]
            async with made[0][1].acquire(urls[place % hosts]) as permit:
                await asyncio.sleep(0)
                if told:
                    permit.settle(Response())

        return one

    semaphores: dict[object, asyncio.Semaphore] = {}

    async def semaphore(_: int) -> None:
        loop = asyncio.get_running_loop()
        async with semaphores.setdefault(loop, asyncio.Semaphore(100)):
            await asyncio.sleep(0)

    async def sleeps(_: int) -> None:
        await asyncio.sleep(0)

    rows: dict[str, Callable[[int], Awaitable[None]]] = {
        "a task that sleeps": sleeps,
        "asyncio.Semaphore": semaphore,
        "a permit": throttled(),
        "the same, settled with a response": throttled(told=True),
        "the same, of 1,000 hosts": throttled(1000),
        "the same, with a rate": throttled(rate=100_000),
    }
    try:
        from aiolimiter import AsyncLimiter  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass
    else:
        limiters: dict[object, AsyncLimiter] = {}

        async def limited(_: int) -> None:
            loop = asyncio.get_running_loop()
            async with limiters.setdefault(loop, AsyncLimiter(TASKS * 2, 1)):
                await asyncio.sleep(0)

        rows["aiolimiter"] = limited
    # Round by round, so that a busy machine slows all of them down alike.
    rounds = [{name: many(one) for name, one in rows.items()} for _ in range(ROUNDS)]
    for name in rows:
        print(f"{TASKS} tasks: {name:31} {min(each[name] for each in rounds):6.1f} µs")


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
    side_by_side()


if __name__ == "__main__":
    main()

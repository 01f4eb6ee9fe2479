"""The cost of a request in Python: ``python python/scripts/bench.py``. CPU time, without any network.

A cycle is one request: in, out, and what became of it. Ten thousand tasks stand beside what does less:
a task that only sleeps, asyncio's semaphore, and aiolimiter and pyrate-limiter where they are installed.

The first call, which fills caches, is measured on its own.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from autothrottle import ThreadThrottle, Throttle
from autothrottle.engine import Engine
from autothrottle.opentelemetry import instrument

ROUNDS = 5
CYCLES = 2000
TASKS = 10_000
URL = "https://example.com/"
FIELDS = {
    "Content-Type": "text/html",
    "Date": "Sat, 21 Nov 2026 12:00:00 GMT",
    "RateLimit": '"default";r=1000000;t=1',
}


FIRST = f"""
import asyncio, sys, time
sys.path.insert(0, {sys.path[0]!r})
from autothrottle import Throttle

async def main():
    start = time.process_time()
    async with Throttle().acquire({URL!r}):
        pass
    print((time.process_time() - start) * 1000)

asyncio.run(main())
"""


class Response:
    """A client's response."""

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
    throttle = Throttle(delay=0, max_in_flight=1, warn_threshold=CYCLES * 2)

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


def seen(is_on: bool) -> Callable[[], None]:
    """The same of a throttle that tells OpenTelemetry, without an exporter."""
    throttle = ThreadThrottle(delay=0)
    end = instrument(throttle)
    if not is_on:
        end()

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


def peers() -> dict[str, Callable[[], Callable[[], Awaitable[object]]]]:
    """Limiters that are installed: what makes one gives the call that waits."""
    found: dict[str, Callable[[], Callable[[], Awaitable[object]]]] = {}
    try:
        from aiolimiter import AsyncLimiter  # type: ignore[import-not-found, unused-ignore]

        found["aiolimiter"] = lambda: AsyncLimiter(TASKS * 2, 1).acquire
    except ImportError:
        pass
    try:
        from pyrate_limiter import Limiter, Rate  # type: ignore[import-not-found, unused-ignore]

        found["pyrate-limiter"] = lambda: Limiter(Rate(TASKS * 2, 1000)).try_acquire_async
    except ImportError:
        pass
    return found


def limited_by(
    limiter_of: Callable[[], Callable[[], Awaitable[object]]],
) -> Callable[[int], Awaitable[None]]:
    """A task that waits for a limiter, of which each event loop has one."""
    made: dict[object, Callable[[], Awaitable[object]]] = {}

    async def one(_: int) -> None:
        loop = asyncio.get_running_loop()
        if loop not in made:
            made[loop] = limiter_of()
        await made[loop]()
        await asyncio.sleep(0)

    return one


def first_permit() -> float:
    """Milliseconds of CPU from the import to the first permit's end, in a process of its own: the least."""
    times = [
        subprocess.run([sys.executable, "-c", FIRST], check=True, capture_output=True, text=True).stdout
        for _ in range(ROUNDS)
    ]
    return min(map(float, times))


def side_by_side() -> None:
    """The cost of a permit for a task, beside other tools that do less."""
    wide = {"max_in_flight": TASKS * 2, "warn_threshold": TASKS * 2, "warnings": False}

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
        "the same, settled with three fields": throttled(told=True),
        "the same, of 1,000 hosts": throttled(1000),
        "the same, with a rate": throttled(rate=100_000),
    }
    for name, limiter_of in peers().items():
        rows[name] = limited_by(limiter_of)
    # Round by round, so that a busy machine slows all of them down alike.
    rounds = [{name: many(one) for name, one in rows.items()} for _ in range(ROUNDS)]
    for name in rows:
        print(f"{TASKS} tasks: {name:31} {min(each[name] for each in rounds):6.1f} µs")


def main() -> None:
    """Measures all of them."""
    print(f"{'the first permit after the import':44} {first_permit():6.2f} ms")
    engine = Engine({"defaults": {"delay": 0}})
    measured("engine: submit, poll, settle", cycles(engine, None))
    measured("engine: the same, with header fields", cycles(engine, FIELDS))
    measured("Throttle: async with acquire, settle", tasks())
    measured("Throttle: the same, after waiting in line", in_line())
    measured("ThreadThrottle: with acquire, settle", threads())
    measured("ThreadThrottle: OpenTelemetry was on", seen(False))
    measured("ThreadThrottle: OpenTelemetry is on", seen(True))
    side_by_side()


if __name__ == "__main__":
    main()

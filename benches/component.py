"""What a call of the engine costs in Python, in CPU time: ``npm run bench:component``."""

from __future__ import annotations

import json
import time

START = time.perf_counter()

from autothrottle.engine import Engine  # noqa: E402

OPTIONS = {
    "concurrency": 100_000,
    "defaults": {"concurrency": 100_000, "delay": 0, "slotDelay": 0, "jitter": False},
}
CYCLES = 5000
MS = 1_000_000


def cycle(engine: Engine, scope: int, full: bool) -> float:
    """Microseconds of CPU for submit, poll and settle."""
    best = float("inf")
    now = engine.stats(0).sent * MS + 1000 * MS
    for _ in range(3):
        start = time.process_time()
        for _ in range(CYCLES):
            now += MS
            engine.submit(now, [scope], priority=1 if full else 0)
            (ticket,) = engine.poll(now).send
            headers = {"retry-after": "3"} if full else {"content-type": "text/html"}
            engine.settle(now, ticket, status=200, latency=80 * MS, headers=headers, retry=True)
        best = min(best, (time.process_time() - start) / CYCLES)
    return best * 1e6


def main() -> None:
    engine = Engine(OPTIONS)
    print(f"first engine, from the import      {(time.perf_counter() - START) * 1e3:9.1f} ms")
    start = time.perf_counter()
    scope = engine.scope("example.com")
    Engine(OPTIONS)
    print(f"another engine                     {(time.perf_counter() - start) * 1e3:9.1f} ms")
    print(f"submit, poll, settle               {cycle(engine, scope, False):9.1f} µs")
    print(f"the same with a field and priority {cycle(engine, scope, True):9.1f} µs")
    print(json.dumps({"wasmtime's private way": engine._instance.is_private}))


if __name__ == "__main__":
    main()

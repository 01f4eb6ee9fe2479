"""Plays ``tests/vectors/driver.jsonl``, with tasks and with threads: nested calls, and how a call ends.
JavaScript plays the same cases (``tests/js/driver.test.ts``), Scrapy and tower what they have of them.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from autothrottle import ThreadThrottle, Throttle
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.testing import FakeClock
from helpers import Response, python_options, vectors, warned

PAGE = "https://a.example/"
CASES = vectors("driver")
ERRORS = {"ThrottleTimeoutError": "TimeoutError"}
TIMES = ("delay", "wait")


class RefusedError(Exception):
    pass


def python_run(options: dict[str, Any] | None) -> dict[str, Any]:
    """Options of a call, in seconds and with Python's names."""
    made = {key: each / 1000 if key in TIMES else each for key, each in (options or {}).items()}
    if "wait" in made:
        made["max_wait"] = made.pop("wait")
    return made


def answer(told: dict[str, Any]) -> Response:
    return Response(told["status"], told.get("headers", {}))


class Play:
    """One case: its options, and what its function does."""

    def __init__(self, case: dict[str, Any], clock: FakeClock) -> None:
        self.case, self.clock, self.calls, self.sends = case, clock, 0, 0
        options = python_options(case["options"])
        takes = options.pop("hookTakes", None)
        if "when" in case:
            bad = case["when"]
            options["retry"] = {**options["retry"], "when": lambda response: response.status_code in bad}
        self.options = {"clock": clock, "jitter": False, "delay": 0, **options}
        if takes is not None:

            async def get_scopes(_: object) -> str:
                await sleep(clock, takes)
                return "a.example"

            self.options["get_scopes"] = get_scopes

    def serve(self, _: httpx.Request) -> httpx.Response:
        server = self.case["server"]
        self.sends += 1
        return httpx.Response(server[min(self.sends, len(server)) - 1])

    def begin(self, throttle: Throttle | ThreadThrottle) -> None:
        if "robots" in self.case:
            throttle.robots(PAGE, self.case["robots"], user_agent="bot")

    def page(self, index: int) -> str:
        pages = self.case.get("pages", [PAGE])
        return str(pages[index % len(pages)])

    def steps(self) -> list[dict[str, Any]]:
        does = self.case["does"]
        self.calls += 1
        return list(does[min(self.calls, len(does)) - 1])

    def told(self, throttle: Any, error: BaseException | None, given: Any, at: float) -> dict[str, Any]:
        name = type(error).__name__
        left = throttle.scope("a.example").stats.quota_left
        return {
            "calls": self.calls,
            "sends": self.sends,
            "status": getattr(given, "status_code", None),
            "error": None if error is None else ERRORS.get(name, name),
            "fails": error is not None,
            "left": left,
            "inFlight": throttle.stats().in_flight,
            "ends": round(at * 1000),
        }

    def check(self, told: dict[str, Any], codes: list[str]) -> None:
        told = {**told, "warnings": codes}
        expected = {key: self.case[key] for key in told if key in self.case}
        assert {key: told[key] for key in expected} == expected


async def sleep(clock: FakeClock, milliseconds: float) -> None:
    done = asyncio.Event()
    clock.call_later(milliseconds / 1000, done.set)
    await done.wait()


def nested(step: dict[str, Any]) -> dict[str, Any]:
    return {**python_run(step["run"]), **({"scopes": step["scopes"]} if "scopes" in step else {})}


def plain_step(step: dict[str, Any], permit: Any) -> Response | None:
    if "settle" in step:
        permit.settle(**step["settle"])
        return None
    if "gives" in step:
        return answer(step["gives"])
    error = RefusedError("refused")
    error.response = answer(step["throws"])  # type: ignore[attr-defined]
    raise error


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_tasks(case: dict[str, Any], clock: FakeClock) -> None:
    play = Play(case, clock)
    throttle = Throttle(**play.options)
    heard = warned(throttle)
    play.begin(throttle)
    end = SimpleNamespace(error=None, given=None, at=0.0, late=None, drained=None)
    held = [await throttle.acquire(PAGE) for _ in range(case.get("holds", 0))]

    async def nothing() -> None:
        return None

    transport = AsyncThrottleTransport(throttle, httpx.MockTransport(play.serve))

    async def work(permit: Any) -> Any:
        return await follow(play.steps(), permit)

    async def follow(steps: list[dict[str, Any]], permit: Any) -> Any:
        given: Any = None
        for step in steps:
            if "takes" in step:
                await sleep(clock, step["takes"])
            elif "run" in step:
                inside = [step.get("inside", [])]

                async def call(permit: Any, inside: list[Any] = inside) -> Any:
                    return await follow(inside.pop() if inside else [], permit)

                await throttle.run(PAGE, call, **nested(step))
            elif "fetch" in step:
                given = await transport.handle_async_request(httpx.Request(step["fetch"], PAGE))
            else:
                given = plain_step(step, permit) or given
        return given

    async def call() -> None:
        times = range(case.get("times", 1))
        options = python_run(case.get("run"))
        try:
            if case.get("isTogether"):
                await asyncio.gather(*(throttle.run(play.page(each), work, **options) for each in times))
            else:
                for each in times:
                    end.given = await throttle.run(play.page(each), work, **options)
        except Exception as error:
            end.error = error
        end.at = clock.seconds

    async def drain() -> None:
        await throttle.drain()
        end.drained = round(clock.seconds * 1000)

    tasks = [asyncio.ensure_future(call())]
    if "drains" in case:
        await clock.advance(case["drains"] / 1000)
        tasks.append(asyncio.ensure_future(drain()))
        await clock.advance(0)
        try:
            await throttle.run(PAGE, nothing)
        except Exception as error:
            end.late = type(error).__name__
    if "closes" in case:
        await clock.advance(case["closes"] / 1000)
        throttle.close()
    await clock.advance(case.get("lasts", 30_000) / 1000 - clock.seconds)
    told = {**play.told(throttle, end.error, end.given, end.at), "late": end.late, "drained": end.drained}
    play.check(told, [code for code, _ in heard])
    if held:
        tasks[0].cancel()
        for permit in held:
            permit.settle(status=200)
        await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.done() for task in tasks)


@pytest.mark.parametrize(
    "case",
    [
        each
        for each in CASES
        if not ({"drains", "holds", "isTogether"} & each.keys() or "hookTakes" in each["options"])
        and "takes" not in str(each["does"])
    ],
    ids=lambda case: case["name"],
)
def test_threads(case: dict[str, Any], clock: FakeClock) -> None:
    play = Play(case, clock)
    throttle = ThreadThrottle(**play.options)
    heard = warned(throttle)
    play.begin(throttle)

    transport = ThrottleTransport(throttle, httpx.MockTransport(play.serve))

    def work(permit: Any) -> Any:
        return follow(play.steps(), permit)

    def follow(steps: list[dict[str, Any]], permit: Any) -> Any:
        given: Any = None
        for step in steps:
            if "run" in step:
                inside = [step.get("inside", [])]

                def call(permit: Any, inside: list[Any] = inside) -> Any:
                    return follow(inside.pop() if inside else [], permit)

                throttle.run(PAGE, call, **nested(step))
            elif "fetch" in step:
                given = transport.handle_request(httpx.Request(step["fetch"], PAGE))
            else:
                given = plain_step(step, permit) or given
        return given

    error: Exception | None = None
    given = None
    try:
        for each in range(case.get("times", 1)):
            given = throttle.run(play.page(each), work, **python_run(case.get("run")))
    except Exception as raised:
        error = raised
    play.check(play.told(throttle, error, given, clock.seconds), [code for code, _ in heard])

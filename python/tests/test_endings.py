"""Plays ``tests/vectors/endings.jsonl`` with httpx, by tasks and by threads: a request that is sent, what its
server answers, and what becomes of it. JavaScript plays the same cases (``tests/js/endings.test.ts``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from autothrottle import ThreadThrottle, Throttle
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.testing import FakeClock
from helpers import python_options, vectors

PAGE = "https://a.example/"
FAILURES = {"connection": httpx.ConnectError("refused"), "timeout": httpx.ReadTimeout("too late")}
ERRORS = {"ThrottleTimeoutError": "TimeoutError"}

cases = pytest.mark.parametrize("case", vectors("endings"), ids=lambda case: case["name"])


class SilenceError(Exception):
    """No answer comes."""


class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that can be read once."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"body"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"body"


class Sender(httpx.AsyncBaseTransport, httpx.BaseTransport):
    """Sends by a function. httpx's own for tests keeps a body that is a stream."""

    def __init__(self, answer: Callable[[], httpx.Response]) -> None:
        self._answer = answer

    def handle_request(self, _: httpx.Request) -> httpx.Response:
        return self._answer()

    async def handle_async_request(self, _: httpx.Request) -> httpx.Response:
        try:
            return self._answer()
        except SilenceError:
            return await asyncio.Event().wait()  # type: ignore[return-value]


class Play:
    """A case: the throttle's options, the server, and what came of it."""

    def __init__(self, case: dict[str, Any], clock: FakeClock) -> None:
        self.case, self.clock, self.calls = case, clock, 0
        self.options = {"clock": clock, "jitter": False, "delay": 0, **python_options(case["options"])}
        bad = case.get("when")
        if bad is not None:
            self.options["retry"]["when"] = lambda response: response.status_code in bad
        body = {"stream": Stream(), "text": b"text", None: None}[case.get("body")]
        how = {"stream": body} if isinstance(body, Stream) else {"content": body}
        self.request = httpx.Request(case.get("method", "GET"), PAGE, **how)
        self.told: dict[str, Any] = {}

    def answer(self) -> httpx.Response:
        self.calls += 1
        answers = self.case["answers"]
        answer = answers[min(self.calls, len(answers)) - 1]
        if "never" in answer:
            raise SilenceError
        if "fails" in answer:
            raise FAILURES[answer["fails"]]
        return httpx.Response(answer["status"], headers=answer.get("headers"), stream=Stream())

    def end(self, ended: httpx.Response | Exception) -> None:
        # A response that is let go of gives its slot back.
        self.ended = ended
        at = round(self.clock.seconds * 1000)
        if isinstance(ended, httpx.Response):
            self.told = {"status": ended.status_code, "ends": at}
        elif isinstance(ended, httpx.HTTPError):
            self.told = {"fails": True, "ends": at}
        else:
            name = type(ended).__name__
            self.told = {"error": ERRORS.get(name, name), "ends": at}

    def check(self, throttle: Throttle | ThreadThrottle) -> None:
        assert throttle.stats().in_flight == self.case.get("inFlight", 0)
        beside = {"name", "options", "method", "body", "when", "answers", "inFlight"}
        expected = {key: value for key, value in self.case.items() if key not in beside}
        told = {key: value for key, value in self.told.items() if key != "ends" or "ends" in expected}
        assert {**told, "calls": self.calls} == expected


@cases
async def test_tasks(case: dict[str, Any], clock: FakeClock) -> None:
    play = Play(case, clock)
    throttle = Throttle(**play.options)
    transport = AsyncThrottleTransport(throttle, Sender(play.answer))

    async def send() -> None:
        try:
            play.end(await transport.handle_async_request(play.request))
        except Exception as error:
            play.end(error)

    task = asyncio.ensure_future(send())
    await clock.advance(30)
    await task
    play.check(throttle)


@pytest.mark.parametrize(
    "case",
    # A thread cannot be stopped from outside: `request_timeout` is an error there.
    [case for case in vectors("endings") if "requestTimeout" not in case["options"]],
    ids=lambda case: case["name"],
)
def test_threads(case: dict[str, Any], clock: FakeClock) -> None:
    play = Play(case, clock)
    throttle = ThreadThrottle(**play.options)
    try:
        play.end(ThrottleTransport(throttle, Sender(play.answer)).handle_request(play.request))
    except Exception as error:
        play.end(error)
    play.check(throttle)

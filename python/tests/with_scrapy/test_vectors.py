"""Plays in Scrapy what all hosts play: ``tests/vectors/endings.jsonl`` and ``driver.jsonl``, as far as Scrapy
has what a case needs. Its RetryMiddleware says what is sent again, the throttle says when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from harness import SECOND, Bench, settle, virtual
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.internet.error import ConnectionLost, TCPTimedOutError

from autothrottle import ScopeDownError
from helpers import python_options, vectors

PAGE = "https://a.example/"
FAILURES: dict[str, type[Exception]] = {"connection": ConnectionLost, "timeout": TCPTimedOutError}
Reason = Callable[[dict[str, Any]], str | None]


def why_no_ending(case: dict[str, Any]) -> str | None:
    """Why a case of endings has no meaning in Scrapy."""
    retry = case["options"].get("retry", {})
    headers = case["answers"][0].get("headers", {})
    if case.get("body") == "stream":
        return "a body is bytes"
    if case.get("method") in ("POST", "PATCH") or "methods" in retry:
        return "RetryMiddleware sends any method again"
    if "longRetryAfter" in retry or case.get("error") == "RetryAfterTooLongError":
        return "a request waits for its scope however long that is"
    if "when" in case:
        return "a middleware of the user's reads bodies"
    if "requestTimeout" in case["options"]:
        return "DOWNLOAD_TIMEOUT ends what never answers"
    if "release" in case["options"]:
        return "an answer of Scrapy's has its whole body"
    if "fails" in case["answers"][0] and isinstance(case["options"]["backoff"], dict):
        return "what RetryMiddleware sends again is another request, whose failure counts"
    is_beyond = case["answers"][0].get("status") == 529 or "x-should-retry" in headers
    if is_beyond or (headers and case["answers"][0]["status"] in (403, 413)):
        return "RetryMiddleware knows RETRY_HTTP_CODES, and reads no header field"
    return None


def why_no_call(case: dict[str, Any]) -> str | None:
    """Why a case of a function's calls has no meaning in Scrapy."""
    does = str(case["does"])
    if any(f"'{step}'" in does for step in ("run", "settle", "throws", "fetch")):
        return "no function runs with a permit: each request of a callback is one of its own"
    if "when" in case:
        return "a middleware of the user's reads bodies"
    if "warnings" in case:
        return "warnings are lines of Scrapy's log and have no codes"
    if "wait" in case.get("run", {}) or case.get("error") == "RetryAfterTooLongError":
        return "a request waits for its scope however long that is"
    if "lasts" in case:
        return "DOWNLOAD_TIMEOUT ends what never answers"
    if "closes" in case or ("drains" in case and case.get("ends") != 500) or "hookTakes" in case["options"]:
        return "what waits while a spider closes goes back to the scheduler"
    first = case["does"][0][0] if case["does"][0] else {}
    if first.get("gives", {}).get("status") == 403:
        return "RetryMiddleware knows RETRY_HTTP_CODES, and reads no header field"
    return None


def told(name: str, why_not: Reason, counts: tuple[int, int]) -> list[dict[str, Any]]:
    """The cases that are played; ``counts``: how many are, and how many are not."""
    played = [case for case in vectors(name) if why_not(case) is None]
    assert (len(played), len(vectors(name)) - len(played)) == counts, "say why it has no meaning, or play it"
    return played


def bench_of(options: dict[str, Any], retry: dict[str, Any] | None) -> Bench:
    """A downloader with these options, in Scrapy's names."""
    defaults = {key: each for key, each in options.items() if key != "retry"}
    settings: dict[str, Any] = {
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "THROTTLING_DEFAULTS": {"delay": 0, "slot_delay": 0, **python_options(defaults)},
    }
    if retry is not None:
        settings |= {"RETRY_ENABLED": True, "RETRY_TIMES": retry["limit"]}
        if "statusCodes" in retry:
            settings["RETRY_HTTP_CODES"] = retry["statusCodes"]
    return Bench(settings)


async def to_the_end(bench: Bench, request: Request) -> dict[str, Any]:
    """The end of a request; what a middleware sends again is fetched, as Scrapy's engine does."""
    start = bench.clock.at
    try:
        given = await bench.fetch(request)
        while isinstance(given, Request):
            given = await bench.fetch(given)
        ended = {"status": given.status}
    except tuple(FAILURES.values()):
        ended = {"fails": True}
    except IgnoreRequest:
        ended = {"error": "ClosedError"}
    except ScopeDownError:
        ended = {"error": "ScopeDownError"}
    return {**ended, "ends": round((bench.clock.at - start) / SECOND * 1000)}


@pytest.mark.parametrize("case", told("endings", why_no_ending, (27, 53)), ids=lambda case: case["name"])
@virtual
async def test_endings(case: dict[str, Any]) -> None:
    bench = bench_of(case["options"], case["options"].get("retry"))

    def answer(request: Request) -> Response | Exception:
        answer = case["answers"][min(len(bench.server.sent), len(case["answers"])) - 1]
        if "fails" in answer:
            return FAILURES[answer["fails"]]()
        return Response(
            request.url, status=answer["status"], headers=answer.get("headers", {}), request=request
        )

    bench.server.answer = answer
    await check(bench, case)


@pytest.mark.parametrize("case", told("driver", why_no_call, (6, 69)), ids=lambda case: case["name"])
@virtual
async def test_calls(case: dict[str, Any]) -> None:
    retry = case["options"].get("retry") if case.get("run", {}).get("retry") is True else None
    bench = bench_of(case["options"], retry)
    does = case["does"]
    bench.server.latency = does[0][0].get("takes", 0) / 1000

    def answer(request: Request) -> Response:
        step = does[min(len(bench.server.sent), len(does)) - 1][0]
        answer = step.get("gives", {"status": 200})
        return Response(
            request.url, status=answer["status"], headers=answer.get("headers", {}), request=request
        )

    bench.server.answer = answer
    await check(bench, case)


async def check(bench: Bench, case: dict[str, Any]) -> None:
    async def close() -> None:
        """As far as Scrapy has come when the downloader hears of it."""

    engine: Any = bench.crawler.engine
    engine.close_spider_async = close
    bench.crawler.signals.send_catch_log(signal=signals.spider_opened, spider=bench.crawler.spider)
    request = Request(
        PAGE, method=case.get("method", "GET"), body=(case.get("body") or "").encode(), dont_filter=True
    )
    ended = asyncio.ensure_future(to_the_end(bench, request))
    late = None
    if "drains" in case:
        await bench.clock.advance(case["drains"] / 1000)
        await engine.close_spider_async()
        late = asyncio.ensure_future(to_the_end(bench, Request(PAGE, dont_filter=True)))
    await bench.clock.advance(30)
    await settle()
    told = {**(await ended), "calls": len(bench.server.sent), "late": late and (await late).get("error")}
    assert bench.downloader._permits is not None
    assert bench.downloader._permits.flying == 0
    keys = [key for key in ("calls", "status", "error", "fails", "ends", "late") if key in case]
    assert {key: told.get(key) for key in keys} == {key: case[key] for key in keys}

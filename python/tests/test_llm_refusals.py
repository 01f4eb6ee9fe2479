"""Refusals of language models, and what listeners hear of calls: waits, warnings, latency, the URL."""

from __future__ import annotations

import math
from typing import Any

import pytest

from autothrottle import ConfigError, RetryAfterTooLongError, ThreadThrottle, llm
from autothrottle.testing import FakeClock

httpx = pytest.importorskip("httpx")

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
ASKING = {"model": "m-1", "max_tokens": 100, "messages": [{"role": "user", "content": "a" * 400}]}


def client_of(clock: FakeClock, answer: Any, options: Any = None, **more: Any) -> tuple[Any, Any, list[str]]:
    throttle = ThreadThrottle(clock=clock, max_in_flight=16, jitter=False, **more)
    warned: list[str] = []
    throttle.on("warning", lambda told: warned.append(f"{told.code}: {told.message}"))
    transport = llm.transport(throttle, httpx.MockTransport(answer), **(options or {}))
    return throttle, httpx.Client(transport=transport), warned


@pytest.mark.parametrize(
    ("options", "more", "most"),
    [
        ({}, {}, "300"),
        ({"retry": {"limit": 5, "max_retry_after": 60}}, {}, "60"),
        ({}, {"retry": {"limit": 2, "max_retry_after": 60}}, "60"),
    ],
)
def test_a_wait_of_three_days_is_an_error_at_once(
    clock: FakeClock, options: Any, more: Any, most: str
) -> None:
    sent = []

    def refuse(request: Any) -> Any:
        sent.append(request)
        return httpx.Response(429, json={"error": {"message": "m"}}, headers={"retry-after": "277403"})

    _, client, warned = client_of(clock, refuse, options, **more)
    answer = client.post(CHAT, json=ASKING)
    seen = (answer.status_code, answer.headers["x-autothrottle-error"], answer.headers["x-should-retry"])
    assert seen == (429, "ERR_RETRY_AFTER_TOO_LONG", "false")
    assert f"asks to wait 277403 s, more than max_retry_after ({most} s)" in answer.text
    assert (len(sent), clock.seconds, warned) == (1, 0, [])


def test_middleware_raises_it(clock: FakeClock) -> None:
    sdk = pytest.importorskip("anthropic")
    if not hasattr(sdk, "Middleware"):
        pytest.skip("this version has none")
    library = pytest.importorskip(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    refusal = {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}
    send = library.MockTransport(
        lambda _: library.Response(429, json=refusal, headers={"retry-after": "277403"})
    )
    own = llm.middleware(ThreadThrottle(clock=clock, max_in_flight=16))
    client = sdk.Anthropic(api_key="k", http_client=library.Client(transport=send), middleware=[own])
    with pytest.raises(RetryAfterTooLongError):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}])


def test_listeners_hear_the_url_and_the_latency(clock: FakeClock) -> None:
    def answer(_: Any) -> Any:
        clock.jump(0.213)
        return httpx.Response(200, json={"usage": {"prompt_tokens": 9, "completion_tokens": 1}})

    throttle, client, _ = client_of(clock, answer)
    heard: list[Any] = []
    throttle.on("settle", lambda told: heard.append((told.target, told.status, round(told.latency, 6))))
    client.post(CHAT, json=ASKING)
    assert heard == [(CHAT, 200, 0.213)]


def test_no_warning_names_a_setting_that_the_entry_made(clock: FakeClock) -> None:
    def answer(_: Any) -> Any:
        return httpx.Response(200, json={"usage": {"prompt_tokens": 100, "completion_tokens": 1}})

    limits = {"*": {"rpm": 600, "tpm": 1_000_000_000}}
    throttle, client, warned = client_of(clock, answer, {"limits": limits})
    for _ in range(1000):
        client.post(CHAT, json=ASKING)
    assert throttle.now() > 20
    assert warned == []


def test_refusals_of_one_flight_are_one_step(clock: FakeClock) -> None:
    limit, pace = 12_000, 200.0
    level, at, refused = 0.0, 0.0, 0
    left: list[float] = []

    def answer(_: Any) -> Any:
        nonlocal level, at, refused
        level, at = min(limit, level + (clock.seconds - at) * pace), clock.seconds
        headers = {"x-ratelimit-limit-tokens": str(limit)}
        if level < 100:
            refused += 1
            wait = math.ceil((100 - level) / pace * 1000)
            told = {**headers, "x-ratelimit-remaining-tokens": "0", "retry-after-ms": str(wait)}
            message = f"Rate limit reached on tokens. Please try again in {wait}ms."
            return httpx.Response(429, json={"error": {"message": message}}, headers=told)
        level -= 100
        left.append(clock.seconds)
        told = {**headers, "x-ratelimit-remaining-tokens": str(int(level))}
        return httpx.Response(
            200, json={"usage": {"prompt_tokens": 50, "completion_tokens": 50}}, headers=told
        )

    # Its bucket is empty when the program begins: another one used it up.
    _, client, _ = client_of(clock, answer, {"limits": {"*": {"tpm": limit}}})
    for _ in range(100):
        assert client.post(CHAT, json=ASKING).status_code == 200
    assert max(now - before for before, now in zip([0.0, *left], left, strict=False)) <= 2
    assert 1 <= refused <= 10


def test_retry_is_false_or_says_how_often() -> None:
    wrong: list[Any] = [
        None,
        3,
        "no",
        {},
        {"limit": -1},
        {"limit": 1, "max_retry_after": -1},
        {"limit": 1, "most": 2},
    ]
    for retry in wrong:
        with pytest.raises(ConfigError):
            llm.transport(ThreadThrottle(), library=httpx, retry=retry)
    llm.transport(ThreadThrottle(), library=httpx, retry={"limit": 1, "max_retry_after": 1})

"""Calls of language models: what they are charged, what is learned, and what the SDKs see."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from autothrottle import ClosedError, ConfigError, ThreadThrottle, Throttle, llm
from autothrottle.llm._answer import Body, limits_in, refusal_of
from autothrottle.llm._request import asked_of
from autothrottle.testing import FakeClock

httpx = pytest.importorskip("httpx")

CHAT = "https://api.openai.com/v1/chat/completions"
MESSAGES = "https://api.anthropic.com/v1/messages"
OTPM: Any = {"limits": {"*": {"otpm": 1000, "itpm": 1000}}, "account": "a", "headroom": 1}


def asking(**more: Any) -> dict[str, Any]:
    return {"model": "m-1", "max_tokens": 100, "messages": [{"role": "user", "content": "a" * 400}], **more}


def usage(taken: int, given: int, **headers: str) -> Any:
    return httpx.Response(
        200, json={"usage": {"input_tokens": taken, "output_tokens": given}}, headers=headers
    )


class Server:
    """Answers in turn; the last answer again and again."""

    def __init__(self, clock: FakeClock, *answers: Callable[[], Any]) -> None:
        self.clock, self.answers = clock, list(answers)
        self.at: list[float] = []
        self.asked: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.at.append(self.clock.seconds)
        self.asked.append(request)
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()


def thread_client(server: Server, **options: Any) -> tuple[ThreadThrottle, Any, Any]:
    throttle = ThreadThrottle(clock=server.clock, max_in_flight=32, jitter=False, warnings=False)
    transport = llm.transport(throttle, httpx.MockTransport(server), **options)
    return throttle, transport, httpx.Client(transport=transport)


def gone(throttle: Any, kind: str) -> int:
    """The spent part of a budget of 1,000."""
    return spent(throttle, f"llm:api.anthropic.com/a/m-1#{kind}")


def spent(throttle: Any, scope: str) -> int:
    """The same of any scope."""
    seen: Any = throttle.peek(scopes=scope, cost=1000)
    left: int = round((seen.at - throttle.now()) * 1000 / 60)
    return left


def test_a_refusal_is_waited_for_and_sent_again(clock: FakeClock) -> None:
    def refused() -> Any:
        body = {"error": {"message": "slow", "type": "tokens"}}
        return httpx.Response(429, json=body, headers={"retry-after-ms": "1500"})

    server = Server(clock, refused, lambda: usage(1, 1))
    _, transport, client = thread_client(server)
    assert client.post(CHAT, json=asking()).status_code == 200
    assert server.at == [0, 1.5]
    hard = Server(clock, refused)
    _, transport, client = thread_client(hard, retry={"limit": 2})
    last = client.post(CHAT, json=asking())
    assert (last.status_code, last.headers["x-should-retry"], len(hard.at)) == (429, "false", 3)
    assert last.json()["error"]["message"] == "slow"
    assert (transport.stats.sent, transport.stats.refused) == (3, 3)


async def test_a_refused_call_goes_before_calls_of_its_own_priority_that_wait(clock: FakeClock) -> None:
    sent: list[str] = []

    async def answer(request: Any) -> Any:
        sent.append(json.loads(request.content)["name"])
        if len(sent) == 1:
            return httpx.Response(429, json={}, headers={"retry-after-ms": "1500"})
        return usage(1, 1)

    throttle = Throttle(clock=clock, max_in_flight=1, jitter=False, warnings=False)
    transport = llm.async_transport(throttle, httpx.MockTransport(answer))
    own = {"throttle": {"priority": 5}}
    async with httpx.AsyncClient(transport=transport) as client:
        posts = [client.post(CHAT, json=asking(name=name), extensions=own) for name in ("a", "b")]
        await clock.run(asyncio.gather(*posts))
    assert sent == ["a", "a", "b"]


def test_errors_of_ours_are_answers_that_no_sdk_sends_again(clock: FakeClock) -> None:
    server = Server(clock, lambda: usage(1, 1))
    _, _, client = thread_client(server, limits={"*": {"tpm": 50}})
    answer = client.post(CHAT, json=asking())
    seen = (answer.status_code, answer.headers["x-should-retry"], answer.headers["x-autothrottle-error"])
    assert seen == (429, "false", "ERR_COST_EXCEEDS_QUOTA")
    assert "costs more than" in answer.json()["error"]["message"]
    assert server.at == []


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (CHAT, {"error": {"code": "insufficient_quota"}}),
        (CHAT, {"error": {"message": "Request too large for m-1: Limit 10", "type": "tokens"}}),
        (MESSAGES, {"type": "error", "error": {"type": "rate_limit_error", "message": "spend cap"}}),
    ],
)
def test_a_refusal_that_no_wait_helps_comes_back_at_once(clock: FakeClock, url: str, error: Any) -> None:
    server = Server(clock, lambda: httpx.Response(429, json=error), lambda: usage(1, 1))
    _, _, client = thread_client(server)
    assert client.post(url, json=asking()).status_code == 429
    assert client.post(url, json=asking()).status_code == 200
    assert server.at == [0, 0]


def test_pairs_of_key_and_model_beyond_max_scopes_are_forgotten(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autothrottle._managers.HELD_HANDLES", 50)
    server = Server(clock, lambda: usage(1, 1))
    throttle = ThreadThrottle(clock=clock, max_scopes=100, jitter=False, warnings=False)
    transport = llm.transport(throttle, httpx.MockTransport(server), limits={"spent": {"rpm": 1}})
    client = httpx.Client(transport=transport)

    def call(model: str, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        assert client.post(CHAT, json=asking(model=model), headers=headers).status_code == 200

    call("spent", "a")
    for pair in range(300):
        call(f"m-{pair % 10}", f"key {pair}")
    assert len(throttle.stats().scopes) <= 110
    # One that was forgotten goes on as before: at once, and not at the default of a request a second.
    call("m-0", "key 0")
    call("m-0", "key 0")
    assert server.at[-1] == 0
    call("spent", "a")
    assert server.at[-1] >= 60, "its budget is spent for a minute"


def test_anthropic_is_charged_what_was_written_and_openai_what_it_reserved(clock: FakeClock) -> None:
    for url, left in ((MESSAGES, 880), (CHAT, 500)):
        server = Server(clock, lambda: usage(100, 20))
        throttle, _, client = thread_client(server, limits={"*": {"tpm": 1000}}, account="a", headroom=1)
        client.post(url, json=asking(max_tokens=500))
        host = url.split("/")[2]
        assert 1000 - spent(throttle, f"llm:{host}/a/m-1#tokens") == left


def test_models_and_keys_have_limits_of_their_own_and_other_calls_spend_none(clock: FakeClock) -> None:
    headers = {
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m0s",
    }
    server = Server(clock, lambda: usage(1, 1, **headers))
    throttle, _, client = thread_client(server)

    def post(key: str, model: str = "m-1") -> None:
        client.post(CHAT, json=asking(model=model), headers={"authorization": f"Bearer {key}"})

    post("one")
    post("two")
    post("one", "m-2")
    client.get("https://api.openai.com/v1/models")
    assert server.at == [0, 0, 0, 0]
    post("one")
    assert server.at[4] > 5
    assert not any("one" in name for name in throttle.stats().scopes)


def event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


START = event({"type": "message_start", "message": {"usage": {"input_tokens": 70, "output_tokens": 1}}})
TEXT = event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 400}})
END = event({"type": "message_delta", "usage": {"output_tokens": 150}}) + event({"type": "message_stop"})


class Parts(httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
    """A stream that notes what was asked of it."""

    def __init__(self, parts: list[bytes], error: Exception | None = None) -> None:
        self.parts, self.error = parts, error
        self.pulled, self.is_closed = 0, False

    def __iter__(self) -> Iterator[bytes]:
        for part in self.parts:
            self.pulled += 1
            yield part
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


def streamed(parts: Parts) -> Any:
    return httpx.Response(200, stream=parts, headers={"content-type": "text/event-stream"})


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_a_stream_passes_as_it_is_read(clock: FakeClock, size: int) -> None:
    whole = START + TEXT + END
    parts = Parts([whole[at : at + size] for at in range(0, len(whole), size)])
    throttle, transport, client = thread_client(Server(clock, lambda: streamed(parts)), **OTPM)
    with client.stream("POST", MESSAGES, json=asking(stream=True)) as response:
        assert parts.pulled == 0
        assert b"".join(response.iter_raw()) == whole
    assert (gone(throttle, "input"), gone(throttle, "output")) == (70, 150)
    assert (transport.stats.cut, transport.stats.estimated) == (0, 0)


@pytest.mark.parametrize("how", ["closed", "failed", "error event"])
def test_a_stream_that_breaks_off_is_charged_what_was_written(clock: FakeClock, how: str) -> None:
    said = [START, TEXT, TEXT]
    if how == "error event":
        said.append(event({"type": "error", "error": {"type": "overloaded_error"}}))
    parts = Parts(said, httpx.ReadError("terminated") if how == "failed" else None)
    warned: list[str] = []
    throttle, transport, client = thread_client(Server(clock, lambda: streamed(parts)), **OTPM)
    throttle.on("warning", lambda told: warned.append(told.code))
    with client.stream("POST", MESSAGES, json=asking(stream=True, max_tokens=900)) as response:
        read = response.iter_raw()
        for _ in range(3):
            next(read)
        if how == "failed":
            with pytest.raises(httpx.ReadError):
                next(read)
        elif how == "error event":
            list(read)
    assert parts.is_closed
    assert (gone(throttle, "input"), gone(throttle, "output")) == (70, 200)
    assert (transport.stats.cut, warned) == (1, [] if how == "closed" else ["stream-cut"])


@pytest.mark.parametrize("told", [[], [{"error": {"code": 503}}]])
def test_a_stream_of_gemini_that_is_read_is_whole_but_for_an_error(clock: FakeClock, told: list[Any]) -> None:
    url = "https://generativelanguage.googleapis.com/v1beta/models/m-1:streamGenerateContent"
    part = {"candidates": [{"content": {"parts": [{"text": "x"}]}}]}
    parts = Parts([f"data: {json.dumps(each)}\n\n".encode() for each in (part, *told)])
    _, transport, client = thread_client(Server(clock, lambda: streamed(parts)))
    client.post(url, json=asking())
    assert transport.stats.cut == len(told)


async def test_tasks_have_the_same(clock: FakeClock) -> None:
    parts = Parts([START, TEXT, END])
    throttle = Throttle(clock=clock, max_in_flight=32)
    server = Server(clock, lambda: streamed(parts))
    transport = llm.async_transport(throttle, httpx.MockTransport(server), **OTPM)
    async with httpx.AsyncClient(transport=transport) as client:
        response = await client.post(MESSAGES, json=asking(stream=True))
    assert response.content == START + TEXT + END
    assert (gone(throttle, "input"), gone(throttle, "output")) == (70, 150)


def test_wrong_options_are_listed_each_with_its_place() -> None:
    options: Any = {
        "headrom": 1,
        "headroom": 2,
        "limits": {"m": {"tpm": -1, "rps": 5}},
        "output": "x",
        "retry": 3,
    }
    with pytest.raises(ConfigError) as caught:
        llm.transport(ThreadThrottle(), library=httpx, **options)
    assert sorted(problem.path for problem in caught.value.problems) == [
        "llm.headrom",
        "llm.headroom",
        'llm.limits."m".rps',
        'llm.limits."m".tpm',
        "llm.output",
        "llm.retry",
    ]
    with pytest.raises(TypeError, match="belongs to"):
        llm.transport(Throttle(), library=httpx)  # type: ignore[arg-type]


def test_a_request_asks_for_its_model_and_tokens() -> None:
    def asked(path: str, told: dict[str, Any], counter: Any = None) -> Any:
        return asked_of(f"https://api.openai.com{path}", "POST", json.dumps(told).encode(), None, counter)

    chat = asked("/v1/chat/completions", {"model": "m", "n": 3, "max_completion_tokens": 50, "messages": []})
    assert (chat.model, chat.bound, chat.vendor) == ("m", 150, "openai")
    assert asked("/v1/responses", {"prompt": {"id": "p"}}).model == "*"
    assert asked("/v1/embeddings", {"model": "e", "input": [1, 2, 3]}).tokens == 3
    assert asked("/v1/messages/batches", {"requests": []}).model is None
    assert asked("/openai/deployments/mine/chat/completions", {}).model == "mine"
    text = asked("/v1/chat/completions", {"messages": [{"content": "žluť"}]})
    assert (text.size, text.characters) == (6, 4)
    assert (
        asked("/v1/chat/completions", {"content": "one two"}, lambda text, _: len(text.split())).tokens == 2
    )
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n0000IHDR\0\0\x03\0\0\0\x02\0").decode()
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
    assert asked("/v1/chat/completions", {"messages": [{"content": [url]}]}).tokens == 525
    file = asked("/v1/chat/completions", {"messages": [{"file": {"file_data": "A" * 900_000}}]})
    assert (file.is_uncounted, file.tokens) == (True, 1600)
    form = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--x--'
    audio = asked_of("https://api.openai.com/v1/audio/transcriptions", "POST", form, None, None)
    assert (audio.model, audio.bound) == ("whisper", 0)


def test_limits_in_headers_and_refusals() -> None:
    headers = {
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "8.64s",
    }
    assert limits_in(headers, "openai") == [("day", 10_000, 9999, 86_400)]
    anthropic = {
        "date": "Thu, 01 Jan 2026 00:00:00 GMT",
        "anthropic-ratelimit-input-tokens-limit": "50000",
        "anthropic-ratelimit-input-tokens-remaining": "40000",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:12Z",
        "anthropic-ratelimit-tokens-limit": "1",
    }
    assert limits_in(anthropic, "anthropic") == [("input", 50_000, 40_000, 60)]
    assert refusal_of(429, {}, b"try again in 1h2m3.5s", False).wait == 3723.5
    gemini = '{"error": {"details": [{"retryDelay": "46s"}]}}'
    assert refusal_of(429, {}, gemini.encode(), False).wait == 46
    told = "This request would exceed your rate limit of 10,000 input tokens per minute"
    assert refusal_of(429, {"retry-after": "3"}, told.encode(), True) == (3, False, "input")
    rise = '{"error": {"message": "maximum usage increase rate for input tokens per minute"}}'
    assert refusal_of(429, {"retry-after": "3"}, rise.encode(), True) == (3, False, None), (
        "its number names no budget"
    )


def test_a_body_that_is_compressed_is_read_too() -> None:
    import gzip

    body = Body(False, False, "gzip")
    packed = gzip.compress(b'{"usage": {"prompt_tokens": 7, "completion_tokens": 3}}')
    for at in range(0, len(packed), 5):
        body.hear(packed[at : at + 5])
    body.end()
    assert (body.input, body.output) == (7, 3)


class ModelServer:
    """Buckets of requests, input and output as Anthropic has them: output is charged as it is written."""

    def __init__(self, clock: FakeClock, limits: dict[str, float]) -> None:
        self.clock, self.limits = clock, limits
        self.levels, self.used = dict(limits), dict.fromkeys(limits, 0.0)
        self.at, self.served, self.refused = 0.0, 0, 0
        self.dice = random.Random(1)

    def refill(self) -> None:
        now = self.clock.seconds
        for kind, limit in self.limits.items():
            self.levels[kind] = min(limit, self.levels[kind] + (now - self.at) * limit / 60)
        self.at = now

    def take(self, kind: str, cost: float) -> None:
        self.refill()
        self.levels[kind] -= cost
        self.used[kind] += cost

    def headers(self) -> dict[str, str]:
        self.refill()
        told = {}
        for kind, name in (("input", "input-tokens"), ("output", "output-tokens")):
            told[f"anthropic-ratelimit-{name}-limit"] = str(int(self.limits[kind]))
            told[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, round(self.levels[kind], -3)))
        return told

    async def handle(self, request: Any) -> Any:
        await self.sleep(0.02 + 0.01 * self.dice.random())
        taken = (
            len(json.loads(request.content)["messages"][0]["content"]) / 4 * (0.9 + 0.3 * self.dice.random())
        )
        self.refill()
        if self.levels["input"] < taken or self.levels["output"] <= 0:
            self.refused += 1
            body: Any = {"error": {"message": "rate limit of input tokens per minute"}}
            return httpx.Response(429, json=body, headers={**self.headers(), "retry-after": "1"})
        self.served += 1
        self.take("input", taken)
        given = max(1, round(min(4096, 300 * 2.718 ** self.dice.gauss(0, 1))))
        speed = 20 + 60 * self.dice.random()
        for _ in range(8):
            await self.sleep(given / 8 / speed)
            self.take("output", given / 8)
        body = {"usage": {"input_tokens": round(taken), "output_tokens": given}}
        return httpx.Response(200, json=body, headers=self.headers())

    async def sleep(self, seconds: float) -> None:
        done = asyncio.Event()
        self.clock.call_later(seconds, done.set)
        await done.wait()


@pytest.mark.parametrize(
    "limits", [{"input": 200_000.0, "output": 80_000.0}, {"input": 1e6, "output": 8000.0}]
)
async def test_most_of_the_tightest_budget_is_used_and_few_calls_are_refused(
    clock: FakeClock, limits: dict[str, float]
) -> None:
    server = ModelServer(clock, limits)
    throttle = Throttle(clock=clock, max_in_flight=256, warnings=False)

    class Inner(httpx.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        async def handle_async_request(self, request: Any) -> Any:
            return await server.handle(request)

    transport = llm.async_transport(throttle, Inner(), vendor="anthropic")
    dice = random.Random(7)
    async with httpx.AsyncClient(transport=transport, timeout=None) as client:

        async def work() -> None:
            while True:
                text = "a" * int(400 * 200 ** dice.random())
                told = {"model": "m", "max_tokens": 4096, "messages": [{"content": text}]}
                assert (await client.post(MESSAGES, json=told)).status_code == 200

        workers = [asyncio.create_task(work()) for _ in range(40)]
        await clock.advance(15 * 60)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    shares = [server.used[kind] / (limit * 16) for kind, limit in limits.items()]
    refused = server.refused / (server.served + server.refused)
    assert max(shares) >= 0.97, (shares, refused)
    assert refused <= 0.005, (shares, refused, server.served)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_real_sdks(clock: FakeClock, name: str) -> None:
    """Whichever library the installed SDK sends with."""
    sdk = pytest.importorskip(name)
    library = importlib.import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    calls: list[Any] = []

    def answer(request: Any) -> Any:
        calls.append(request)
        if len(calls) == 1:
            return library.Response(429, json={"error": {"message": "slow"}}, headers={"retry-after": "2"})
        said = {"content": [{"type": "text", "text": "Hi"}], "choices": [{"message": {"content": "Hi"}}]}
        return library.Response(200, json={"usage": {"input_tokens": 9, "output_tokens": 2}, **said})

    throttle = ThreadThrottle(clock=clock, max_in_flight=16, warnings=False)
    options: Any = {"account": "a", "limits": {"m": {"tpm": 1000}}, "output": "max", "headroom": 1}
    transport = llm.transport(throttle, library.MockTransport(answer), **options)
    kind = sdk.OpenAI if name == "openai" else sdk.Anthropic
    client = kind(api_key="k", max_retries=2, http_client=library.Client(transport=transport))
    create = client.chat.completions.create if name == "openai" else client.messages.create
    asks: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "a"}]}
    create(**asks)
    assert len(calls) == 2
    assert clock.seconds >= 2
    throttle.close()
    with pytest.raises(sdk.RateLimitError) as caught:
        create(**asks)
    assert caught.value.response.headers["x-autothrottle-error"] == "ERR_CLOSED"
    assert len(calls) == 2


def test_the_middleware_of_anthropic(clock: FakeClock) -> None:
    sdk = pytest.importorskip("anthropic")
    if not hasattr(sdk, "Middleware"):
        pytest.skip("this version has none")
    library = importlib.import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    body = {"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 90, "output_tokens": 20}}
    send = library.MockTransport(lambda _: library.Response(200, json=body))
    throttle = ThreadThrottle(clock=clock, max_in_flight=16, warnings=False)
    own = llm.middleware(throttle, limits={"*": {"otpm": 1000}}, headroom=1)
    client = sdk.Anthropic(api_key="k", http_client=library.Client(transport=send), middleware=[own])
    asks: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "a"}]}
    assert client.messages.create(**asks).content[0].text == "Hi"
    assert spent(throttle, "llm:api.anthropic.com/default/m#output") == 20
    assert own.stats.sent == 1


async def test_the_middleware_of_anthropic_where_tasks_wait(clock: FakeClock) -> None:
    """A refusal is waited for, a stream is read in passing, and errors of ours arrive as they are."""
    sdk = pytest.importorskip("anthropic")
    if not hasattr(sdk, "Middleware"):
        pytest.skip("this version has none")
    library = importlib.import_module(sdk.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    calls: list[float] = []

    async def answer(_: Any) -> Any:
        calls.append(clock.seconds)
        if len(calls) == 1:
            error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
            return library.Response(429, json=error, headers={"retry-after": "2"})
        return library.Response(
            200, content=START + TEXT + END, headers={"content-type": "text/event-stream"}
        )

    throttle = Throttle(clock=clock, max_in_flight=16, warnings=False)
    own = llm.middleware(throttle, limits={"*": {"otpm": 1000}}, headroom=1)
    http_client = library.AsyncClient(transport=library.MockTransport(answer))
    client = sdk.AsyncAnthropic(api_key="k", http_client=http_client, middleware=[own])
    asks: Any = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "a"}]}

    async def read() -> list[str]:
        return [event.type async for event in await client.messages.create(stream=True, **asks)]

    reading = asyncio.create_task(read())
    await clock.advance(10)
    assert (await reading)[0] == "message_start"
    assert len(calls) == 2
    assert calls[1] - calls[0] >= 2
    since = clock.seconds - calls[1]
    assert spent(throttle, "llm:api.anthropic.com/default/m#output") == round(150 - since * 1000 / 60)
    assert (own.stats.sent, own.stats.refused, own.stats.cut) == (2, 1, 0)
    throttle.close()
    with pytest.raises(ClosedError):
        await read()
    assert len(calls) == 2

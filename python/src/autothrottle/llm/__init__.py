"""Limits of language models, in requests *and* tokens, for the SDKs of OpenAI and Anthropic as they are.

.. code-block:: python

    throttle = ThreadThrottle(max_in_flight=64)
    client = OpenAI(max_retries=0, http_client=httpx2.Client(transport=llm.transport(throttle)))

Limits are learned from the headers of the answers, per model and key, or typed:
``llm.transport(throttle, limits={"gpt-5*": {"rpm": 500, "tpm": 200_000}})``. docs/llm.md says what a call is
charged.

The newest SDKs send with ``httpx2``; ``library=httpx`` gives a transport for clients of ``httpx``. With an
inner transport its own library counts. The wait does not count against the client's timeouts.

The SDKs send again by themselves what fails (``max_retries=0``; a warning says so). Answers are asked for
with gzip or deflate only, for their usage is read in passing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .._exchange import expect, run_now
from .._threads import ThreadThrottle
from .._throttle import Throttle
from ..errors import ThrottleError
from ._budgets import LlmLimit
from ._core import Core, Exchange, LlmStats, error_answer, root_of
from ._request import Vendor

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "LlmLimit",
    "LlmOptions",
    "LlmRetry",
    "LlmStats",
    "Vendor",
    "async_transport",
    "middleware",
    "transport",
]


class LlmRetry(TypedDict, total=False):
    """Counts of the calls that the server refuses."""

    limit: int
    """How often they are sent again. Always there."""
    max_retry_after: float
    """The longest wait in seconds that the server may ask for: at more the call fails with a
    ``RetryAfterTooLongError``. Default: the throttle's ``retry["max_retry_after"]``, else 300.
    """


class LlmOptions(TypedDict, total=False):
    """How calls of language models are throttled."""

    vendor: Vendor
    """The vendor whose rules hold. Default: by host and path; else OpenAI's."""
    limits: Mapping[str, LlmLimit]
    """Limits by model, or by a pattern such as ``"claude-opus-4*"`` or ``"*"``; the first that fits counts.
    The headers may tell lower ones. Default none: all limits are learned from the headers.
    """
    account: str | Callable[[Mapping[str, str]], str]
    """The account whose limits hold: a name, or a function of the request's headers. Default: a hash of the
    key, the organisation and the project.
    """
    family: Callable[[str], str]
    """Which models share their limits: gives the name of the family. Default: without its date."""
    count_tokens: Callable[[str, str], float]
    """Counts the tokens of a text for a model. Default: UTF-8 bytes ÷ 4, by what usage taught for calls of
    that size.
    """
    output: Literal["learned", "max"]
    """The number of tokens to reserve for the answer: what answers of the model took so far, or
    ``max_tokens``. Default: ``"max"`` for OpenAI and Azure, which charge that; ``"learned"`` for the others.
    """
    headroom: float
    """The share of each limit that is used, above 0 to 1. Default 0.98."""
    retry: Literal[False] | LlmRetry
    """How often a call that is refused with 429, 503 or 529 is sent again. Default ``{"limit": 5}``."""


def transport(
    throttle: ThreadThrottle,
    inner: Any = None,
    *,
    library: ModuleType | None = None,
    **options: Unpack[LlmOptions],
) -> Any:
    """A transport for ``httpx2.Client`` or ``httpx.Client``; its ``stats`` say what became of calls.

    ``inner`` sends; by default ``library.HTTPTransport()``. ``library`` is ``httpx2`` or ``httpx``: by
    default that of ``inner``, else ``httpx2`` if it is installed.

    Raises ``ConfigError`` with every problem of the options.
    """
    expect(throttle, ThreadThrottle, Throttle, "llm.transport", "llm.async_transport")
    return _sync_transport(_library(inner, library), inner, Core(throttle, options))


def async_transport(
    throttle: Throttle,
    inner: Any = None,
    *,
    library: ModuleType | None = None,
    **options: Unpack[LlmOptions],
) -> Any:
    """The same for ``httpx2.AsyncClient`` or ``httpx.AsyncClient``."""
    expect(throttle, Throttle, ThreadThrottle, "llm.async_transport", "llm.transport")
    return _async_transport(_library(inner, library), inner, Core(throttle, options))


def middleware(throttle: ThreadThrottle | Throttle, **options: Unpack[LlmOptions]) -> Any:
    """For ``Anthropic(middleware=[llm.middleware(throttle)])``, or ``AsyncAnthropic`` with a ``Throttle``.

    It sees Anthropic's own form of each call, also to Bedrock and Vertex, and no key: one account, unless
    ``account`` names another. Errors of the throttle are raised as they are.
    """
    core = Core(throttle, {"vendor": "anthropic", "account": "default", **options})

    def exchange(request: Any, send: Any, read: Any) -> Exchange:
        import json

        headers = {str(name).lower(): str(value) for name, value in dict(request.headers).items()}
        headers.setdefault("x-stainless-retry-count", str(request.retries_taken))
        url = request.url if "://" in request.url else f"https://api.anthropic.com{request.url}"
        body = None if request.json is None else json.dumps(request.json, default=str).encode()
        return Exchange(url, request.method, headers, body, None, send, read)

    if isinstance(throttle, ThreadThrottle):

        def handle(request: Any, call_next: Any) -> Any:
            answers = []

            async def send() -> Any:
                answers.append(call_next(request))
                return answers[-1].http_response

            async def read(response: Any) -> bytes:
                content: bytes = response.read()
                return content

            run_now(core.call(exchange(request, send, read)))
            return _as_final(answers[-1])

        return _with_stats(handle, core)

    async def handle_async(request: Any, call_next: Any) -> Any:
        answers = []

        async def send() -> Any:
            answers.append(await call_next(request))
            return answers[-1].http_response

        async def read(response: Any) -> bytes:
            content: bytes = await response.aread()
            return content

        await core.call(exchange(request, send, read))
        return _as_final(answers[-1])

    return _with_stats(handle_async, core)


def _as_final(answer: Any) -> Any:
    """Tells the SDK not to send again what was refused to the end."""
    if answer.http_response.status_code in (429, 503, 529):
        answer.http_response.headers["x-should-retry"] = "false"
    return answer


def _with_stats(handle: Any, core: Core) -> Any:
    handle.stats = core.stats
    return handle


def _library(inner: Any, library: ModuleType | None) -> ModuleType:
    """The one that the client is of."""
    if library is not None:
        return library
    for root in map(root_of, type(inner).__mro__):
        if root in ("httpx", "httpx2"):
            return importlib.import_module(root)
    try:
        return importlib.import_module("httpx2")
    except ModuleNotFoundError:
        return importlib.import_module("httpx")


def _exchange(request: Any, send: Any, read: Any) -> Exchange:
    try:
        body = request.content
    except Exception:
        # A stream: it can be sent once, and no model can be read from it.
        body = None
    if re_asks(request.headers.get("accept-encoding", "")):
        request.headers["accept-encoding"] = "gzip, deflate"
    options = request.extensions.get("throttle")
    return Exchange(str(request.url), request.method, request.headers, body, options, send, read)


def re_asks(accepted: str) -> bool:
    """Whether an answer might come in a form that is not read here."""
    return "br" in accepted or "zstd" in accepted


def _last(library: ModuleType, request: Any, response: Any, content: bytes) -> Any:
    """The last refusal, as the server said it; a header says to the SDK that it is final."""
    headers = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in ("content-encoding", "content-length", "transfer-encoding", "x-should-retry")
    ]
    headers.append(("x-should-retry", "false"))
    return library.Response(response.status_code, headers=headers, content=content, request=request)


def _failure(library: ModuleType, request: Any, error: ThrottleError) -> Any:
    is_anthropic = str(request.url.path).endswith("/messages")
    headers, content = error_answer(error, is_anthropic)
    status = 408 if getattr(error, "is_sent", False) else 429
    return library.Response(status, headers=headers, content=content, request=request)


class _Transport:
    """The shared part of both transports. With threads no await here ever suspends."""

    def __init__(self, library: ModuleType, inner: Any, core: Core) -> None:
        self._library, self._inner, self._core = library, inner, core

    @property
    def stats(self) -> LlmStats:
        """Sums of the calls so far."""
        return self._core.stats

    async def _answer(self, request: Any, send: Any, read: Any) -> Any:
        try:
            response, content = await self._core.call(_exchange(request, send, read))
        except ThrottleError as error:
            return _failure(self._library, request, error)
        return response if content is None else _last(self._library, request, response, content)


def _sync_transport(library: ModuleType, inner: Any, core: Core) -> Any:
    class LlmTransport(_Transport, library.BaseTransport):  # type: ignore[misc, name-defined]
        """Calls of language models wait for their turn."""

        def handle_request(self, request: Any) -> Any:
            async def send() -> Any:
                return self._inner.handle_request(request)

            async def read(response: Any) -> bytes:
                content: bytes = response.read()
                response.close()
                return content

            return run_now(self._answer(request, send, read))

        def close(self) -> None:
            self._inner.close()

    return LlmTransport(library, library.HTTPTransport() if inner is None else inner, core)


def _async_transport(library: ModuleType, inner: Any, core: Core) -> Any:
    class LlmAsyncTransport(_Transport, library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        """Calls of language models wait for their turn."""

        async def handle_async_request(self, request: Any) -> Any:
            async def send() -> Any:
                return await self._inner.handle_async_request(request)

            async def read(response: Any) -> bytes:
                content: bytes = await response.aread()
                await response.aclose()
                return content

            return await self._answer(request, send, read)

        async def aclose(self) -> None:
            await self._inner.aclose()

    return LlmAsyncTransport(library, library.AsyncHTTPTransport() if inner is None else inner, core)

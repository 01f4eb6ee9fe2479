"""Transports for httpx: requests wait for their turn, and the throttle reads the answers.

.. code-block:: python

    throttle = Throttle(rate=5, retry={"limit": 3})
    async with httpx.AsyncClient(transport=AsyncThrottleTransport(throttle)) as client:
        response = await client.get("https://api.example/items")

Each hop of a redirect is a request of its own, in the scope of the host that it goes to. A request says
more by ``extensions={"throttle": {"priority": 10}}`` or in a block of ``request_options``. The wait does
not count against the client's timeouts, which begin when the request is sent.

Settings of connections belong to the inner transport, for httpx does not hand them on:

.. code-block:: python

    inner = httpx.AsyncHTTPTransport(proxy="http://proxy.example:3128", verify=context, http2=True)
    client = httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, inner))

``limits``, ``cert`` and ``retries`` alike; proxies of the environment are not read.

With ``release="body"`` slots come back when the body was read or closed, as httpx itself demands of streams.
A ``proxy`` of the client's sends past its transport: an error says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ._exchange import Call, WatchedBody, exchange, expect, run_now, watch
from ._extras import lacking
from ._hooks import ScopeRequest
from ._requests import current_options
from ._threads import ThreadThrottle
from ._throttle import Throttle
from .errors import ConfigError, Problem

try:
    import httpx
except ModuleNotFoundError as error:
    raise lacking(error, "httpx") from error

__all__ = ["AsyncThrottleTransport", "ThrottleTransport"]


class _Throttled:
    """The shared part of both transports. With threads no await here ever suspends."""

    _throttle: Any
    _transport: Any

    async def _pass_on(self, request: httpx.Request) -> httpx.Response:
        raise NotImplementedError

    async def _discard(self, response: httpx.Response) -> None:
        raise NotImplementedError

    def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def _exchanged(self, request: httpx.Request) -> httpx.Response:
        exchanged = await exchange(self._throttle, self._call(request))
        response, release = exchanged.response, exchanged.release
        if release is not None and _is_read(response):
            release(None)
        elif release is not None:
            response.stream = _Watched(response.stream, lambda error, _: release(error))
        return response

    def _call(self, request: httpx.Request) -> Call[httpx.Response]:
        async def send() -> httpx.Response:
            response = await self._pass_on(request)
            response.request = request  # as the client does it later: hooks ask for the URL
            return response

        async def read(response: httpx.Response, most: int) -> bytes:
            text = b""
            async for part in self._parts(response):
                text += part
                if len(text) >= most:
                    break
            return text

        def get(url: str, user_agent: str) -> Call[httpx.Response]:
            return self._call(httpx.Request("GET", url, headers={"User-Agent": user_agent}))

        described = ScopeRequest(str(request.url), request.method.upper(), request.headers)
        options = current_options(request.extensions.get("throttle"), 'extensions["throttle"]')
        return Call(described, options, send, self._discard, lambda: _is_read(request), get, read)


class AsyncThrottleTransport(_Throttled, httpx.AsyncBaseTransport):
    """For ``httpx.AsyncClient``. Sends with ``transport``: by default httpx's own."""

    def __init__(self, throttle: Throttle, transport: httpx.AsyncBaseTransport | None = None) -> None:
        expect(
            throttle, Throttle, ThreadThrottle, "AsyncThrottleTransport", "ThrottleTransport and httpx.Client"
        )
        watch(httpx.AsyncClient, "_transport_for_url", _chosen)
        self._throttle = throttle
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._exchanged(request)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _pass_on(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._transport.handle_async_request(request)
        return response

    async def _discard(self, response: httpx.Response) -> None:
        await response.aclose()

    def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        return response.aiter_bytes()


class ThrottleTransport(_Throttled, httpx.BaseTransport):
    """For ``httpx.Client``, with a ``ThreadThrottle``."""

    def __init__(self, throttle: ThreadThrottle, transport: httpx.BaseTransport | None = None) -> None:
        there = "AsyncThrottleTransport and httpx.AsyncClient"
        expect(throttle, ThreadThrottle, Throttle, "ThrottleTransport", there)
        watch(httpx.Client, "_transport_for_url", _chosen)
        self._throttle = throttle
        self._transport = httpx.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return run_now(self._exchanged(request))

    def close(self) -> None:
        self._transport.close()

    async def _pass_on(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._transport.handle_request(request)
        return response

    async def _discard(self, response: httpx.Response) -> None:
        response.close()

    async def _parts(self, response: httpx.Response) -> AsyncIterator[bytes]:
        for part in response.iter_bytes():
            yield part


def _chosen(client: Any, url: httpx.URL, transport: Any) -> None:
    """Tells of a proxy beside the transport: httpx sends past the transport then."""
    own = client._transport
    if transport is own or not isinstance(own, (AsyncThrottleTransport, ThrottleTransport)):
        return
    if "Proxy" not in type(getattr(transport, "_pool", None)).__name__:
        return
    kind = "Async" if isinstance(own, AsyncThrottleTransport) else ""
    remedy = f"{type(own).__name__}(throttle, httpx.{kind}HTTPTransport(proxy=…))"
    if any(pattern.pattern == "all://" and each is transport for pattern, each in client._mounts.items()):
        got = "a proxy beside a throttled transport: each request would leave past the throttle"
        raise ConfigError([Problem("proxy", remedy, got)])
    past = f"requests to {url.scheme}://{url.host} leave through a proxy that httpx mounts past the throttle"
    own._throttle._scheduler.warn("bypassed", f"{past}: use {remedy}")


def _is_read(message: httpx.Request | httpx.Response) -> bool:
    """Whether its body is in memory: one of a request can then be sent again, one of a response was read."""
    try:
        _ = message.content
    except httpx.StreamError:
        return False
    return True


class _Watched(WatchedBody, httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose end gives the slots back."""

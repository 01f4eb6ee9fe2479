"""A client for crawlee-python: its requests wait for their turn, and the throttle reads the answers.

.. code-block:: python

    throttle = Throttle(rate=5, request_timeout=30)
    crawler = ParselCrawler(
        http_client=ThrottledHttpClient(throttle), navigation_timeout=timedelta(hours=1)
    )

It sends with another client of Crawlee's. Pages, ``send_request``, downloads and robots.txt files of the
crawler all leave through it.

| Crawlee's | here |
|---|---|
| retries | each comes back to the throttle; a refusal has slowed its host down by then |
| ``navigation_timeout``, a minute | it counts the wait: make it longer, and set ``request_timeout`` |
| redirects | one permit for the chain, in the scope of the first URL |
| ``user_data`` of a request | ``{"throttle": {"priority": 1}}`` says more |
| ``max_tasks_per_minute``, ``ThrottlingRequestManager`` | leave them out |

Let Crawlee's ``max_concurrency`` be larger than what waits at one host: each that waits takes a place there.
A ``PlaywrightCrawler`` fetches pages with its browser, so they do not wait here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from ._exchange import Call, Exchanged, exchange, expect
from ._extras import lacking
from ._hooks import ScopeRequest
from ._requests import current_options
from ._threads import ThreadThrottle
from ._throttle import Throttle

try:
    from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient
except ModuleNotFoundError as error:
    raise lacking(error, "crawlee") from error

if TYPE_CHECKING:
    from crawlee import Request

__all__ = ["ThrottledHttpClient"]

Send = Callable[[], Awaitable[HttpResponse]]
Discard = Callable[[HttpResponse], Awaitable[None]]


class ThrottledHttpClient(HttpClient):
    """For ``http_client`` of a crawler. Sends with ``client``: by default ``ImpitHttpClient()``."""

    def __init__(self, throttle: Throttle, client: HttpClient | None = None) -> None:
        expect(throttle, Throttle, ThreadThrottle, "ThrottledHttpClient", "requests or httpx.Client")
        super().__init__()
        self._throttle = throttle
        self._client = ImpitHttpClient() if client is None else client

    async def crawl(self, request: Request, **options: Any) -> HttpCrawlingResult:
        async def send() -> HttpResponse:
            return (await self._client.crawl(request, **options)).http_response

        described = ScopeRequest(request.url, request.method.upper(), request.headers)
        typed = request.user_data.get("throttle")
        return HttpCrawlingResult(await self._whole(described, send, options, typed))

    async def send_request(self, url: str, **options: Any) -> HttpResponse:
        async def send() -> HttpResponse:
            return await self._client.send_request(url, **options)

        return await self._whole(_described(url, options), send, options)

    @asynccontextmanager
    async def stream(self, url: str, **options: Any) -> AsyncGenerator[HttpResponse]:
        async with AsyncExitStack() as opened:

            async def send() -> HttpResponse:
                return await opened.enter_async_context(self._client.stream(url, **options))

            async def discard(_: HttpResponse) -> None:
                await opened.aclose()

            exchanged = await self._exchange(_described(url, options), send, discard, options)
            try:
                yield exchanged.response
            except BaseException as error:
                _over(exchanged, error)
                raise
            _over(exchanged, None)

    async def cleanup(self) -> None:
        await self._client.cleanup()

    async def _whole(
        self, request: ScopeRequest, send: Send, options: dict[str, Any], typed: object = None
    ) -> HttpResponse:
        """A response with its body."""
        exchanged = await self._exchange(request, send, _let_go, options, typed)
        _over(exchanged, None)
        return exchanged.response

    async def _exchange(
        self,
        request: ScopeRequest,
        send: Send,
        discard: Discard,
        options: dict[str, Any],
        typed: object = None,
    ) -> Exchanged[HttpResponse]:
        way: dict[str, Any] = {"proxy_info": options.get("proxy_info")}

        def get(url: str, user_agent: str) -> Call[HttpResponse]:
            headers = {"User-Agent": user_agent}

            async def send() -> HttpResponse:
                return await self._client.send_request(url, headers=headers, **way)

            return Call(ScopeRequest(url, "GET", headers), {}, send, _let_go, lambda: True, get, _read)

        own = current_options(typed, 'user_data["throttle"]')
        # Payloads of Crawlee are bytes: each can be sent again.
        return await exchange(self._throttle, Call(request, own, send, discard, lambda: True, get, _read))


def _described(url: str, options: dict[str, Any]) -> ScopeRequest:
    return ScopeRequest(url, options.get("method", "GET").upper(), options.get("headers") or {})


def _over(exchanged: Exchanged[HttpResponse], error: BaseException | None) -> None:
    if exchanged.release is not None:
        exchanged.release(error)


async def _let_go(_: HttpResponse) -> None:
    """Its body is in memory."""


async def _read(response: HttpResponse, most: int) -> bytes:
    return (await response.read())[:most]

"""A client middleware for aiohttp: requests wait for their turn, and the throttle reads the answers.

.. code-block:: python

    throttle = Throttle(rate=5, retry={"limit": 3})
    async with aiohttp.ClientSession(middlewares=[ThrottleMiddleware(throttle)]) as session:
        async with session.get("https://api.example/items") as response: ...

Each hop of a redirect is a request of its own, in the scope of the host that it goes to. A request says
more in a block of ``request_options``.

The trap is aiohttp's ``ClientTimeout(total=…)``, 300 s unless you say another: it begins when
``session.get`` is called, so the wait counts. Use ``ClientTimeout(total=None, sock_read=…)``, and
``request_timeout`` of the throttle, which begins when the request is sent.

Source: the client middlewares of aiohttp 3.12 and later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ._exchange import Call, exchange, expect
from ._extras import lacking
from ._hooks import ScopeRequest
from ._requests import current_options
from ._threads import ThreadThrottle
from ._throttle import Throttle

try:
    from aiohttp import BytesPayload, ClientRequest, ClientResponse
except ModuleNotFoundError as error:
    raise lacking(error, "aiohttp") from error

__all__ = ["ThrottleMiddleware"]


class ThrottleMiddleware:
    """For ``aiohttp.ClientSession(middlewares=[…])``."""

    def __init__(self, throttle: Throttle) -> None:
        expect(throttle, Throttle, ThreadThrottle, "ThrottleMiddleware", "requests or httpx.Client")
        self._throttle = throttle

    async def __call__(
        self, request: ClientRequest, handler: Callable[[ClientRequest], Awaitable[ClientResponse]]
    ) -> ClientResponse:
        async def send() -> ClientResponse:
            return await handler(request)

        async def discard(response: ClientResponse) -> None:
            response.release()

        def get(url: str, user_agent: str) -> Call[ClientResponse]:
            headers = {"User-Agent": user_agent}

            async def send() -> ClientResponse:
                session = request.session
                return await session.get(url, headers=headers, allow_redirects=False, middlewares=())

            return Call(ScopeRequest(url, "GET", headers), {}, send, discard, lambda: True, get, _read)

        described = ScopeRequest(str(request.url), request.method.upper(), request.headers)
        call = Call(described, current_options(), send, discard, lambda: _is_replayable(request), get, _read)
        exchanged = await exchange(self._throttle, call)
        response, release = exchanged.response, exchanged.release
        if release is not None:
            if response.connection is None:  # its body is here already
                release(None)
            else:
                response.connection.add_callback(lambda: release(response.content.exception()))
        return response


async def _read(response: ClientResponse, most: int) -> bytes:
    """As much of a body; a body without end is not worth the memory."""
    text = b""
    async for part in response.content.iter_any():
        text += part
        if len(text) >= most:
            break
    return text


def _is_replayable(request: ClientRequest) -> bool:
    """A stream that cannot go back to its beginning says so once it was read; in aiohttp 3.12.0 none does."""
    body: object = request.body
    if isinstance(body, (bytes, BytesPayload)):
        return True
    return not getattr(body, "consumed", True)

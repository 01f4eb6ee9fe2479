"""An adapter for requests: requests wait for their turn, and the throttle reads the answers.

.. code-block:: python

    throttle = autothrottle.ThreadThrottle(rate=5, retry={"limit": 3})
    session = requests.Session()
    session.mount("https://", ThrottleAdapter(throttle))
    session.mount("http://", ThrottleAdapter(throttle))

Each hop of a redirect is a request of its own, in the scope of the host that it goes to. A request says
more in a block of ``request_options``. The wait does not count against ``timeout=``, which begins when the
request is sent.

A retry sends bytes and texts again, and files that can go back to where they began; a generator is a
``BodyNotReplayableError``. If only ``https://`` of a session is mounted, a warning says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ._exchange import Call, Exchanged, exchange, expect, run_now, watch
from ._extras import lacking
from ._hooks import ScopeRequest
from ._requests import current_options
from ._threads import ThreadThrottle
from ._throttle import Throttle

try:
    import requests
    from requests.adapters import HTTPAdapter
    from requests.utils import rewind_body
except ModuleNotFoundError as error:
    raise lacking(error, "requests") from error

__all__ = ["ThrottleAdapter"]


class ThrottleAdapter(HTTPAdapter):
    """For ``session.mount``. Further arguments are those of ``HTTPAdapter``; leave its ``max_retries`` at 0:
    urllib3 sends again past the throttle, ``retry`` of the throttle waits for its turn.
    """

    def __init__(self, throttle: ThreadThrottle, **options: Any) -> None:
        want = "AsyncThrottleTransport of httpx or ThrottleMiddleware of aiohttp"
        expect(throttle, ThreadThrottle, Throttle, "ThrottleAdapter", want)
        watch(requests.Session, "get_adapter", _chosen)
        self._throttle = throttle
        super().__init__(**options)
        if self.max_retries.total:
            past = "max_retries of ThrottleAdapter sends again past the throttle"
            throttle._scheduler.warn(
                "bypassed", f'{past}: use ThreadThrottle(retry={{"limit": …}})', about="max_retries"
            )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a throttle cannot be pickled: make the adapter anew in each process")

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        def pass_on(prepared: requests.PreparedRequest, stream: bool = stream) -> requests.Response:
            return super(ThrottleAdapter, self).send(
                prepared, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies
            )

        attempts = 0

        async def send() -> requests.Response:
            nonlocal attempts
            attempts += 1
            if attempts > 1 and _position(request) is not None:
                rewind_body(request)
            return pass_on(request)

        async def discard(response: requests.Response) -> None:
            response.close()

        async def read(response: requests.Response, most: int) -> bytes:
            text = b""
            for part in response.iter_content(65_536):
                text += part
                if len(text) >= most:
                    break
            return text

        def get(url: str, user_agent: str) -> Call[requests.Response]:
            prepared = requests.Request("GET", url, headers={"User-Agent": user_agent}).prepare()

            async def send() -> requests.Response:
                return pass_on(prepared, stream=True)

            described = ScopeRequest(url, "GET", prepared.headers)
            return Call(described, {}, send, discard, lambda: True, get, read)

        url, method = request.url or "", (request.method or "GET").upper()
        described = ScopeRequest(url, method, request.headers)
        replayable = partial(_is_replayable, request)
        call = Call(described, current_options(), send, discard, replayable, get, read)
        exchanged = run_now(exchange(self._throttle, call))
        if exchanged.release is not None:
            _watch(exchanged)
        return exchanged.response


def _chosen(session: requests.Session, url: str, adapter: Any) -> None:
    """Tells of a scheme that is not mounted, where the other one is."""
    if type(adapter) is not HTTPAdapter:
        return
    for prefix in ("https://", "http://"):
        mounted = session.adapters.get(prefix)
        if isinstance(mounted, ThrottleAdapter):
            other = "http://" if prefix == "https://" else "https://"
            past = f"{url} leaves past the throttle, which is mounted for {prefix} alone"
            mounted._throttle._scheduler.warn("bypassed", f'{past}: session.mount("{other}", adapter), too')


def _position(request: requests.PreparedRequest) -> object:
    return getattr(request, "_body_position", None)


def _is_replayable(request: requests.PreparedRequest) -> bool:
    """Bytes and texts, and files that know where they began."""
    body: object = request.body
    if body is None or isinstance(body, (bytes, str)):
        return True
    return isinstance(_position(request), int) and callable(getattr(body, "seek", None))


def _watch(exchanged: Exchanged[requests.Response]) -> None:
    """Slots come back when urllib3 gives the connection back: the body was read, or closed."""
    raw: Any = exchanged.response.raw
    release = exchanged.release
    give_back, is_over = raw.release_conn, False

    def over() -> None:
        nonlocal is_over
        give_back()
        if not is_over and release is not None:
            is_over = True
            release(None)

    raw.release_conn = over

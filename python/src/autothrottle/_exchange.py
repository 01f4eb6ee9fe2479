"""One request of a client's: hooks, attempts of retries, redirects' waits, and the one place where it ends.

Its way: scopes → a permit → the client sends → hooks → again, or the answer. It is written once for tasks
and for threads: with threads no await here ever suspends.

An exchange ends in ``exchange``, whatever fails or is cancelled: it settles first and cleans up after. A
retry goes back into the throttle with its place by age, and holds no slot while it waits.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast
from urllib.parse import urldefrag, urljoin, urlsplit

from ._clock import NANOS, Clock, nanos
from ._hooks import RobotsRules, ScopeRequest, ask, checked_backoffs, hints_of, span_of
from ._native import MOST_ROBOTS_BYTES
from ._outcome import GIVEN_UP, NOTHING, Outcome, answer_in, failure_of
from ._permit import Permit, Started, Verdict, Wait, Waiting
from ._requests import RequestOptions, Settings, seconds_of, wait_of
from .errors import BodyNotReplayableError, DisallowedError, RetryAfterTooLongError
from .options import ROBOTS_MAX_DELAY

R = TypeVar("R")
T = TypeVar("T")

_REDIRECTS = (301, 302, 303, 307, 308)
_next_hop: ContextVar[tuple[str, int] | None] = ContextVar("autothrottle_next_hop", default=None)
"""Where the last answer of this task or thread leads, and how long its server asks to wait before."""


class Core(Protocol):
    """The parts of a throttle that an exchange uses."""

    _scheduler: Any
    _settings: Settings
    _clock: Clock
    _is_plain: bool
    _robots: Robots | None

    def robots(self, host: str, text: bytes, *, user_agent: str, max_delay: float) -> object: ...
    async def _enter(self, target: object, scopes: Any, wait: Wait) -> Permit: ...
    async def _wait(self, waiting: Waiting) -> Permit: ...
    async def _within(self, limit: float, work: Awaitable[T]) -> T: ...


@dataclass(slots=True)
class Call(Generic[R]):
    """One request of a client's, as far as it concerns a throttle."""

    request: ScopeRequest
    options: RequestOptions
    send: Callable[[], Awaitable[R]]
    """Sends it once. Called again for each attempt."""
    discard: Callable[[R], Awaitable[None]]
    """Lets go of an unwanted answer."""
    is_replayable: Callable[[], bool]
    """Whether its body can be sent once more. Asked after each attempt."""
    get: Callable[[str, str], Call[R]]
    """Another request by the same client: a GET of a URL, with this User-Agent."""
    read: Callable[[R, int], Awaitable[bytes]]
    """The body of an answer, or as many bytes of it."""


@dataclass(slots=True)
class Exchanged(Generic[R]):
    """The answer. Its slots came back, or do when ``release`` is called: with why its body failed, if it
    did.
    """

    response: R
    release: Callable[[BaseException | None], None] | None


async def exchange(core: Core, call: Call[R], asks_robots: bool = True) -> Exchanged[R]:
    """Sends with permission. If this raises, everything is settled."""
    wait = _first_wait(core._settings, call)
    if not asks_robots:
        # The file is part of the request that asks for it.
        wait = wait._replace(is_taken=True)
    with core._scheduler.job(wait) as taken:
        return await _exchange(core, call, asks_robots, taken)


async def _exchange(core: Core, call: Call[R], asks_robots: bool, wait: Wait) -> Exchanged[R]:
    if core._robots is not None and asks_robots:
        await core._robots.admit(core, call)
    settings = core._settings
    options, request = call.options, call.request
    start = core._clock.now()
    limit = seconds_of("request_timeout", options.get("request_timeout"))
    limit = settings.request_timeout if limit is None else limit
    permit = await core._enter(request, options.get("scopes"), wait)
    charge = permit.charge
    if charge.left is None:
        charge.left = core._scheduler.engine.retries(request.method)
    while True:
        response: R | None = None
        outcome = GIVEN_UP
        try:
            try:
                sent = Started(call.send(), permit.started)
                response = await (sent if limit is None else core._within(limit, sent))
            except Exception as error:
                if failure_of(error) is None:
                    raise
                outcome = Outcome(error=error)
                outcome.scopes = await _asked_about_error(core, error, request, permit)
                if not charge.left:
                    raise
                verdict = _end(core, permit, outcome, wait.again(start), call)
                if verdict == "not-replayable":
                    raise BodyNotReplayableError() from error
                if not isinstance(verdict, Waiting):
                    raise
            else:
                outcome = _outcome_of(core, response, permit, options)
                await _ask_about(core, response, request, permit, outcome)
                status = outcome.status or 0
                is_called_bad = outcome.backoff is True or outcome.scopes is not None
                if not charge.left or (status < 400 and not is_called_bad):
                    return _answered(core, call, response, permit, outcome)
                verdict = _end(core, permit, outcome, wait.again(start), call)
                if verdict == "not-replayable":
                    raise BodyNotReplayableError()
                if verdict == "too-long":
                    asked = (permit.asked or 0) / NANOS
                    raise RetryAfterTooLongError(asked, settings.max_retry_after, response)
                if not isinstance(verdict, Waiting):
                    return Exchanged(response, None)
        except BaseException as error:
            permit.report(outcome)
            if response is not None and getattr(error, "response", None) is not response:
                await _discarded(call, response)
            raise
        if response is not None:
            await _discarded(call, response)
        permit = await core._wait(verdict)


def _end(core: Core, permit: Permit, outcome: Outcome, wait: Wait, call: Call[Any]) -> Verdict:
    permit.take()
    if permit.again is None:
        verdict: Verdict = core._scheduler.end(permit, outcome, wait, call.is_replayable())
        return verdict
    # The function that is called again makes its request anew.
    permit.verdict = core._scheduler.end(permit, outcome, wait, False)
    return permit.verdict if permit.verdict == "too-long" else "over"


def _answered(core: Core, call: Call[R], response: R, permit: Permit, outcome: Outcome) -> Exchanged[R]:
    """The answer goes out; its slots come back now, or when its body is over."""
    place = place_of(call.request.url, outcome.headers) if outcome.status in _REDIRECTS else None
    if place is None and core._settings.is_held_by_body and not _is_empty(call.request.method, outcome):
        bodies = core._scheduler.unsettled.bodies
        bodies.add(permit._ticket)

        def release(error: BaseException | None) -> None:
            bodies.discard(permit._ticket)
            failed = error is not None and failure_of(error) is not None
            permit.report(Outcome(error=error) if failed else outcome)

        return Exchanged(response, release)
    permit.report(outcome)
    if place is not None:
        _next_hop.set((place, permit.asked or 0))
    return Exchanged(response, None)


def _is_empty(method: str, outcome: Outcome) -> bool:
    """Whether no byte of a body comes, and many read none."""
    if method.upper() == "HEAD" or outcome.status in (204, 205, 304):
        return True
    return _field(outcome.headers, "content-length") == "0"


def place_of(url: str, headers: Any) -> str | None:
    """Where a redirect leads; ``None`` where that is no URL."""
    place = _field(headers, "location")
    try:
        return None if place is None else urldefrag(urljoin(url, place))[0]
    except ValueError:
        return None


def _field(headers: Any, wanted: str) -> str | None:
    for name, value in headers.items() if hasattr(headers, "items") else headers or ():
        if str(name).lower() == wanted:
            return str(value)
    return None


def _first_wait(settings: Settings, call: Call[Any]) -> Wait:
    options = call.options
    wait = wait_of(
        options.get("priority", 0), options.get("cost", 1), options.get("delay", 0), options.get("max_wait")
    )
    hop = _next_hop.get()
    if hop is None:
        return wait
    _next_hop.set(None)
    place, asked = hop
    if place != urldefrag(call.request.url)[0]:
        return wait
    if asked > settings.redirect_max_delay * NANOS:
        raise RetryAfterTooLongError(asked / NANOS, settings.redirect_max_delay)
    return wait._replace(delay=max(wait.delay, asked), is_taken=True)


async def _discarded(call: Call[R], response: R) -> None:
    """The answer is not wanted: what goes wrong with it is of no interest."""
    try:
        await call.discard(response)
    except Exception:
        return


def _outcome_of(core: Core, response: Any, permit: Permit, options: RequestOptions) -> Outcome:
    """The answer by itself. A hook that fails afterwards takes no part of it back."""
    outcome = answer_in(response)
    if outcome is None:
        raise TypeError(f"want a response with a status; got {response!r:.60}")
    outcome.latency = (core._clock.now() - permit.charge.sent) / NANOS
    outcome.adjust_delay = options.get("adjust_delay", True)
    return outcome


async def _ask_about(
    core: Core, response: Any, request: ScopeRequest, permit: Permit, outcome: Outcome
) -> None:
    """Asks the hooks, which know better than status and headers."""
    settings = core._settings
    hints = await _hook(core, "get_hints", request, permit, settings.get_hints, response)
    delay = await _hook(core, "get_response_delay", request, permit, settings.get_response_delay, response)
    if delay is not None:
        span_of("get_response_delay", "delay", delay)
        hints = {**(hints or {}), "delay": delay}
    hints_of("get_hints", hints)
    outcome.hints = hints
    if await _hook(core, "retry.when", request, permit, settings.when, response):
        outcome.backoff = True
    asked = settings.get_response_backoff
    backoffs = await _hook(core, "get_response_backoff", request, permit, asked, response, request)
    outcome.scopes = checked_backoffs("get_response_backoff", backoffs, permit.scopes)


async def _asked_about_error(core: Core, error: Exception, request: ScopeRequest, permit: Permit) -> Any:
    """The scopes that a failure makes back off, where a hook knows better."""
    hook = core._settings.get_error_backoff
    backoffs = await _hook(core, "get_error_backoff", request, permit, hook, error, request)
    return checked_backoffs("get_error_backoff", backoffs, permit.scopes)


async def _hook(
    core: Core, name: str, request: ScopeRequest, permit: Permit, hook: Any, *args: object
) -> Any:
    if hook is None:
        return None
    with core._scheduler.nested.asking(permit):
        return await ask(name, request.url, lambda: hook(*args), core._is_plain)


class WatchedBody:
    """A body that tasks or threads read: ``hear`` gets each part in passing. ``end`` is called once, with why
    it failed and whether it was read to its end.
    """

    def __init__(
        self,
        stream: Any,
        end: Callable[[BaseException | None, bool], None],
        hear: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self._stream = stream
        self._end = end
        self._hear = hear
        self._is_over = False

    def over(self, error: BaseException | None, is_read: bool = False) -> None:
        """It ended."""
        if not self._is_over:
            self._is_over = True
            self._end(error, is_read)

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Its end is in here, unless its reader leaves before."""
        try:
            yield
        except Exception as error:
            self.over(error)
            raise
        self.over(None, True)

    def __iter__(self) -> Iterator[bytes]:
        with self._read():
            for part in self._stream:
                self._hear(part)
                yield part

    def close(self) -> None:
        """Lets go of it."""
        self.over(None)
        self._stream.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._read():
            async for part in self._stream:
                self._hear(part)
                yield part

    async def aclose(self) -> None:
        """Lets go of it."""
        self.over(None)
        await self._stream.aclose()


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Runs what never suspends: the same code for threads."""
    try:
        work.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    raise RuntimeError("no call may suspend in a thread")


_DAY = 86_400 * NANOS
_MINUTE = 60 * NANOS
_MOST_HOSTS = 10_000
_MOST_REDIRECTS = 5
_HTTP = ("http", "https")


class _BrokenBodyError(Exception):
    """A robots.txt whose body broke off."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _Known:
    """The robots.txt of one host."""

    __slots__ = ("is_allowed", "is_had", "lock", "until", "why")

    def __init__(self, lock: AbstractAsyncContextManager[Any]) -> None:
        self.lock = lock
        self.until = 0
        self.is_allowed: Callable[[str], bool] = lambda _: True
        self.is_had = False
        """Whether a file was had, which counts until the next one is."""
        self.why: BaseException | None = None
        """Why the file could not be had."""


class Robots:
    """robots.txt for the transports: once per host, through the throttle, by the rules of RFC 9309 §2.3.1.

    | answer | what it means |
    |---|---|
    | 2xx | what it says; kept for a day |
    | 4xx | no rules |
    | 429, 5xx, no answer | the file before counts, else no URL is allowed; asked again after a minute |

    Of many first requests to a host one asks, the others wait.
    """

    def __init__(
        self, options: Mapping[str, Any], clock: Clock, lock: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> None:
        self._user_agent: str = options["user_agent"]
        self._rules: RobotsRules | None = options.get("rules")
        self._max_delay = nanos("robots.max_delay", options.get("max_delay", ROBOTS_MAX_DELAY)) / NANOS
        self._clock = clock
        self._lock = lock
        self._known: dict[str, _Known] = {}

    async def admit(self, core: Core, call: Call[Any]) -> None:
        """Returns when the host's robots.txt is known and allows the URL.

        :raises DisallowedError: if it does not, or could not be had.
        """
        url = call.request.url
        parts = urlsplit(url)
        if parts.scheme not in _HTTP or parts.path == "/robots.txt":
            return
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
        known = self._known.get(origin)
        if known is None:
            if len(self._known) >= _MOST_HOSTS:
                del self._known[next(iter(self._known))]
            known = self._known[origin] = _Known(self._lock())
        if known.until <= self._clock.now():
            async with known.lock:
                if known.until <= self._clock.now():
                    await self._ask(core, call, origin, known)
        if known.why is not None:
            raise DisallowedError(f"robots.txt of {parts.netloc} could not be had", True) from known.why
        if not known.is_allowed(url):
            raise DisallowedError(f"robots.txt of {parts.netloc} does not allow {url}")

    async def _ask(self, core: Core, call: Call[Any], origin: str, known: _Known) -> None:
        url = f"{origin}/robots.txt"
        try:
            text = await self._read(core, call, url)
        except Exception as error:
            known.why = None if known.is_had else error
            known.until = self._clock.now() + _MINUTE
            return
        known.why, known.until, known.is_had = None, self._clock.now() + _DAY, True
        core.robots(url, text, user_agent=self._user_agent, max_delay=self._max_delay)
        if self._rules is not None:
            known.is_allowed = self._rules(url, text.decode("utf-8", "replace"), self._user_agent)

    async def _read(self, core: Core, call: Call[Any], url: str) -> bytes:
        """The content of the file. A body that breaks off is asked for again, as a request that fails is."""
        left: int = core._scheduler.engine.retries("GET")
        while True:
            try:
                return await self._follow(core, call, url)
            except _BrokenBodyError as broken:
                if left == 0:
                    raise broken.error from broken.error.__cause__
                left -= 1

    async def _follow(self, core: Core, call: Call[Any], url: str) -> bytes:
        """The file, wherever redirects lead; no rules after too many of them."""
        for _ in range(_MOST_REDIRECTS + 1):
            exchanged = await exchange(core, call.get(url, self._user_agent), asks_robots=False)
            response, text, place = exchanged.response, b"", None
            try:
                answer = answer_in(response) or NOTHING
                status = answer.status or 0
                if status >= 500 or status == 429:
                    raise OSError(f"{url} answered {status}")
                if status in _REDIRECTS:
                    place = place_of(url, answer.headers)
                elif 200 <= status < 300:
                    try:
                        text = await call.read(response, MOST_ROBOTS_BYTES)
                    except Exception as error:
                        raise _BrokenBodyError(error) from error
            finally:
                await call.discard(response)
                if exchanged.release is not None:
                    exchanged.release(None)
            if place is None or urlsplit(place).scheme not in _HTTP:
                return text[:MOST_ROBOTS_BYTES]
            url = place
        return b""


def watch(client: type, method: str, chosen: Callable[[Any, Any, Any], None]) -> None:
    """Calls ``chosen(client, url, transport)`` whenever a client of this class has chosen. Once a class.

    httpx and requests choose a transport for each URL, and never tell the one that was not chosen.
    """
    choose = getattr(client, method, None)
    if choose is None or hasattr(choose, "is_watched"):
        return

    @functools.wraps(choose)
    def watched(self: Any, url: Any) -> Any:
        transport = choose(self, url)
        chosen(self, url, transport)
        return transport

    watched.is_watched = True  # type: ignore[attr-defined]
    setattr(client, method, watched)


def expect(throttle: object, wanted: type, other: type, here: str, there: str) -> None:
    """Raises ``TypeError`` for what is not the kind of throttle that this needs."""
    if isinstance(throttle, wanted):
        return
    got = type(throttle).__name__
    remedy = f"; a {got} belongs to {there}" if isinstance(throttle, other) else ""
    raise TypeError(f"{here}: want a {wanted.__name__}; got a {got}{remedy}")

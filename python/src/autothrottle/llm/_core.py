"""One call's way: its model and key → their budgets → a permit of all of them → the request → limits in its
headers → usage in its body, read in passing.

It is written once for tasks and for threads: with threads no await here ever suspends. The SDKs send again by
themselves what fails, so what is refused goes out as an answer with ``x-should-retry: false``. If an answer
is not read to its end, its tokens stay unknown. Bodies may be compressed on their way.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._base import BaseThrottle
from .._clock import NANOS
from .._exchange import WatchedBody
from .._hooks import ScopeBackoff
from .._outcome import NOTHING, Outcome, failure_of
from .._permit import Permit
from .._requests import current_options, wait_of
from ..errors import ConfigError, Problem, RetryAfterTooLongError, ThrottleError
from ._answer import DAY, Body, Refusal, limits_in, refusal_of
from ._budgets import NUMBERS, BudgetOptions, Budgets, Call, OwnScope
from ._request import VENDORS, Asked, asked_of

# Refused before it was run, so it may be sent again whatever it was.
_REFUSALS = (429, 503, 529)
_MOST = 10_000
_LIMIT_KEYS = (*NUMBERS, "sliding", "cached")


@dataclass
class LlmStats:
    """Sums of the calls so far."""

    sent: int = 0
    """Calls that were sent, each attempt."""
    refused: int = 0
    """Those that the server refused: 429, 503, 529."""
    estimated: int = 0
    """Answers that state no usage although it counts: what they took is an estimate."""
    cut: int = 0
    """Answers that were broken off: what was read of them is charged."""
    uncounted: int = 0
    """Calls with files or sound, each counted as 1,600 tokens."""


@dataclass
class Exchange:
    """One request, as a transport or a middleware has it."""

    url: str
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    options: Any
    send: Callable[[], Awaitable[Any]]
    """Sends it; gives the response of httpx."""
    read: Callable[[Any], Awaitable[bytes]]


class Core:
    """The calls of one throttle."""

    def __init__(self, throttle: BaseThrottle, options: Mapping[str, Any]) -> None:
        _check(options)
        self.stats = LlmStats()
        self._throttle: Any = throttle
        self._options = options
        self._concurrency: int = throttle._concurrency
        self._limits = [
            (re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")), limit)
            for pattern, limit in (options.get("limits") or {}).items()
        ]
        self._families: dict[str, Budgets] = {}
        self._prepared: dict[str, OwnScope] = {}

    async def call(self, what: Exchange) -> tuple[Any, bytes | None]:
        """The attempts of one call: its answer, and what it says where that is the last refusal."""
        throttle, options = self._throttle, self._options
        asked = asked_of(what.url, what.method, what.body, options.get("vendor"), options.get("count_tokens"))
        account = self._account(asked.host, what.headers)
        with throttle._scheduler.lock:
            budgets = self._budgets_of(asked, account)
            if asked.host not in throttle._typed:
                self._prepare(asked.host)
            self.stats.uncounted += asked.is_uncounted
        if what.headers.get("x-stainless-retry-count", "0") != "0":
            text = f"the SDK sends calls to {asked.host} again by itself: set max_retries=0"
            throttle._scheduler.warn("nested", text, asked.host, f"nested {asked.host}")
        own = current_options(what.options, 'extensions["throttle"]')
        retry = options.get("retry", {"limit": 5})
        most = retry["limit"] if retry and what.body is not None else 0
        longest = (retry or {}).get("max_retry_after", throttle._settings.max_retry_after)
        delay = 0.0
        for attempt in range(most + 1):
            with throttle._scheduler.lock:
                plan = budgets.plan(asked)
            scopes = {asked.host: 1.0, **plan.scopes}
            # A refused call is older than the calls that wait.
            priority = own.get("priority", 0) + (1 if attempt else 0)
            wait = wait_of(priority, 1, delay, own.get("max_wait"))._replace(is_taken=attempt > 0)
            permit = await throttle._enter(what.url, scopes, wait)
            with throttle._scheduler.lock:
                call = budgets.begin(asked, permit, plan)
                self.stats.sent += 1
            sent_at = throttle._clock.now()
            try:
                response = await what.send()
            except BaseException as error:
                self._failed(error, permit, call, budgets, asked.host)
                raise
            latency = (throttle._clock.now() - sent_at) / NANOS
            status, headers = response.status_code, response.headers
            limits = limits_in(headers, asked.vendor)
            is_refused = status in _REFUSALS
            if not is_refused and headers.get("x-should-retry") != "true":
                with throttle._scheduler.lock:
                    budgets.on_limits(call, limits)
                self._answered(what, response, latency, permit, call, budgets)
                return response, None
            self.stats.refused += is_refused
            try:
                content = await what.read(response)
            except Exception:
                content = b""
            refusal = refusal_of(status, headers, content, asked.vendor == "anthropic")
            is_limit = status == 429 and not refusal.is_final
            with throttle._scheduler.lock:
                budgets.on_limits(call, limits, (refusal.wait or 0) if is_limit else None)
                budgets.refused(call, refusal.kind if is_limit else None, refusal.wait)
            self._refused(status, latency, refusal, permit, budgets)
            if refusal.is_final or attempt == most:
                return response, content
            if refusal.wait is not None and refusal.wait > longest:
                raise RetryAfterTooLongError(refusal.wait, longest, response)
            delay = min(8.0, 0.5 * 2**attempt) if refusal.wait is None else refusal.wait
        raise AssertionError("each attempt ends")

    def _answered(
        self,
        what: Exchange,
        response: Any,
        latency: float,
        permit: Permit,
        call: Call,
        budgets: Budgets,
    ) -> None:
        """A good answer, or one that says what is wrong with the request."""
        status, lock = response.status_code, self._throttle._scheduler.lock
        outcome = Outcome(
            status, latency=latency, hints={}, scopes=permit.scopes[0] if status >= 500 else None
        )
        is_held = self._throttle._settings.is_held_by_body
        if not is_held:
            permit.report(outcome)
        asked = call.asked
        if asked.model is None or status >= 400:
            with lock:
                budgets.refused(call)
            if is_held:
                _watch(response, lambda _: None, lambda *_: permit.report(outcome))
            return
        encoding = response.headers.get("content-encoding", "").strip().lower()
        is_stream = "event-stream" in response.headers.get("content-type", "")
        body = Body(is_stream, budgets.is_cached_free, encoding)
        with lock:
            budgets.answered(call, is_stream)

        def hear(part: bytes) -> None:
            body.hear(part)
            if is_stream:
                with lock:
                    budgets.wrote(call, body.input, body.written)

        def end(error: BaseException | None, is_read: bool) -> None:
            permit.report(outcome)
            body.end()
            is_over = is_read and (not is_stream or asked.vendor == "gemini")
            is_whole = error is None and not body.is_broken and (body.is_whole or is_over)
            with lock:
                is_estimated = budgets.ended(call, body, is_whole)
            if not is_whole:
                self.stats.cut += 1
                # A reader that stops, or is cancelled, knows it.
                is_left = not is_read if error is None else failure_of(error) is None
                if body.is_broken or not is_left:
                    self._say("stream-cut", asked, "broke off, and what was read of it is charged")
            elif is_estimated and budgets.needs_usage:
                self.stats.estimated += 1
                remedy = 'stream_options={"include_usage": True} asks for it'
                self._say("usage-estimated", asked, f"reported no usage, so it is estimated ({remedy})")

        _watch(response, hear, end)

    def _say(self, code: str, asked: Asked, text: str) -> None:
        self._throttle._scheduler.warn(code, f"an answer of {asked.model} at {asked.host} {text}")

    def _refused(
        self,
        status: int,
        latency: float,
        refusal: Refusal,
        permit: Permit,
        budgets: Budgets,
    ) -> None:
        """The model's scopes know of it, or the host's where the whole server is overloaded."""
        is_final = refusal.is_final
        whose = budgets.scope() if status == 429 else permit.scopes[0]
        # A bucket that is known refills as we know: no pace has to be found.
        is_known = status == 429 and (is_final or budgets.is_known)
        means: ScopeBackoff = {"backoff": not is_known}
        if refusal.wait is not None and not is_final:
            # A longer hold would be a warning.
            means["delay"] = min(refusal.wait, DAY)
        permit.report(Outcome(status, latency=latency, scopes={whose: means}))

    def _failed(self, error: BaseException, permit: Permit, call: Call, budgets: Budgets, host: str) -> None:
        # A task that is cancelled says no word about the server.
        outcome = NOTHING if failure_of(error) is None else Outcome(error=error, scopes=host)
        permit.report(outcome)
        was_sent = not {"ConnectError", "ConnectTimeout"} & {kind.__name__ for kind in type(error).__mro__}
        with self._throttle._scheduler.lock:
            budgets.gone(call, was_sent)

    def _account(self, host: str, headers: Mapping[str, str]) -> str:
        account = self._options.get("account")
        named = account(headers) if callable(account) else account
        if named is None:
            named = _hash_of("".join(f"{headers.get(name, '')}\n" for name in _ACCOUNT))
        return f"llm:{host}/{named}"

    def _budgets_of(self, asked: Asked, account: str) -> Budgets:
        options, model = self._options, asked.model
        family, named, name = options.get("family"), "", account
        if model is not None:
            named = family_of(model, asked.vendor) if family is None else family(model)
            name = f"{account}/{named}"
        known = self._families.pop(name, None)
        if known is not None:
            self._families[name] = known  # It is the one that was used last.
            return known
        fits = () if model is None else (model, named)
        fit = (limit for pattern, limit in self._limits if any(map(pattern.fullmatch, fits)))
        limit: Mapping[str, Any] = next(fit, {})
        output = options.get("output")
        made = BudgetOptions(
            headroom=options.get("headroom", 0.98),
            is_max=None if output is None else output == "max",
            is_counted=options.get("count_tokens") is not None,
            concurrency=self._concurrency,
        )
        if len(self._families) >= _MOST:
            del self._families[next(iter(self._families))]
        vendor = None if model is None else asked.vendor
        budgets = self._families[name] = Budgets(self._throttle, name, vendor, limit, made)
        if model is None:
            budgets.configure(**self._pausing)
        return budgets

    @property
    def _pausing(self) -> dict[str, Any]:
        """An overloaded server wants a pause, not a pace of a request a second."""
        return {"delay": 0, "concurrency": self._concurrency, "backoff": {"min_delay": 0.1, "window": 10}}

    def _prepare(self, scope: str) -> None:
        """The models pace, and their host bears as many calls as all scopes."""
        if scope in self._prepared:
            self._prepared[scope].keep()
            return
        if len(self._prepared) >= _MOST:
            self._prepared.clear()
        own = self._prepared[scope] = OwnScope(self._throttle, scope)
        own.configure(**self._pausing)


def root_of(kind: type) -> str:
    """The library of a class."""
    return kind.__module__.partition(".")[0]


def _watch(
    response: Any, hear: Callable[[bytes], None], end: Callable[[BaseException | None, bool], None]
) -> None:
    """Has each part of a body heard, and its end: why it failed, and whether it was read. One that is here
    already, as with transports of tests, is read at once.
    """
    try:
        content = response.content
    except Exception:
        library = importlib.import_module(next(map(root_of, type(response).__mro__)))

        class Watched(WatchedBody, library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc, name-defined]
            """Its usage is read in passing."""

        response.stream = Watched(response.stream, end, hear)
        return
    # It is decoded: as a transport got it, it is not to be had any more.
    if "content-encoding" not in response.headers:
        hear(content)
    end(None, True)


_DATE = re.compile(r"-?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})\Z|-latest\Z")
_MINOR = re.compile(r"^(claude-[a-z]+-[0-9]+)[-.][0-9]+\Z")
_ACCOUNT = (
    *("authorization", "x-api-key", "api-key", "x-goog-api-key"),
    *("openai-organization", "openai-project"),
)


def _hash_of(text: str) -> str:
    """8 hexadecimal digits (FNV-1a), as npm's has them: a group has one scope for an account."""
    made = 0x811C9DC5
    for letter in text:
        made = (made ^ ord(letter)) * 16_777_619 & 0xFFFFFFFF
    return f"{made:08x}"


def family_of(model: str, vendor: str) -> str:
    """Dated names share the limits of the model; Anthropic's minor versions those of their class."""
    undated = _DATE.sub("", model)
    return _MINOR.sub(r"\1", undated) if vendor == "anthropic" else undated


def error_answer(error: ThrottleError, is_anthropic: bool) -> tuple[dict[str, str], bytes]:
    """An error of ours in the vendor's shape: raised, the SDKs would send the call again."""
    message = str(error)
    body: dict[str, Any] = {
        "error": {"type": "autothrottle", "message": message, "param": None, "code": error.code}
    }
    if is_anthropic:
        body = {"type": "error", "error": {"type": "rate_limit_error", "message": message}}
    headers = {
        "content-type": "application/json",
        "x-should-retry": "false",
        "x-autothrottle-error": error.code,
    }
    return headers, json.dumps(body).encode()


_KEYS = ("vendor", "limits", "account", "family", "count_tokens", "output", "headroom", "retry")


def _check(options: Mapping[str, Any]) -> None:
    """Raises ``ConfigError`` with every problem."""
    problems = [
        Problem(f"llm.{key}", f"one of {', '.join(_KEYS)}", f"{value!r:.60}")
        for key, value in options.items()
        if key not in _KEYS
    ]

    def want(path: str, is_right: bool, wanted: str, got: object) -> None:
        if not is_right:
            problems.append(Problem(f"llm.{path}", wanted, f"{got!r:.60}"))

    get = options.get
    vendor, output, retry = get("vendor"), get("output"), get("retry", {"limit": 5})
    want("vendor", vendor is None or vendor in VENDORS, f"one of {', '.join(VENDORS)}", vendor)
    account = get("account")
    want(
        "account",
        account is None or isinstance(account, str) or callable(account),
        "a text or a function",
        account,
    )
    for key in ("family", "count_tokens"):
        want(key, get(key) is None or callable(get(key)), "a function", get(key))
    want("output", output in (None, "learned", "max"), '"learned" or "max"', output)
    headroom = get("headroom", 0.98)
    want("headroom", _is_positive(headroom) and headroom <= 1, "above 0 to 1", headroom)
    typed = retry if isinstance(retry, Mapping) else {}
    want(
        "retry",
        retry is False or "limit" in typed,
        'False or {"limit": n, "max_retry_after": seconds}',
        retry,
    )
    for key, value in typed.items():
        if key == "limit":
            is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            want("retry.limit", is_whole, "a whole number from 0", value)
        elif key == "max_retry_after":
            want("retry.max_retry_after", _is_span(value), "seconds from 0", value)
        else:
            want(f"retry.{key}", False, "one of limit, max_retry_after", value)
    limits = get("limits")
    want("limits", limits is None or isinstance(limits, Mapping), "a mapping of model to limits", limits)
    for model, each in limits.items() if isinstance(limits, Mapping) else ():
        path = f"limits.{json.dumps(str(model))}"
        if not isinstance(each, Mapping):
            want(path, False, "a mapping", each)
            continue
        for key, value in each.items():
            at = f"{path}.{key}"
            if key == "sliding":
                want(at, isinstance(value, bool), "True or False", value)
            elif key == "cached":
                want(at, value in ("free", "counted"), '"free" or "counted"', value)
            elif key in NUMBERS:
                want(at, _is_positive(value), "a number above 0", value)
            else:
                want(at, False, f"one of {', '.join(_LIMIT_KEYS)}", value)
    if problems:
        raise ConfigError(problems)


def _is_span(value: object) -> bool:
    return value == 0 or _is_positive(value)


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 < value <= 1e9  # type: ignore[operator, arg-type]

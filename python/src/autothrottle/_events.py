"""Events of a throttle, ``throttle.on("backoff", print)``, and what the engine tells, passed on: to a scope's
manager, to listeners, to the log.

If a manager raises, all others hear first. The engine tells only what has a listener; without one it is asked
for news at most once a second.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, overload

from ._clock import NANOS, Clock
from ._convert import in_seconds, python_path
from ._managers import ManagedAnswer
from ._native import Engine
from ._records import FINDINGS, WarningCode
from .errors import ScopeDownError, StalledError, ThrottleWarning

if TYPE_CHECKING:
    from ._permit import Waiting
    from ._stats import SharedStats

logger = logging.getLogger("autothrottle")

# written by `cargo xtask write`: kinds of events

EventKind: TypeAlias = Literal[
    "queued",
    "send",
    "settle",
    "cancel",
    "backoff",
    "recover",
    "delay",
    "hold",
    "stall",
    "warning",
    "shared",
]
RequestKind: TypeAlias = Literal["queued", "send"]
SettleKind: TypeAlias = Literal["settle"]
CancelKind: TypeAlias = Literal["cancel"]
ScopeKind: TypeAlias = Literal["backoff", "recover", "delay", "hold"]
StallKind: TypeAlias = Literal["stall"]
WarningKind: TypeAlias = Literal["warning"]
SharedKind: TypeAlias = Literal["shared"]
# end of what is written
KINDS: tuple[EventKind, ...] = get_args(EventKind)
PACES: tuple[ScopeKind, ...] = get_args(ScopeKind)


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """Something happened to a request: ``queued`` or ``send``."""

    kind: EventKind
    id: int
    """The same number in all events of one request, its retries among them: 1 for the first, 2, 3, …"""
    target: object
    """The target of the request: a URL, or the object that you passed."""
    scopes: tuple[str, ...]
    """Its scopes."""
    at: float
    """When it happened, in seconds of the throttle's clock."""


@dataclass(frozen=True, slots=True)
class SettleEvent(RequestEvent):
    """A request ended."""

    status: int | None
    """The status of its response; ``None`` without one."""
    error: BaseException | None
    """Why there was no response."""
    latency: float | None
    """From send to response headers in seconds, if there was a response."""


@dataclass(frozen=True, slots=True)
class CancelEvent(RequestEvent):
    """A request stopped waiting: it was never sent."""

    error: BaseException
    """Why: a ``CancelledError``, a ``ThrottleTimeoutError``, a ``ClosedError`` and so on."""


@dataclass(frozen=True, slots=True)
class StallEvent:
    """A scope has answered only badly for ``stall_after``. Once, until it answers well again."""

    kind: EventKind
    scope: str
    """The scope."""
    seconds: float
    """For how long, in seconds."""
    fail: Callable[..., None] = field(repr=False)
    """Rejects what waits for the scope: with a ``StalledError``, or with an error that you give."""


# written by `cargo xtask write`: classes of events


@dataclass(frozen=True, slots=True)
class ScopeEvent:
    """A scope's pace changed: its delay, backoff step or hold."""

    kind: EventKind
    scope: str
    """The scope."""
    delay: float
    """Its delay in seconds: its own, or the longer one of backoff."""
    step: int
    """Steps of backoff in force."""
    hold_until: float | None
    """Until when it is held, in seconds of the throttle's clock."""
    asked: float | None
    """Of a ``hold`` that was cut to ``backoff.max_hold``: what the server asked for, in seconds."""


@dataclass(frozen=True, slots=True)
class WarningEvent:
    """The throttle does something else than you typed, or than it promises. Each comes once."""

    kind: EventKind
    code: WarningCode
    """Which warning it is. ``docs/events.md`` says what each means and what to do."""
    message: str
    """A sentence about the event, and the advice."""
    scope: str | None
    """The scope in which it was noticed, if it is about one."""


@dataclass(frozen=True, slots=True)
class SharedEvent:
    """Another process decides for the group, others are in it, or the way to them broke or is open again."""

    kind: EventKind
    shared: SharedStats
    """The group, as this process sees it from now on."""


# end of what is written

T = TypeVar("T")
# written by `cargo xtask write`: listeners
__all__ = [
    "CancelEvent",
    "Event",
    "RequestEvent",
    "ScopeEvent",
    "SettleEvent",
    "SharedEvent",
    "StallEvent",
    "WarningEvent",
]

Event: TypeAlias = (
    RequestEvent | SettleEvent | CancelEvent | ScopeEvent | StallEvent | WarningEvent | SharedEvent
)
OnRequest = TypeVar("OnRequest", bound=Callable[[RequestEvent], object])
OnSettle = TypeVar("OnSettle", bound=Callable[[SettleEvent], object])
OnCancel = TypeVar("OnCancel", bound=Callable[[CancelEvent], object])
OnScope = TypeVar("OnScope", bound=Callable[[ScopeEvent], object])
OnStall = TypeVar("OnStall", bound=Callable[[StallEvent], object])
OnWarning = TypeVar("OnWarning", bound=Callable[[WarningEvent], object])
OnShared = TypeVar("OnShared", bound=Callable[[SharedEvent], object])
# end of what is written

_MOST_WARNED = 10_000
"""More scopes than this with a warning each are forgotten, and may be told again."""


class Events:
    """The listeners, by kind."""

    has_lines = True
    """Whether warnings without a listener are written."""

    def __init__(self) -> None:
        self.changed: Callable[[], None] = _nothing
        """The callback for an added or removed listener."""
        self._warned: set[str] = set()
        self._listeners: dict[EventKind, list[Callable[[Any], object]]] = {kind: [] for kind in KINDS}
        self.queued = self._listeners["queued"]
        self.send = self._listeners["send"]
        self.settle = self._listeners["settle"]
        self.cancel = self._listeners["cancel"]
        self._paces = [self._listeners[kind] for kind in PACES]
        self.waits: list[Callable[[Waiting], object]] = []
        """They hear of each request that begins to wait: what leaves at once is free of cost to them."""
        self.ends: list[Callable[[str, int | None, BaseException | None], object]] = []
        """Outcome of each request that ended, without an event: its first scope, status and error."""

    @property
    def is_stall_observed(self) -> bool:
        """Whether stalls have a listener."""
        return bool(self._listeners["stall"])

    @property
    def are_scopes_observed(self) -> bool:
        """Whether changes of scopes have a listener."""
        return any(self._paces)

    # written by `cargo xtask write`: forms of a listener
    @overload
    def on(self, kind: RequestKind, listener: Callable[[RequestEvent], T]) -> Callable[[RequestEvent], T]: ...
    @overload
    def on(self, kind: SettleKind, listener: Callable[[SettleEvent], T]) -> Callable[[SettleEvent], T]: ...
    @overload
    def on(self, kind: CancelKind, listener: Callable[[CancelEvent], T]) -> Callable[[CancelEvent], T]: ...
    @overload
    def on(self, kind: ScopeKind, listener: Callable[[ScopeEvent], T]) -> Callable[[ScopeEvent], T]: ...
    @overload
    def on(self, kind: StallKind, listener: Callable[[StallEvent], T]) -> Callable[[StallEvent], T]: ...
    @overload
    def on(self, kind: WarningKind, listener: Callable[[WarningEvent], T]) -> Callable[[WarningEvent], T]: ...
    @overload
    def on(self, kind: SharedKind, listener: Callable[[SharedEvent], T]) -> Callable[[SharedEvent], T]: ...
    @overload
    def on(self, kind: RequestKind) -> Callable[[OnRequest], OnRequest]: ...
    @overload
    def on(self, kind: SettleKind) -> Callable[[OnSettle], OnSettle]: ...
    @overload
    def on(self, kind: CancelKind) -> Callable[[OnCancel], OnCancel]: ...
    @overload
    def on(self, kind: ScopeKind) -> Callable[[OnScope], OnScope]: ...
    @overload
    def on(self, kind: StallKind) -> Callable[[OnStall], OnStall]: ...
    @overload
    def on(self, kind: WarningKind) -> Callable[[OnWarning], OnWarning]: ...
    @overload
    def on(self, kind: SharedKind) -> Callable[[OnShared], OnShared]: ...
    # end of what is written
    def on(self, kind: EventKind, listener: Any = None) -> Any:
        """Calls ``listener`` for each event of a kind; also a decorator. A listener is kept once."""
        if listener is None:
            self._of("on", kind)
            return lambda each: self._listen(kind, each)
        return self._listen(kind, listener)

    def off(self, kind: EventKind, listener: Callable[[Any], object]) -> None:
        """Stops calling a listener."""
        listeners = self._of("off", kind)
        if listener in listeners:
            listeners.remove(listener)
            self.changed()

    def once(self, code: str, message: str, scope: str | None, about: str | None) -> None:
        """Tells a warning, once for each code and scope, or what else it is ``about``."""
        key = f"{code} {about or scope or ''}"
        if key in self._warned:
            return
        if len(self._warned) >= _MOST_WARNED:
            self._warned.clear()
        self._warned.add(key)
        self.warn(code, message, scope)

    def warn(self, code: Any, message: str, scope: str | None = None) -> None:
        """Tells a warning: to listeners and the log, and to ``warnings`` where there is neither."""
        if self.has_lines:
            if logger.hasHandlers():
                logger.warning("%s", message)
            elif not self._listeners["warning"]:
                try:
                    warnings.warn(message, ThrottleWarning, stacklevel=3)
                except ThrottleWarning:  # by `-W error`: raised here it would leave a slot behind
                    logger.warning("%s", message)
        self.emit(WarningEvent("warning", code, message, scope))

    def emit(self, event: Event) -> None:
        """Tells the listeners. If one raises, the others still hear."""
        for listener in tuple(self._listeners[event.kind]):
            try:
                listener(event)
            except Exception:
                logger.exception("a listener of %r failed", event.kind)

    def _listen(self, kind: EventKind, listener: Any) -> Any:
        listeners = self._of("on", kind)
        if not callable(listener):
            raise TypeError(f"on: want a function; got {listener!r:.60}")
        if inspect.iscoroutinefunction(listener):
            remedy = "start a task in it: asyncio.get_running_loop().create_task(…)"
            raise TypeError(f"on: want a plain function; got an async one, which is never awaited ({remedy})")
        if listener not in listeners:
            listeners.append(listener)
            self.changed()
        return listener

    def _of(self, method: str, kind: EventKind) -> list[Callable[[Any], object]]:
        if kind not in KINDS:
            near = get_close_matches(str(kind).lower(), KINDS, 1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{method}: want one of {', '.join(KINDS)}; got {kind!r:.60}{meant}")
        return self._listeners[kind]


def _nothing() -> None:
    """There is no listener yet."""


class Notices:
    """Between the engine and those who listen."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        events: Events,
        is_managed: bool,
        is_debug: bool,
        fail_all: Callable[[BaseException, str], None],
        split: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._events = events
        self._is_managed = is_managed
        self._is_debug = is_debug
        self._fail_all = fail_all
        self._split = split
        self._level: Literal["nothing", "changes", "answers"] = "nothing"
        self._asked_at: int | None = None
        self.watch()

    def watch(self) -> None:
        """Asks the engine to tell as much as has listeners."""
        level: Literal["nothing", "changes", "answers"] = "nothing"
        if self._is_debug:
            level = "answers"
        elif self._events.are_scopes_observed:
            level = "changes"
        if level != self._level:
            self._engine.watch(level)
            self._level = level

    def after_answer(
        self,
        status: int | None,
        error: BaseException | None,
        latency: int | None,
        answered: Callable[[bool, ManagedAnswer], None],
        is_news: bool,
    ) -> None:
        """Whether an answer brought facts that the engine must read before others leave."""
        is_urgent = is_news or self._level != "nothing" or self._is_managed or error is not None
        if is_urgent and self._engine.has_notices:
            self._pass(status, error, latency, answered)

    def received(self) -> None:
        """Notices from the engine of another process."""
        if self._engine.has_notices:
            self._pass(None, None, None, None)

    def at_rest(self, now: int) -> None:
        """Notices that the engine makes by itself: settings without effect, scopes that only refuse."""
        if self._asked_at is not None and 0 <= now - self._asked_at < NANOS:
            return
        self._asked_at = now
        if self._engine.has_notices:
            self._pass(None, None, None, None)

    def _pass(
        self,
        status: int | None,
        error: BaseException | None,
        latency: int | None,
        answered: Callable[[bool, ManagedAnswer], None] | None,
    ) -> None:
        failure: Exception | None = None
        notices: list[Any] = self._engine.take_notices()
        for notice in notices:
            kind, scope = notice.kind, notice.scope
            if kind == "answer":
                took = latency if notice.latency is None else notice.latency
                if self._is_debug and took is not None:
                    logger.debug("%s", debug_line(notice, took))
                if answered is not None:
                    seconds = None if latency is None else latency / NANOS
                    at = self._clock.now() / NANOS
                    try:
                        answered(notice.is_bad, ManagedAnswer(scope, at, status, error, seconds))
                    except Exception as raised:
                        failure = failure or raised
            elif kind == "stall":
                self._stalled(scope, notice.span / NANOS)
            elif kind == "budgets":
                self._split(scope)
            elif kind == "no-status":
                what = f"the last requests of {scope} ended without a status, so a 429 has no effect"
                remedy = "return the response, or tell it by permit.settle(response)"
                self._events.once(kind, f"{what}: {remedy}", scope, None)
            elif kind == "down":
                self._fail_all(ScopeDownError(scope, notice.span / NANOS), scope)
            elif kind in FINDINGS:
                what = f"{python_path(notice.path)} {effect_of(kind, scope)}"
                self._events.warn(kind, f"{what}: {in_seconds(notice.why)}", scope or None)
            else:
                hold, asked = notice.hold_until, notice.asked
                self._events.emit(
                    ScopeEvent(
                        kind,
                        scope,
                        notice.delay / NANOS,
                        notice.step,
                        None if hold is None else hold / NANOS,
                        None if asked is None else asked / NANOS,
                    )
                )
        if failure is not None:
            raise failure

    def _stalled(self, scope: str, seconds: float) -> None:
        def fail(error: BaseException | None = None) -> None:
            self._fail_all(StalledError(scope, seconds) if error is None else error, scope)

        if not self._events.is_stall_observed:
            message = f"{scope} has answered only badly for {round(seconds)} s"
            self._events.warn("stall", message, scope)
        self._events.emit(StallEvent("stall", scope, seconds, fail))


def effect_of(kind: str, scope: str) -> str:
    """The effect of a setting on a scope, in words; of all scopes where none is named."""
    does, does_to_all = FINDINGS[kind]
    return f"{does} {scope}" if scope else does_to_all


def debug_line(notice: Any, latency: int) -> str:
    """Scrapy's line of AUTOTHROTTLE_DEBUG; the size is not known when headers arrive."""
    delay, before = round(notice.delay / 1e6), round(notice.delay_before / 1e6)
    return (
        f"slot: {notice.scope} | conc:{notice.in_flight:2} | delay:{delay:5} ms ({delay - before:+}) | "
        f"latency:{round(latency / 1e6):5} ms"
    )

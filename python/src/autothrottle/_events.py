"""What a throttle tells: ``throttle.on("backoff", print)``.

The trap is to pay for what nobody hears: an event is made only while somebody listens to its kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

logger = logging.getLogger("autothrottle")

EventKind: TypeAlias = Literal[
    "queued", "send", "settle", "backoff", "recover", "delay", "hold", "stall", "warning"
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """Something happened to a request: ``queued`` or ``send``."""

    kind: EventKind
    id: int
    """The same number in all events of one request, its retries among them."""
    target: object
    """What was asked for."""
    scopes: tuple[str, ...]
    """Its scopes."""
    at: float
    """When, in seconds of the throttle's clock."""


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
class ScopeEvent:
    """A scope's pace changed: ``backoff``, ``recover``, ``delay`` or ``hold``."""

    kind: EventKind
    scope: str
    """The scope."""
    delay: float
    """Its delay in seconds: its own, or the longer one of backoff."""
    step: int
    """Steps of backoff in force."""
    hold_until: float | None
    """Until when it is held, in seconds of the throttle's clock."""
    asked: float | None = None
    """Of a hold that was cut to ``backoff.max_delay``: what the server asked for, in seconds."""


@dataclass(frozen=True, slots=True)
class StallEvent:
    """A scope has answered only badly for ``stall_after``. Once, until it answers well again."""

    kind: EventKind
    scope: str
    """The scope."""
    seconds: float
    """For how long."""
    fail: Callable[..., None] = field(repr=False)
    """Fails everything that waits for the scope, with a ``StalledError`` unless you give another."""


@dataclass(frozen=True, slots=True)
class WarningEvent:
    """Something that is worth knowing; each once. The logger ``autothrottle`` is told, too."""

    kind: EventKind
    code: Literal[
        "many-waiting",
        "no-effect",
        "rampup-bound",
        "robots-overruled",
        "permit-lost",
        "shared-options",
        "shared-version",
        "shared-offline",
        "shared-online",
    ]
    """Which warning."""
    message: str
    """In words."""
    scope: str | None
    """The scope in which it was noticed, if it is about one."""


Event: TypeAlias = RequestEvent | SettleEvent | ScopeEvent | StallEvent | WarningEvent
Listener = TypeVar("Listener", bound=Callable[[Any], object])


class Events:
    """Who listens to what."""

    def __init__(self) -> None:
        self._listeners: dict[EventKind, list[Callable[[Any], object]]] = {kind: [] for kind in KINDS}
        self.queued = self._listeners["queued"]
        self.send = self._listeners["send"]
        self.settle = self._listeners["settle"]

    @property
    def are_scopes_heard(self) -> bool:
        """Whether changes of scopes are heard."""
        heard = self._listeners
        return bool(heard["backoff"] or heard["recover"] or heard["delay"] or heard["hold"])

    @overload
    def on(self, kind: EventKind, listener: Listener) -> Listener: ...
    @overload
    def on(self, kind: EventKind) -> Callable[[Listener], Listener]: ...
    def on(self, kind: EventKind, listener: Any = None) -> Any:
        """Calls ``listener`` for each event of a kind; also a decorator. A listener is kept once."""
        if listener is None:
            return lambda each: self.on(kind, each)
        listeners = self._of(kind)
        if listener not in listeners:
            listeners.append(listener)
        return listener

    def off(self, kind: EventKind, listener: Callable[[Any], object]) -> None:
        """Stops calling it."""
        listeners = self._of(kind)
        if listener in listeners:
            listeners.remove(listener)

    def tell(self, event: Event) -> None:
        """Tells whoever listens. One that raises keeps nobody else from hearing."""
        for listener in tuple(self._listeners[event.kind]):
            try:
                listener(event)
            except Exception:
                logger.exception("a listener of %r failed", event.kind)

    def _of(self, kind: EventKind) -> list[Callable[[Any], object]]:
        if kind not in self._listeners:
            raise ValueError(f"want one of {', '.join(KINDS)}; got {kind!r}")
        return self._listeners[kind]

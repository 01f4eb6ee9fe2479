"""The engine's arguments and answers, beside those of ``_records.py``. Instants and spans are whole
nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from ._records import Reason, SettledKind

Text: TypeAlias = str | bytes
Headers: TypeAlias = (
    Mapping[str, Text | Sequence[Text]]
    | Mapping[bytes, Text | Sequence[Text]]
    | Iterable[tuple[Text, Text | Sequence[Text]]]
)
"""Header fields: a mapping, or pairs of name and value. Bytes are read as latin-1."""


class HeaderMap(TypedDict, total=False):
    """How to read the fields of a server with a dialect of its own."""

    retryAfter: str
    """The field that says what ``Retry-After`` says."""
    limit: str
    """The field with the units per window."""
    remaining: str
    """The field with the units left."""
    reset: str
    """The field that says when more is there."""
    resetUnit: Literal["s", "ms"]
    """The unit of plain numbers in the reset field."""
    retryAfterUnit: Literal["s", "ms"]
    """The unit of plain numbers in ``Retry-After``."""


class Decision(NamedTuple):
    """The step to do now."""

    send: list[int]
    """Tickets to send now, in this order."""
    wake: int | None
    """When to poll again, later than now. ``None``: time alone changes no state."""
    reason: Reason | None
    """Why the next request waits. ``None``: no request waits."""
    scope: int | None
    """The scope that says so. ``None``: the whole throttle, or the request itself."""


class Settled(NamedTuple):
    """The end of a request that was settled."""

    outcome: SettledKind
    asked: int | None
    """How long the server asked to wait, as it said it; of what is ``not-replayable``, how long one in its
    place has to wait."""


class Peek(NamedTuple):
    """When a request could be sent as things stand."""

    at: int | None
    """``None`` if that depends on an answer or a ``resume``."""
    reason: Reason | None
    """Why not now."""
    scope: int | None
    """Which scope says so. ``None``: the whole throttle."""


@dataclass(frozen=True)
class ScopeOutcome:
    """The meaning of an answer for one scope, where that is not the same for all of its request."""

    scope: int
    """The scope."""
    ignored: bool = False
    """The answer is of no concern to it: its slots come back, and no pace changes."""
    backoff: bool | None = None
    """Whether it is bad. ``None``: as the status says."""
    delay: int | None = None
    """Not to send for so long. With this or ``remaining`` the headers are not heard here."""
    cost: float | None = None
    """The real cost in this scope."""
    remaining: float | None = None
    """Units left of the server's quota."""
    reset: int | None = None
    """When all of it is there again."""


@dataclass(frozen=True)
class Hints:
    """Hints that were not in headers; they take their place."""

    delay: int | None = None
    """Not to send for so long."""
    remaining: float | None = None
    """Units left of the server's quota."""
    reset: int | None = None
    """When all of it is there again."""
    limit: float | None = None
    """Units per window."""
    window: int | None = None
    """The window."""


@dataclass(frozen=True)
class QuotaHint:
    """One quota of a server's."""

    policy: str | None = None
    """Its name."""
    limit: int | None = None
    """Units per window."""
    remaining: int | None = None
    """Units left; ``None`` is unknown, not 0."""
    used: int | None = None
    """Units used."""
    reset: int | None = None
    """When more is there."""
    window: int | None = None
    """The window."""
    unit: str | None = None
    """The unit that is counted, if not requests."""
    partition_key: str | None = None
    """The partition of the quota that the request is in."""
    budget: str | None = None
    """The budget that it is of, where that is not the host's: a resource, a bucket, a policy."""


@dataclass(frozen=True)
class HintsRead:
    """The limits in a response."""

    delay: int | None = None
    """How long not to send, exactly as the server says it."""
    source: str | None = None
    """Which field said so."""
    quotas: list[QuotaHint] = field(default_factory=list)
    """Every quota. The first one governs: exhausted ones come first, then the next to reset."""
    poll_after: int | None = None
    """On a 202: when to ask again for what is being made."""
    rate: float | None = None
    """A steady rate in requests per second."""
    applies_to: Literal["redirect", "request"] | None = None
    """The target of the delay, if not the whole host."""
    scope: str | None = None
    """The scope that shares the limit, in Discord's words."""
    bucket: str | None = None
    """The bucket of the route, in Discord's words."""
    is_whole: bool = False
    """Whether the delay is in whole seconds, of which many servers cut the rest off."""
    is_ignored: bool = False
    """Fields about limits were there, but the response came from a cache."""
    is_cached: bool = False
    """The response came from a cache: its latency is not the server's."""

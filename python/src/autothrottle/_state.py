"""What the engine answers with, as Python types. Instants and spans are whole nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypedDict

Reason = Literal[
    "paused",
    "global",
    "concurrency",
    "delay",
    "backoff",
    "crawl-delay",
    "slot-delay",
    "hold",
    "quota",
    "request-delay",
    "rate",
]
"""Why a request waits."""

SettledKind = Literal["unknown", "over", "again", "too-long"]
Failure = Literal["connection", "timeout"]
Robots = Literal["applied", "overruled", "ignored"]
Watching = Literal["nothing", "changes", "answers"]
NoticeKind = Literal[
    "backoff",
    "recover",
    "delay",
    "hold",
    "answer",
    "no-effect",
    "rampup-bound",
    "hold-cut",
    "stall",
    "down",
    "budgets",
]


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
    """What to do now."""

    send: list[int]
    """Tickets to send now, in this order."""
    wake: int | None
    """When to poll again, later than now. ``None``: time alone changes no state."""
    reason: Reason | None
    """Why the next request waits. ``None``: no request waits."""
    scope: int | None
    """The scope that says so. ``None``: the whole throttle, or the request itself."""


class Settled(NamedTuple):
    """What became of a request that was settled."""

    outcome: SettledKind
    """``over``; to be sent ``again``, its ticket waits anew; over as the server asks for a wait that is
    ``too-long`` (``retry.maxRetryAfter``); or the ticket was ``unknown``, and no state has changed."""
    asked: int | None
    """How long the server asked to wait, as it said it."""


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
    """What an answer means for one scope, where that is not the same for all of its request."""

    scope: int
    """The scope."""
    ignored: bool = False
    """The answer is of no concern to it: its slots come back, and no pace changes."""
    backoff: bool | None = None
    """Whether it is bad. ``None``: as the status says."""
    delay: int | None = None
    """Not to send for so long. With this or ``remaining`` the headers are not heard here."""
    cost: float | None = None
    """What it really cost here."""
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
class BudgetStats:
    """A server's budget at one instant: the fields of ``autothrottle.BudgetStats``, times in nanoseconds."""

    in_flight: int
    waiting: int
    quota_left: float | None
    recovers_at: int | None


@dataclass(frozen=True)
class ScopeStats:
    """One scope at one instant: the fields of ``autothrottle.ScopeStats``, times in nanoseconds."""

    delay: int
    backoff: int
    backoff_step: int
    slots: int
    in_flight: int
    waiting: int
    hold_until: int | None
    quota_left: float | None
    reason: Reason | None
    paused: bool
    rate: float | None
    concurrency: float
    bound_by: dict[str, float]
    without_effect: str | None
    latency: int | None = None
    recovers_at: int | None = None
    budgets: dict[str, BudgetStats] = field(default_factory=dict)


@dataclass(frozen=True)
class SharedStats:
    """A group of processes that share a limit: the fields of ``throttle.stats().shared``, in nanoseconds."""

    writer: str | None
    is_writer: bool
    epoch: int
    members: int | None
    lead: int
    round_trip: int | None
    last_heard_at: int | None
    offline_since: int | None
    debt: int


@dataclass(frozen=True)
class Stats:
    """Everything at one instant: the fields of ``autothrottle.Stats``, times in nanoseconds."""

    waiting: int
    in_flight: int
    sent: int
    settled: int
    cancelled: int
    paused: bool
    scopes: dict[str, ScopeStats]
    age: int | None = None
    shared: SharedStats | None = None


@dataclass(frozen=True)
class Notice:
    """Something that people or drivers should know. What a kind does not tell is ``None``."""

    kind: NoticeKind
    """``backoff``, ``recover``, ``delay``, ``hold``, ``answer``: what an answer did. ``no-effect``: a setting
    has had none. ``rampup-bound``: a setting is what binds a scope that ramps. ``hold-cut``: a server asked
    for a longer wait than ``backoff.max_hold``. ``stall``: a scope has only answered badly for long.
    ``budgets``: answers of a scope name several budgets, so the driver names routes from here on."""
    scope: str
    """The scope's name."""
    delay: int | None = None
    """Its delay before jitter."""
    step: int | None = None
    """Its steps of backoff in force."""
    hold_until: int | None = None
    """The end of a hold."""
    asked: int | None = None
    """``hold``: what the server asked for, where ``backoff.maxHold`` cut it."""
    is_bad: bool | None = None
    """``answer``: whether it was bad."""
    delay_before: int | None = None
    """``answer``: the delay before it."""
    in_flight: int | None = None
    """``answer``: what is in flight after it."""
    setting: str | None = None
    """``no-effect``, ``rampup-bound``, ``hold-cut``: the setting's name."""
    path: str | None = None
    """The same: where it is set."""
    why: str | None = None
    """The same: what was seen."""
    span: int | None = None
    """``stall``: for how long."""
    latency: int | None = None
    """``answer`` of a limit that processes share: how long it took, where that is known."""


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
    """What is counted, if not requests."""
    partition_key: str | None = None
    """The partition of the quota that the request is in."""
    budget: str | None = None
    """The budget that it is of, where that is not the host's: a resource, a bucket, a policy."""


@dataclass(frozen=True)
class HintsRead:
    """What a response says about limits."""

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
    """What the delay is for, if not for the whole host."""
    scope: str | None = None
    """What the limit is shared with, in Discord's words."""
    bucket: str | None = None
    """The bucket of the route, in Discord's words."""
    is_whole: bool = False
    """Whether the delay is in whole seconds, of which many servers cut the rest off."""
    is_ignored: bool = False
    """Fields about limits were there, but the response came from a cache."""
    is_cached: bool = False
    """The response came from a cache: its latency is not the server's."""

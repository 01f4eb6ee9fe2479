"""The engine's output. ``cargo xtask write`` writes it from ``src/record.rs``: change it there.

Instants and spans are whole nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

TIMES = {
    "age",
    "backoff",
    "debt",
    "delay",
    "hold_until",
    "last_heard_at",
    "latency",
    "lead",
    "offline_since",
    "recovers_at",
    "round_trip",
}
"""The fields that are instants or spans."""

Reason: TypeAlias = Literal[
    "paused",
    "max-in-flight",
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
"""Why a request waits.

* ``paused``: The scope or the throttle is paused.
* ``max-in-flight``: ``maxInFlight`` requests are in flight, all scopes together.
* ``concurrency``: All slots of the scope are taken.
* ``delay``: The scope's delay since its last send.
* ``backoff``: The longer delay after bad answers.
* ``crawl-delay``: A delay by robots.txt.
* ``slot-delay``: The delay of the slot that is next.
* ``hold``: A hold: ``scope.hold``, or the server's ``Retry-After``.
* ``quota``: Not enough of a quota is left, of ours or of the server's.
* ``request-delay``: The request's own delay.
* ``rate``: The scope's rate: the next of its evenly spaced sends.
"""

SettledKind: TypeAlias = Literal[
    "unknown",
    "over",
    "again",
    "too-long",
    "not-replayable",
]
"""The end of a request that was settled.

* ``unknown``: The ticket was unknown or not in flight; no state has changed.
* ``over``: It is over.
* ``again``: It is to be sent again: the same ticket waits anew and keeps its age.
* ``too-long``: It is over, for the server asks for a longer wait than ``retry.maxRetryAfter``.
* ``not-replayable``: It is over although it should be sent again, for it cannot be sent twice.
"""

Robots: TypeAlias = Literal[
    "applied",
    "overruled",
    "ignored",
]
"""The effect of a robots.txt.

* ``applied``: The scope keeps to it.
* ``overruled``: The user gave this very scope another pace, which it keeps.
* ``ignored``: The settings ignore robots.txt, or it asked for no pace and no setting changed.
"""

Watching: TypeAlias = Literal[
    "nothing",
    "changes",
    "answers",
]
"""How much notices say of answers.

* ``nothing``: No word, at no cost.
* ``changes``: Changes by answers: a step of backoff, a delay, a hold.
* ``answers``: Every answer as well.
"""

Failure: TypeAlias = Literal[
    "connection",
    "timeout",
]
"""Why no response came.

* ``connection``: The connection failed.
* ``timeout``: It took too long.
"""


@dataclass(frozen=True)
class BudgetStats:
    """One budget of a server's at one instant. The fields of ``throttle.stats()``, times in nanoseconds."""

    in_flight: int
    waiting: int
    quota_left: float | None = None
    recovers_at: int | None = None


@dataclass(frozen=True)
class ScopeStats:
    """One scope at one instant. The fields of ``throttle.stats()``, times in nanoseconds."""

    delay: int
    backoff: int
    slots: int
    in_flight: int
    waiting: int
    backoff_step: int
    paused: bool
    concurrency: float
    bound_by: dict[str, float]
    hold_until: int | None = None
    quota_left: float | None = None
    reason: Reason | None = None
    recovers_at: int | None = None
    budgets: dict[str, BudgetStats] = field(default_factory=dict)
    rate: float | None = None
    latency: int | None = None
    without_effect: str | None = None


@dataclass(frozen=True)
class SharedStats:
    """A group of processes that share a limit, as one of them sees it. The fields of ``throttle.stats()``,
    times in nanoseconds.
    """

    is_writer: bool
    epoch: int
    lead: int
    debt: int
    writer: str | None = None
    members: int | None = None
    round_trip: int | None = None
    last_heard_at: int | None = None
    offline_since: int | None = None


@dataclass(frozen=True)
class Stats:
    """Everything at one instant. The fields of ``throttle.stats()``, times in nanoseconds."""

    waiting: int
    in_flight: int
    max_in_flight: int
    sent: int
    settled: int
    cancelled: int
    paused: bool
    scopes: dict[str, ScopeStats]
    age: int | None = None
    shared: SharedStats | None = None


NoticeKind: TypeAlias = Literal[
    "backoff",
    "recover",
    "delay",
    "hold",
    "answer",
    "no-effect",
    "rampup-bound",
    "wait-capped",
    "stall",
    "budgets",
    "no-status",
    "down",
]
"""The kinds of a notice.

* ``backoff``: A step of backoff was taken. With rampup, which takes none: there was a refusal.
* ``recover``: A step back was taken.
* ``delay``: The delay is another one.
* ``hold``: No request leaves for longer than before.
* ``answer``: An answer came. Always told of scopes that have a ``manager``.
* ``no-effect``: A setting has no effect.
* ``rampup-bound``: A limit of the user's is what binds a scope that ramps: without it the scope would
  be faster. Each setting of a scope once, until the scope is configured.
* ``wait-capped``: A server asked for a longer wait than ``backoff.maxHold``. Each scope once.
* ``stall``: A scope has only answered badly for ``stallAfter``. Once, until it answers well again.
* ``budgets``: Answers of the scope name several budgets: the driver names the route of what waits,
  and of all that comes. Once.
* ``no-status``: The last 20 requests of the scope ended without a word about its server. Until one
  ends with a word: once.
* ``down``: A scope is down: no answer has come for ``downAfter``. Requests that wait for it are to be
  rejected.
"""


@dataclass(frozen=True)
class Notice:
    """Something that people should know. A field that a kind does not have is ``None``."""

    kind: NoticeKind
    """The kind."""
    scope: str
    """The scope's name."""
    delay: int | None = None
    """``backoff``, ``recover``, ``delay``, ``hold``, ``answer``: Its delay before jitter, in nanoseconds."""
    step: int | None = None
    """``backoff``, ``recover``, ``delay``, ``hold``, ``answer``: Steps of backoff in force."""
    hold_until: int | None = None
    """``backoff``, ``recover``, ``delay``, ``hold``, ``answer``: The end of a hold, in nanoseconds of the
    throttle's clock.
    """
    asked: int | None = None
    """``hold``: The wait that the server asked for, in nanoseconds, where ``backoff.maxHold`` cut it."""
    is_bad: bool | None = None
    """``answer``: Whether it was bad."""
    delay_before: int | None = None
    """``answer``: The delay before it, in nanoseconds."""
    in_flight: int | None = None
    """``answer``: The requests in flight after it."""
    latency: int | None = None
    """``answer``: From send to response headers, in nanoseconds, of a limit that processes share, if it was
    measured.
    """
    setting: str | None = None
    """``no-effect``, ``rampup-bound``, ``wait-capped``: The setting's name."""
    path: str | None = None
    """``no-effect``, ``rampup-bound``, ``wait-capped``: Where it is set: ``defaults.concurrency``."""
    why: str | None = None
    """``no-effect``, ``rampup-bound``, ``wait-capped``: The observation, in words."""
    span: int | None = None
    """``stall``, ``down``: For how long, in nanoseconds."""


WarningCode: TypeAlias = Literal[
    "many-waiting",
    "no-effect",
    "rampup-bound",
    "nested",
    "no-status",
    "wait-capped",
    "robots-overruled",
    "bypassed",
    "forked",
    "permit-lost",
    "unsettled",
    "stall",
    "suspicious-unit",
    "group-options",
    "group-version",
    "group-bad-message",
    "group-state-lost",
    "group-silent",
    "group-two-writers",
    "group-full",
    "group-offline",
    "group-online",
]
"""Which warning: events.md says what each means and what to do."""

SharedCode: TypeAlias = Literal[
    "group-options",
    "group-version",
    "group-bad-message",
    "group-state-lost",
    "group-silent",
    "group-two-writers",
    "group-full",
    "group-offline",
    "group-online",
]
"""Warnings of a limit that processes share."""

FINDINGS = {
    "no-effect": ("has no effect in", "has no effect"),
    "rampup-bound": ("slows rampup down in", "slows rampup down"),
    "wait-capped": ("cuts a wait of", "cuts a wait"),
}
"""The effects of settings: on a scope, in words before its name, and on all."""

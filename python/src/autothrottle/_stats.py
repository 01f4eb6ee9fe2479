"""The state of a throttle. ``cargo xtask write`` writes it from ``src/record.rs``: change it there.

Times are seconds; instants are those of the throttle's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._records import Reason
from ._seconds import InSeconds


@dataclass(frozen=True, slots=True)
class BudgetStats(InSeconds):
    """One budget of a server's at one instant. Times are seconds."""

    in_flight: int
    """Requests in flight that spend from it."""
    waiting: int
    """Requests that wait and will."""
    quota_left: float | None = None
    """The amount left in it, in units, while that is known."""
    recovers_at: float | None = None
    """When it is there again, if it is used up: seconds of the throttle's clock."""


@dataclass(frozen=True, slots=True)
class ScopeStats(InSeconds):
    """One scope at one instant. Times are seconds."""

    delay: float
    """The delay in force before jitter, in seconds: backoff's if that is longer. With AutoThrottle it is
    AutoThrottle's own; see ``backoff`` for the other.
    """
    backoff: float
    """The delay that backoff asks for, in seconds; 0 without backoff. The longer delay counts."""
    slots: int
    """Slots allowed."""
    in_flight: int
    """Requests in flight."""
    waiting: int
    """Requests that wait."""
    backoff_step: int
    """Steps of backoff in force; 0 without."""
    paused: bool
    """Whether the scope is paused."""
    concurrency: float
    """Requests in flight on average over the last minute."""
    bound_by: Mapping[str, float]
    """The share of the last minute in which each limit kept the first request waiting. ``elsewhere`` are
    limits of other scopes. The rest is time in which no request waited.
    """
    hold_until: float | None = None
    """When the hold ends, if there is one: seconds of the throttle's clock."""
    quota_left: float | None = None
    """The amount left in the scarcest quota, in units."""
    reason: Reason | None = None
    """Why the first of the waiting requests waits."""
    recovers_at: float | None = None
    """When a hold ends, a used-up quota is there again and backoff goes a step back: the last of them, in
    seconds of the throttle's clock. ``None`` where none of them is in the way.
    """
    budgets: Mapping[str, BudgetStats] = field(default_factory=dict)
    """The budgets of its server by name, where answers name several: GitHub's resources."""
    rate: float | None = None
    """Requests sent per second over the last minute, or since the first request; ``None`` for its first five
    seconds: two requests at once are no thousand a second.
    """
    latency: float | None = None
    """From send to response headers in seconds, on average over the last minute."""
    without_effect: str | None = None
    """A setting that has had no effect while requests waited, and why; ``None`` if there is none."""


@dataclass(frozen=True, slots=True)
class SharedStats(InSeconds):
    """A group of processes that share a limit, as one of them sees it. Times are seconds."""

    is_writer: bool
    """Whether it is this process."""
    epoch: int
    """A number that grows with each process that comes to decide. 0 before the first message."""
    lead: float
    """How far ahead this process makes grants, in seconds, at most a fifth of a lease: it costs slots that
    time. 0 where another process decides.
    """
    debt: float
    """The time, in seconds, that the whole limit takes for what this process sent alone and the writer has
    not counted yet. At most the longest window of your limits: what is older is free.
    """
    writer: str | None = None
    """The process that decides, by its 32 hexadecimal digits; ``None`` before its first message."""
    members: int | None = None
    """How many processes there were when a beat was last heard or said; ``None`` before that."""
    round_trip: float | None = None
    """From here to the process that decides and back, in seconds; there, to the slowest of the others.
    ``None`` before it was measured.
    """
    last_heard_at: float | None = None
    """When the writer last answered this process, in seconds of the throttle's clock; now in the writer
    itself. A beat alone does not count.
    """
    offline_since: float | None = None
    """Since when the way to the others is broken, where that counts as offline: seconds of the throttle's
    clock.
    """


@dataclass(frozen=True, slots=True)
class Stats(InSeconds):
    """Everything at one instant. Times are seconds."""

    waiting: int
    """Requests that wait."""
    in_flight: int
    """Requests in flight."""
    max_in_flight: int
    """The most requests in flight, all scopes together: the limit that the reason ``max-in-flight`` names.
    """
    sent: int
    """Requests sent since the beginning."""
    settled: int
    """Requests settled since the beginning."""
    cancelled: int
    """Requests cancelled since the beginning."""
    paused: bool
    """Whether everything is paused."""
    scopes: Mapping[str, ScopeStats]
    """Every scope that the engine knows, by name."""
    age: float | None = None
    """Of a throttle that processes share: how old this is, in seconds. 0 in the process that decides;
    ``None`` for a throttle of one process, and before the first message.
    """
    shared: SharedStats | None = None
    """The group of a throttle that processes share; ``None`` for a throttle of one process."""

"""The engine itself, for people with a loop of their own: no timers, no tasks, no clock.

.. code-block:: python

    engine = Engine({"defaults": {"delay": 1000, "jitter": False}})
    scope = engine.scope("example.com")
    ticket = engine.submit(0, [scope])
    engine.poll(0).send == [ticket]
    engine.settle(80_000_000, ticket, status=200, latency=80_000_000)

It speaks as it does in every language: options are those of ``docs/settings.md`` (camelCase, milliseconds),
instants and spans are whole nanoseconds. ``Throttle`` is what most programs want.
"""

from ._native import Engine, parse_hints, parse_robots
from ._records import BudgetStats, Notice, Reason, ScopeStats, Stats
from ._state import Decision, HeaderMap, Hints, HintsRead, Peek, QuotaHint, ScopeOutcome, Settled
from .errors import (
    ConfigError,
    CostExceedsQuotaError,
    Problem,
    QueueFullError,
    SnapshotError,
    ThrottleError,
)

__all__ = [
    "BudgetStats",
    "ConfigError",
    "CostExceedsQuotaError",
    "Decision",
    "Engine",
    "HeaderMap",
    "Hints",
    "HintsRead",
    "Notice",
    "Peek",
    "Problem",
    "QueueFullError",
    "QuotaHint",
    "Reason",
    "ScopeOutcome",
    "ScopeStats",
    "Settled",
    "SnapshotError",
    "Stats",
    "ThrottleError",
    "parse_hints",
    "parse_robots",
]

"""Rate limits for HTTP clients: delays, quotas, backoff, retries and AutoThrottle, by one engine.

``Throttle`` is for asyncio, ``ThreadThrottle`` for threads; ``autothrottle.httpx``,
``autothrottle.aiohttp``, ``autothrottle.requests``, ``autothrottle.crawlee`` and ``autothrottle.scrapy`` are
for clients, ``autothrottle.engine`` for people with a loop of their own, ``autothrottle.testing`` for tests.
"""

from ._base import ScopeControl
from ._clock import Clock
from ._events import (
    CancelEvent,
    Event,
    RequestEvent,
    ScopeEvent,
    SettleEvent,
    SharedEvent,
    StallEvent,
    WarningEvent,
)
from ._hooks import ScopeBackoff, ScopeRequest, SomeHints, update_scope_backoff
from ._managers import ManagedAnswer, ManagedSend, ScopeManager
from ._native import Engine
from ._permit import Permit
from ._requests import RequestOptions, request_options
from ._scopes import add_scope, by_domain_hierarchy, by_endpoint, by_host
from ._seconds import Peek
from ._stats import BudgetStats, ScopeStats, Stats
from ._threads import ThreadThrottle
from ._throttle import Throttle
from .errors import (
    BodyNotReplayableError,
    ClosedError,
    ConfigError,
    CostExceedsQuotaError,
    DisallowedError,
    ManagerError,
    Problem,
    QueueFullError,
    RetryAfterTooLongError,
    ScopeDownError,
    SharedError,
    SnapshotError,
    StalledError,
    ThrottleError,
    ThrottleTimeoutError,
    ThrottleWarning,
)
from .options import (
    AutoThrottleOptions,
    BackoffOptions,
    QuotaOptions,
    RampupOptions,
    RateOptions,
    RetryOptions,
    RobotsOptions,
    ScopeOptions,
    ThrottleOptions,
)

__version__ = "0.1.0"

__all__ = [
    "AutoThrottleOptions",
    "BackoffOptions",
    "BodyNotReplayableError",
    "BudgetStats",
    "CancelEvent",
    "Clock",
    "ClosedError",
    "ConfigError",
    "CostExceedsQuotaError",
    "DisallowedError",
    "Engine",
    "Event",
    "ManagedAnswer",
    "ManagedSend",
    "ManagerError",
    "Peek",
    "Permit",
    "Problem",
    "QueueFullError",
    "QuotaOptions",
    "RampupOptions",
    "RateOptions",
    "RequestEvent",
    "RequestOptions",
    "RetryAfterTooLongError",
    "RetryOptions",
    "RobotsOptions",
    "ScopeBackoff",
    "ScopeControl",
    "ScopeDownError",
    "ScopeEvent",
    "ScopeManager",
    "ScopeOptions",
    "ScopeRequest",
    "ScopeStats",
    "SettleEvent",
    "SharedError",
    "SharedEvent",
    "SnapshotError",
    "SomeHints",
    "StallEvent",
    "StalledError",
    "Stats",
    "ThreadThrottle",
    "Throttle",
    "ThrottleError",
    "ThrottleOptions",
    "ThrottleTimeoutError",
    "ThrottleWarning",
    "WarningEvent",
    "add_scope",
    "by_domain_hierarchy",
    "by_endpoint",
    "by_host",
    "request_options",
    "update_scope_backoff",
]

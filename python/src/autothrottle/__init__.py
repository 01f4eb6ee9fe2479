"""Rate limits for HTTP clients: delays, quotas, backoff, retries and AutoThrottle, by one engine.

``Throttle`` is for asyncio, ``ThreadThrottle`` for threads; ``autothrottle.httpx``,
``autothrottle.aiohttp``, ``autothrottle.requests``, ``autothrottle.crawlee`` and ``autothrottle.scrapy`` are
for clients, ``autothrottle.engine`` for people with a loop of their own, ``autothrottle.testing`` for tests.
"""

from ._base import ScopeControl
from ._clock import Clock
from ._events import *
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
from .errors import *
from .options import *

__version__ = "0.1.0"

__all__ = [
    "BudgetStats",
    "Clock",
    "Engine",
    "ManagedAnswer",
    "ManagedSend",
    "Peek",
    "Permit",
    "Problem",
    "RequestOptions",
    "ScopeBackoff",
    "ScopeControl",
    "ScopeManager",
    "ScopeRequest",
    "ScopeStats",
    "SomeHints",
    "Stats",
    "ThreadThrottle",
    "Throttle",
    "ThrottleError",
    "ThrottleWarning",
    "add_scope",
    "by_domain_hierarchy",
    "by_endpoint",
    "by_host",
    "request_options",
    "update_scope_backoff",
]
# written by `cargo xtask write`: exports
__all__ += [
    "AutoThrottleOptions",
    "BackoffOptions",
    "BodyNotReplayableError",
    "CancelEvent",
    "ClosedError",
    "ConfigError",
    "CostExceedsQuotaError",
    "DisallowedError",
    "Event",
    "HeaderMapOptions",
    "ManagerError",
    "NestedError",
    "QueueFullError",
    "QuotaOptions",
    "RampupOptions",
    "RateOptions",
    "RequestEvent",
    "RetryAfterTooLongError",
    "RetryOptions",
    "RobotsOptions",
    "ScopeDownError",
    "ScopeEvent",
    "ScopeOptions",
    "SettleEvent",
    "SharedError",
    "SharedEvent",
    "SnapshotError",
    "StallEvent",
    "StalledError",
    "ThrottleOptions",
    "ThrottleTimeoutError",
    "WarningEvent",
]
# end of what is written

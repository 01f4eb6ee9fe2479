"""Which settings there are, written from ``src/config/rows.rs`` by ``npm run bless``: change them there.

By section: the key in Python's case, the engine's, and what is in it.
"""

from typing import Final

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Rate": {
        "limit": ("limit", "plain"),
        "per": ("per", "time"),
        "burst": ("burst", "plain"),
    },
    "Quota": {
        "limit": ("limit", "plain"),
        "window": ("window", "time"),
        "strict": ("strict", "plain"),
    },
    "AutoThrottle": {
        "start_delay": ("startDelay", "time"),
        "max_delay": ("maxDelay", "time"),
        "target_concurrency": ("targetConcurrency", "plain"),
    },
    "Backoff": {
        "status_codes": ("statusCodes", "plain"),
        "errors": ("errors", "plain"),
        "factor": ("factor", "plain"),
        "min_delay": ("minDelay", "time"),
        "max_delay": ("maxDelay", "time"),
        "window": ("window", "time"),
        "jitter": ("jitter", "plain"),
        "concurrency_factor": ("concurrencyFactor", "plain"),
    },
    "Rampup": {
        "backoff_target": ("backoffTarget", "plain"),
        "start_delay": ("startDelay", "time"),
        "min_delay": ("minDelay", "time"),
        "max_concurrency": ("maxConcurrency", "plain"),
    },
    "Retry": {
        "limit": ("limit", "plain"),
        "status_codes": ("statusCodes", "plain"),
        "methods": ("methods", "plain"),
        "max_retry_after": ("maxRetryAfter", "time"),
        "long_retry_after": ("longRetryAfter", "plain"),
    },
    "HeaderMap": {
        "reset_unit": ("resetUnit", "plain"),
        "retry_after_unit": ("retryAfterUnit", "plain"),
        "retry_after": ("retryAfter", "plain"),
        "limit": ("limit", "plain"),
        "remaining": ("remaining", "plain"),
        "reset": ("reset", "plain"),
    },
    "Scope": {
        "rate": ("rate", "object Rate"),
        "concurrency": ("concurrency", "plain"),
        "delay": ("delay", "time"),
        "slot_delay": ("slotDelay", "time"),
        "jitter": ("jitter", "plain"),
        "autothrottle": ("autothrottle", "object AutoThrottle"),
        "backoff": ("backoff", "object Backoff"),
        "rampup": ("rampup", "object Rampup"),
        "follow_rate_limit": ("followRateLimit", "plain"),
        "ignore_robots_txt": ("ignoreRobotsTxt", "plain"),
        "quota": ("quota", "list Quota"),
        "window": ("window", "time"),
        "strict": ("strict", "plain"),
        "manager": ("manager", "driver"),
    },
    "Root": {
        "concurrency": ("concurrency", "plain"),
        "defaults": ("defaults", "object Scope"),
        "scopes": ("scopes", "named Scope"),
        "stall_after": ("stallAfter", "time"),
        "seed": ("seed", "plain"),
        "max_waiting": ("maxWaiting", "plain"),
        "max_scopes": ("maxScopes", "plain"),
        "warn_threshold": ("warnThreshold", "plain"),
        "retry": ("retry", "object Retry"),
        "clock": ("clock", "driver"),
        "snapshot": ("snapshot", "driver"),
        "shared": ("shared", "driver"),
        "request_timeout": ("requestTimeout", "time"),
        "hints": ("hints", "named HeaderMap"),
        "get_scopes": ("getScopes", "function"),
        "get_response_backoff": ("getResponseBackoff", "function"),
        "get_error_backoff": ("getErrorBackoff", "function"),
        "get_response_delay": ("getResponseDelay", "function"),
        "get_hints": ("getHints", "function"),
        "redirect_max_delay": ("redirectMaxDelay", "time"),
        "release": ("release", "plain"),
        "debug": ("debug", "plain"),
        "warnings": ("warnings", "plain"),
    },
}

DRIVER: Final = (
    "clock",
    "snapshot",
    "shared",
    "request_timeout",
    "hints",
    "get_scopes",
    "get_response_backoff",
    "get_error_backoff",
    "get_response_delay",
    "get_hints",
    "redirect_max_delay",
    "release",
    "debug",
    "warnings",
)
"""What only the driver reads."""

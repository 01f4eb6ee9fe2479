"""Scrapy's settings and the keys of THROTTLING_SCOPES as the engine's options.

Written from `src/config/rows.rs` by `npm run bless`: change them there.
"""

from __future__ import annotations

from typing import Final

SETTINGS: Final[dict[str, tuple[str, str, str]]] = {
    "CONCURRENT_REQUESTS": ("root", "concurrency", "number"),
    "THROTTLING_SCOPES": ("root", "scopes", "python"),
    "DOWNLOAD_SLOTS": ("root", "scopes", "python"),
    "DELAYED_REQUESTS_WARN_THRESHOLD": ("root", "warnThreshold", "number"),
    "RETRY_TIMES": ("root", "retry", "retry"),
    "RETRY_HTTP_CODES": ("root", "retry", "retry"),
    "DOWNLOAD_TIMEOUT": ("driver", "requestTimeout", "seconds"),
    "ROBOTSTXT_OBEY": ("driver", "robots", "robots"),
    "THROTTLING_MANAGER": ("driver", "getScopes", "python"),
    "REDIRECT_MAX_DELAY": ("driver", "redirectMaxDelay", "seconds"),
    "AUTOTHROTTLE_DEBUG": ("driver", "debug", "flag"),
    "CONCURRENT_REQUESTS_PER_DOMAIN": ("scope", "concurrency", "number"),
    "DOWNLOAD_DELAY": ("scope", "delay", "seconds"),
    "DOWNLOAD_DELAY_PER_SLOT": ("scope", "slotDelay", "seconds"),
    "RANDOMIZE_DOWNLOAD_DELAY": ("scope", "jitter", "jitter"),
    "DOWNLOAD_DELAY_JITTER": ("scope", "jitter", "jitter"),
    "AUTOTHROTTLE_ENABLED": ("scope", "autothrottle", "autothrottle"),
    "THROTTLING_WINDOW": ("scope", "window", "seconds"),
    "THROTTLING_SCOPE_MANAGER": ("scope", "manager", "python"),
    "BACKOFF_HTTP_CODES": ("backoff", "statusCodes", "codes"),
    "BACKOFF_EXCEPTIONS": ("backoff", "errors", "exceptions"),
    "BACKOFF_DELAY_FACTOR": ("backoff", "factor", "number"),
    "BACKOFF_MIN_DELAY": ("backoff", "minDelay", "seconds"),
    "BACKOFF_MAX_DELAY": ("backoff", "maxDelay", "seconds"),
    "BACKOFF_WINDOW": ("backoff", "window", "seconds"),
    "BACKOFF_JITTER": ("backoff", "jitter", "jitter"),
    "BACKOFF_CONCURRENCY_FACTOR": ("backoff", "concurrencyFactor", "number"),
    "RAMPUP_BACKOFF_TARGET": ("rampup", "backoffTarget", "target"),
    "AUTOTHROTTLE_START_DELAY": ("autothrottle", "startDelay", "seconds"),
    "AUTOTHROTTLE_MAX_DELAY": ("autothrottle", "maxDelay", "seconds"),
    "AUTOTHROTTLE_TARGET_CONCURRENCY": ("autothrottle", "targetConcurrency", "number"),
    "THROTTLING_ROBOTSTXT_OBEY": ("robots", "obey", "flag"),
    "ROBOTSTXT_USER_AGENT": ("robots", "userAgent", "number"),
    "USER_AGENT": ("robots", "userAgent", "number"),
    "THROTTLING_ROBOTSTXT_MAX_DELAY": ("robots", "maxDelay", "seconds"),
}
"""A setting's name → section, key and kind of the option."""

KEYS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "scope": {
        "rate": ("rate", "pace"),
        "concurrency": ("concurrency", "number"),
        "delay": ("delay", "seconds"),
        "slot_delay": ("slotDelay", "seconds"),
        "jitter": ("jitter", "jitter"),
        "autothrottle": ("autothrottle", "autothrottle"),
        "backoff": ("backoff", "backoff"),
        "rampup": ("rampup", "rampup"),
        "follow_rate_limit": ("followRateLimit", "flag"),
        "down_after": ("downAfter", "seconds"),
        "ignore_robots_txt": ("ignoreRobotsTxt", "flag"),
        "quota": ("quota", "quotas"),
        "window": ("window", "seconds"),
        "strict": ("strict", "flag"),
        "manager": ("manager", "python"),
    },
    "rate": {
        "limit": ("limit", "number"),
        "per": ("per", "seconds"),
        "burst": ("burst", "number"),
    },
    "quota": {
        "limit": ("limit", "number"),
        "window": ("window", "seconds"),
        "strict": ("strict", "flag"),
    },
    "autothrottle": {
        "start_delay": ("startDelay", "seconds"),
        "max_delay": ("maxDelay", "seconds"),
        "target_concurrency": ("targetConcurrency", "number"),
    },
    "backoff": {
        "status_codes": ("statusCodes", "codes"),
        "http_codes": ("statusCodes", "codes"),
        "errors": ("errors", "exceptions"),
        "exceptions": ("errors", "exceptions"),
        "factor": ("factor", "number"),
        "delay_factor": ("factor", "number"),
        "min_delay": ("minDelay", "seconds"),
        "max_delay": ("maxDelay", "seconds"),
        "max_hold": ("maxHold", "seconds"),
        "window": ("window", "seconds"),
        "jitter": ("jitter", "jitter"),
        "concurrency_factor": ("concurrencyFactor", "number"),
    },
    "rampup": {
        "backoff_target": ("backoffTarget", "target"),
        "start_delay": ("startDelay", "seconds"),
        "min_delay": ("minDelay", "seconds"),
        "max_concurrency": ("maxConcurrency", "number"),
    },
}
"""Section → key in a dict of THROTTLING_SCOPES → key and kind of the option."""

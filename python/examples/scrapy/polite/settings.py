"""The settings of Scrapy's draft, as it has them. The first line is what makes them work."""

DOWNLOADER = "autothrottle.scrapy.Downloader"

BOT_NAME = "polite"
SPIDER_MODULES = ["polite.spiders"]
USER_AGENT = "polite (+https://example.com/bot)"
ROBOTSTXT_OBEY = True

# Concurrency and delay
CONCURRENT_REQUESTS_PER_DOMAIN = 2
DOWNLOAD_DELAY = 0.3
DOWNLOAD_DELAY_PER_SLOT = 1.0
RANDOMIZE_DOWNLOAD_DELAY = 0.2

# Backoff
BACKOFF_HTTP_CODES = [429, 502, 503, 504, 520, 521, 522, 523, 524]
BACKOFF_EXCEPTIONS = [
    "twisted.internet.defer.TimeoutError",
    "twisted.internet.error.TimeoutError",
    "twisted.internet.error.TCPTimedOutError",
    "twisted.web.client.ResponseFailed",
]
BACKOFF_DELAY_FACTOR = 2.0
BACKOFF_MIN_DELAY = 1.0
BACKOFF_MAX_DELAY = 300.0
BACKOFF_JITTER = 0.1
BACKOFF_WINDOW = 60.0

# Rampup, quotas, robots.txt
RAMPUP_BACKOFF_TARGET = [1, 3]
THROTTLING_WINDOW = 60.0
THROTTLING_ROBOTSTXT_OBEY = True
THROTTLING_ROBOTSTXT_MAX_DELAY = 60.0
REDIRECT_MAX_DELAY = 300.0
DELAYED_REQUESTS_WARN_THRESHOLD = 500

THROTTLING_MANAGER = "autothrottle.scrapy.ThrottlingManager"
THROTTLING_SCOPES = {
    # Per-domain throttling
    "quotes.toscrape.com": {"concurrency": 16, "delay": 0.0},
    # Rampup
    "api.toscrape.com": {"rampup": True},
    # Per-request throttling
    "api": {"concurrency": 2},
    "users": {"delay": 5.0},
    # Cost-capped throttling
    "cost": {"quota": 100.0},
    # Backoff of one scope
    "example.com": {
        "backoff": {
            "http_codes": [429, 503],
            "exceptions": ["builtins.IOError"],
            "delay_factor": 1.2,
            "max_delay": 180.0,
            "min_delay": 5.0,
            "jitter": [0.01, 0.33],
            "concurrency_factor": 0.8,
        }
    },
}

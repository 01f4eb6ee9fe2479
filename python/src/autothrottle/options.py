"""The options' types, written from ``src/config/table.rs`` by ``cargo xtask write``: change them there.

Times are seconds: a number or a ``timedelta``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ._clock import Clock
    from ._hooks import (
        GetErrorBackoff,
        GetHints,
        GetResponseBackoff,
        GetResponseDelay,
        GetScopes,
        RetryWhen,
        RobotsRules,
    )
    from ._managers import MakeScopeManager, ScopeManager
    from .redis import Shared

Seconds: TypeAlias = float | timedelta
"""A time: seconds as a number, or a ``timedelta``."""

Jitter: TypeAlias = bool | float | tuple[float, float]
"""How far a delay may stray from its mean: ``True`` is ±50 %, ``0.2`` ±20 %, a pair its own ends."""

Snapshot: TypeAlias = Mapping[str, Any]
"""The result of ``throttle.snapshot()``."""

__all__ = [
    "AutoThrottleOptions",
    "BackoffOptions",
    "HeaderMapOptions",
    "QuotaOptions",
    "RampupOptions",
    "RateOptions",
    "RetryOptions",
    "RobotsOptions",
    "ScopeOptions",
    "ThrottleOptions",
]


class HeaderMapOptions(TypedDict, total=False):
    """How one server's headers are to be read. Names are those of header fields, in any case."""

    reset_unit: Literal["s", "ms"]
    """The unit of a plain number in a reset. Default s. Most servers mean seconds."""

    retry_after_unit: Literal["s", "ms"]
    """The unit of a plain number in ``Retry-After``. Default s. RFC 9110 §10.2.3."""

    retry_after: str
    """The field with the wait, read as ``Retry-After``. Default none. Usual fields need no name."""

    limit: str
    """The field with a quota's limit, read as ``X-RateLimit-Limit``. Default none. Usual fields need no
    name.
    """

    remaining: str
    """The field with what is left, read as ``X-RateLimit-Remaining``. Default none. Usual fields need no
    name.
    """

    reset: str
    """The field with the reset, read as ``X-RateLimit-Reset``. Default none. Usual fields need no name."""


class _RobotsOptionsRequired(TypedDict):
    user_agent: str
    """The product token to look for, and the ``User-Agent`` to ask with. Scrapy: ROBOTSTXT_USER_AGENT,
    USER_AGENT.
    """


class RobotsOptions(_RobotsOptionsRequired, total=False):
    """How the transports ask for robots.txt."""

    obey: bool
    """Obey ``Crawl-delay`` and ``Request-rate``, and ``rules`` if you give them. Default True. If you set
    ``robots``, you want it obeyed. Scrapy: ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY.
    """

    max_delay: Seconds
    """The longest delay to believe, in seconds. Default 60. Longer ones are mostly meant to keep robots out;
    the same number as in Scrapy's draft. Scrapy: THROTTLING_ROBOTSTXT_MAX_DELAY.
    """

    rules: RobotsRules
    """Allow and Disallow: ``rules`` of ``autothrottle.robots``. Default only the pace is obeyed. It needs a
    library.
    """


class _RetryOptionsRequired(TypedDict):
    limit: int
    """Attempts after the first. A whole number from 1 to 1000000. Scrapy: RETRY_TIMES."""


class RetryOptions(_RetryOptionsRequired, total=False):
    """Retries of the transports. Scrapy: RETRY_ENABLED, RETRY_TIMES."""

    status_codes: Collection[int]
    """Statuses to retry. A 403 of a rate limit counts as a 429. Default 408, 413, 429, 430, 500, 502, 503,
    504, 520, 521, 522, 523, 524, 529; 413 only with ``Retry-After``. Timeouts, refusals and servers that
    cannot cope. Scrapy: RETRY_HTTP_CODES.
    """

    methods: Collection[str]
    """Methods to retry. Default GET, HEAD, PUT, DELETE, OPTIONS, TRACE. The idempotent ones (RFC 9110
    §9.2.2).
    """

    max_retry_after: Seconds
    """The longest ``Retry-After`` to wait for, in seconds. Default 300. A program that waits longer looks as
    if it hangs.
    """

    long_retry_after: Literal["fail", "wait", "cap"]
    """Beyond it: ``fail`` with a ``RetryAfterTooLongError``, ``wait`` as long as the server asks, or ``cap``
    the wait at ``max_retry_after``, earlier than it asked. A hold of the scope lasts up to
    ``backoff.max_hold``, so cap that, too. Default fail. It neither hangs nor comes too early.
    """

    when: RetryWhen
    """Whether a response is a refusal whatever its status says, as GraphQL's ``THROTTLED`` in a 200: it
    backs off and is retried as a 429 is. It gets the response, and may be async. Default none. A status says
    it for nearly all servers.
    """


class RampupOptions(TypedDict, total=False):
    """Find the server's limit and stay just below it."""

    backoff_target: float | tuple[float, float]
    """Bad answers per ``backoff.window`` that the search may cost: a number, or a range [low, high] whose
    middle is the aim. Default 1. No operator notices one a minute; the same number as in Scrapy's draft.
    Scrapy: RAMPUP_BACKOFF_TARGET.
    """

    start_delay: Seconds
    """Seconds of delay before the first answer. Default 1; the scope's own delay if that is longer. A second
    is polite everywhere, and ten doublings from the fastest server.
    """

    min_delay: Seconds
    """The least delay in seconds. Default 0. The server's limit is the bound."""

    max_concurrency: int
    """The most slots. A whole number from 1 to 1000000. Default as ``max_in_flight``. The limit of all
    scopes together.
    """


class BackoffOptions(TypedDict, total=False):
    """A longer delay after bad answers, and the way back."""

    status_codes: Collection[int]
    """Statuses that are bad answers. A 403 of a rate limit counts as a 429. Default 429, 430, 502, 503, 504,
    520, 521, 522, 523, 524, 529; without 430 and 529 under Scrapy's names. Refusals, and servers that cannot
    cope. A 500 is mostly a bug. Scrapy: BACKOFF_HTTP_CODES.
    """

    errors: Collection[Literal["timeout", "connection"]]
    """Failures that are bad answers. Your own aborts never are. Default timeout, connection. A server under
    load drops connections and answers late. Scrapy: BACKOFF_EXCEPTIONS.
    """

    factor: float
    """The factor by which a bad answer multiplies the delay, once per flight. A number above 1, at most
    1000. Default 2. Ten steps reach any limit; the same number as in Scrapy's draft. Scrapy:
    BACKOFF_DELAY_FACTOR.
    """

    min_delay: Seconds
    """The least delay after a bad answer, in seconds. Default 1. An overloaded server does not feel less;
    the same number as in Scrapy's draft. Scrapy: BACKOFF_MIN_DELAY.
    """

    max_delay: Seconds
    """The longest delay in seconds. Default 300; a longer ``delay`` or gap of ``rate``. A program that waits
    longer looks as if it hangs; the same number as in Scrapy's draft. Scrapy: BACKOFF_MAX_DELAY.
    """

    max_hold: Seconds
    """The longest wait in seconds that a server may ask for (``Retry-After``, a reset with none left). A
    longer one is cut, with the warning ``wait-capped``. Default 86400; ``BACKOFF_MAX_DELAY`` under Scrapy's
    names. One wrong field must not silence a host for a year.
    """

    window: Seconds
    """Seconds without a bad answer, and with a good one, before a step back. Default 60. Most limits are per
    minute; the same number as in Scrapy's draft. Scrapy: BACKOFF_WINDOW.
    """

    jitter: Jitter
    """Spread of the delay while backing off, in place of the scope's. No gap is shorter than the scope's can
    be. Default 0.1. Clients that were refused together should not come back together. Scrapy:
    BACKOFF_JITTER.
    """

    concurrency_factor: float
    """The factor of the slots when the delay is at its longest and bad answers go on. A number above 0 and
    below 1. Default 0.5. As the delay's factor, the other way round; the same number as in Scrapy's draft.
    Scrapy: BACKOFF_CONCURRENCY_FACTOR.
    """


class AutoThrottleOptions(TypedDict, total=False):
    """Scrapy's AutoThrottle: the delay follows the latency."""

    start_delay: Seconds
    """Seconds of delay before the first answer, and never less than the scope's ``delay``. Default 5.
    Scrapy's number. Scrapy: AUTOTHROTTLE_START_DELAY.
    """

    max_delay: Seconds
    """The longest delay in seconds. It wins over a larger ``delay`` of the scope, as in Scrapy. Default 60.
    Scrapy's number. Scrapy: AUTOTHROTTLE_MAX_DELAY.
    """

    target_concurrency: float
    """Requests that the server should work on at a time, on average; fractions are allowed. A number above
    0. Default 1. Scrapy's number. Scrapy: AUTOTHROTTLE_TARGET_CONCURRENCY.
    """


class _QuotaOptionsRequired(TypedDict):
    limit: float
    """Units per window. A number above 0, at most 1000000000000. Scrapy: quota."""


class QuotaOptions(_QuotaOptionsRequired, total=False):
    """A budget per window."""

    window: Seconds
    """The window in seconds. Default the scope's ``window``. One for all quotas of the scope. Scrapy:
    window.
    """

    strict: bool
    """Whether the window rolls: no span of its length holds more. Default the scope's ``strict``. One for
    all quotas of the scope.
    """


class _RateOptionsRequired(TypedDict):
    limit: float
    """Units of cost per span (requests, where no other cost is said); fractions welcome. A number above 0,
    at most 1000000000.
    """


class RateOptions(_RateOptionsRequired, total=False):
    """A rate with its own span, or with bursts."""

    window: Seconds
    """The span in seconds. Default 1. As for a rate that is a number."""

    burst: int
    """How many units of cost may leave at once, at the start and after an idle time, beside ``limit`` in one
    window: for a window type a ``quota``. A request that costs more is a ``CostExceedsQuotaError``. For
    tokens a minute: as many as ``limit``. A whole number from 1 to 1000000000. Default 1. No server refuses
    even gaps.
    """


class ScopeOptions(TypedDict, total=False):
    """Settings of one scope."""

    rate: float | str | RateOptions
    """Requests a second, evenly spaced: ``5``, ``"100/min"`` (``/s``, ``/min``, ``/h``, ``/day``), or ``{
    limit, window, burst }``. A request counts as its ``cost``, 1 unless you say another. It replaces
    ``delay`` and ``slot_delay``. ``jitter`` is then 0 and ``concurrency`` that of ``max_in_flight``, unless
    you set them in the same place. A ``jitter`` puts each request off by up to that share of a gap; the mean
    stays. Default none. The default of ``delay`` is a pace already.
    """

    concurrency: int
    """Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with ``rate`` as
    ``max_in_flight``. A visitor with a browser tab does one at a time. Scrapy:
    CONCURRENT_REQUESTS_PER_DOMAIN.
    """

    delay: Seconds
    """Seconds between two sends of the scope, from send to send. Default 1; 0 beside ``concurrency``,
    ``rate``, ``quota`` or ``rampup``. A second is polite everywhere. Scrapy: DOWNLOAD_DELAY.
    """

    slot_delay: Seconds
    """Seconds between two sends of one slot, from send to send. Default 1; 0 beside ``delay``,
    ``concurrency``, ``rate``, ``quota``, ``rampup`` or ``autothrottle``. The same second as in Scrapy's
    draft. Beside another pace it would make five a second one. Scrapy: DOWNLOAD_DELAY_PER_SLOT.
    """

    jitter: Jitter
    """Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true is
    ±50 %. The mean is the delay. After a hold, too: ``false`` comes back to the millisecond. Default True;
    with ``rate`` 0. As in Scrapy: only programs send like clockwork. Scrapy: DOWNLOAD_DELAY_JITTER,
    RANDOMIZE_DOWNLOAD_DELAY.
    """

    autothrottle: bool | AutoThrottleOptions
    """Let the delay follow the latency: Scrapy's AutoThrottle. The scope's ``delay`` is then the least
    delay. Default False. Scrapy's is off, too. Scrapy: AUTOTHROTTLE_ENABLED.
    """

    backoff: bool | BackoffOptions
    """Slow down after bad answers. Where you type it as true or an object, or type no pace, the delay
    doubles and comes back by steps. Else your pace is a ceiling, to which the rate climbs back. If false,
    only waits that the server asks for (``Retry-After``) count. Default True. A refusal means too fast.
    """

    rampup: bool | RampupOptions
    """Find the server's limit and stay just below it. ``delay``, ``slot_delay`` and ``concurrency`` of the
    defaults are no bounds then; those of the scope itself are. Default False. To look for a limit costs
    refusals.
    """

    follow_rate_limit: bool
    """Pace by ``RateLimit`` headers: the slower of reset / remaining and window / limit. Without it they
    only say when to stop. Default False. Clients that share a limit would be paced by each other's use.
    """

    down_after: Seconds | Literal[False]
    """Seconds of only failed connections and timeouts after which a scope is down. Waiting requests are then
    rejected with a ``ScopeDownError``, and one request at a time probes the server. Default False. A crawl
    waits for a server that is away, a page does not.
    """

    ignore_robots_txt: bool
    """Ignore ``Crawl-delay`` for this scope, without a warning. Default False. If you set ``robots``, you
    want it obeyed. Scrapy: ignore_robots_txt.
    """

    quota: float | QuotaOptions | Sequence[float | QuotaOptions]
    """Units that the scope may consume per window: a number, ``{ limit, window, strict }``, or a list of
    those. Default none. Only you know your budget. Scrapy: quota.
    """

    window: Seconds
    """The window of quotas without one, in seconds. It starts with the scope's first request. Default 60.
    Most limits of APIs are per minute; the same number as in Scrapy's draft. Scrapy: THROTTLING_WINDOW,
    window.
    """

    strict: bool
    """Rolling window for quotas that omit ``strict``: no span of the window's length holds more. Default
    False. Most servers count in fixed windows, and a rolling one remembers each send.
    """

    manager: ScopeManager | MakeScopeManager
    """A strategy of your own in place of backoff and rampup. In ``defaults`` a function of the scope's name.
    Default none. The built-in ones need no code. Scrapy: THROTTLING_SCOPE_MANAGER, manager.
    """


class ThrottleOptions(ScopeOptions, total=False):
    """All options of a throttle. Settings of scopes may stand at the top."""

    max_in_flight: int
    """Requests in flight, all scopes together. A whole number from 1 to 1000000. Default 16; at least the
    greatest ``concurrency`` that you type, and 256 where a scope ramps. As in Scrapy; ``rampup`` may find
    that a server bears more. Scrapy: CONCURRENT_REQUESTS.
    """

    defaults: ScopeOptions
    """Settings of every scope, unless ``scopes`` overrides them. They may stand at the top instead:
    ``rate=5`` is ``defaults={"rate": 5}``. Both at once are an error. Default {}. Each setting's own default
    is polite. Scrapy: THROTTLING_DEFAULTS.
    """

    scopes: Mapping[str, ScopeOptions]
    """Settings of single scopes, by name. By default a scope is the host of the URL. Default {}. No host is
    known before the first request. Scrapy: THROTTLING_SCOPES, DOWNLOAD_SLOTS.
    """

    stall_after: Seconds
    """Seconds of only bad answers after which a scope has stalled: one ``stall`` event, or a ``warning`` if
    it has no listener. Default 120. A person who waits for a program looks after two minutes.
    """

    seed: int
    """Makes jitter repeat exactly. Default drawn from the system on first use. Two clients with the same
    seed would send in step.
    """

    max_waiting: int
    """Beyond this many waiting requests, a new one is a ``QueueFullError``. A whole number from 1 to
    100000000. Default none. How much memory a program may use is your choice; ``warn_threshold`` warns
    before.
    """

    max_scopes: int
    """Beyond this many scopes, the least recently used idle ones are forgotten. Scopes that hold, are
    paused, have used quota or wait out a delay stay. A whole number from 1 to 100000000. Default 100000. A
    scope takes some hundred bytes; a crawl visits fewer hosts in an hour.
    """

    warn_threshold: int
    """This many waiting requests cause one warning. A whole number from 1 to 100000000. Default 500. Each
    keeps its task and context in memory; ``throttle.map`` pulls work instead. The same number as in Scrapy's
    draft. Scrapy: DELAYED_REQUESTS_WARN_THRESHOLD.
    """

    retry: RetryOptions
    """Whether and how the transports repeat requests. Default none. Clients do not by themselves, and
    sending twice is your decision. Scrapy: RETRY_ENABLED.
    """

    clock: Clock
    """Where time and timers come from. Tests use ``FakeClock`` of ``autothrottle.testing``. Default the
    system's. Programs run in real time.
    """

    snapshot: Snapshot
    """Learned state to go on with. A damaged or newer one is a ``SnapshotError``. Default none. Where to
    keep it is your choice.
    """

    shared: Shared
    """One limit for many processes (docs/shared.md). Give all of them the same options. Default none. Most
    programs are one process.
    """

    request_timeout: Seconds
    """Seconds from the send to the headers, after which a request has failed with ``timeout``. The wait
    before the send does not count. Default none. Clients have limits of their own. Scrapy: DOWNLOAD_TIMEOUT.
    """

    robots: RobotsOptions
    """Whether the transports ask each host for its robots.txt first. Default none. A client of an API has no
    use for it; a crawler needs a name. Scrapy: ROBOTSTXT_OBEY.
    """

    hints: Mapping[str, HeaderMapOptions]
    """How to read the headers of servers with a dialect of their own, by scope name. Default {}. The formats
    of docs/hints.md need no setting.
    """

    get_scopes: GetScopes
    """Names the scopes of a request: a name, names, or a map of scope to expected cost, also awaitable. An
    exception rejects the request with a ``ManagerError``. Helpers: ``by_host``, ``by_endpoint``,
    ``by_domain_hierarchy``, ``add_scope``. Default none. Servers limit by host. Scrapy: THROTTLING_MANAGER,
    CONCURRENT_REQUESTS_PER_IP.
    """

    get_response_backoff: GetResponseBackoff
    """Names the scopes that a response makes back off, if its status does not say it. The slot is kept until
    it has answered; ``None`` lets the status count. Default none. A status says it for nearly all servers.
    Scrapy: THROTTLING_MANAGER.
    """

    get_error_backoff: GetErrorBackoff
    """Names the scopes that a failure makes back off. Default none. A failure concerns all scopes of its
    request. Scrapy: THROTTLING_MANAGER.
    """

    get_response_delay: GetResponseDelay
    """How many seconds a response asks to wait, in place of its headers. Default none. Headers are read
    without it. Scrapy: THROTTLING_MANAGER.
    """

    get_hints: GetHints
    """Finds hints in bodies, as of Shopify and Discord. The slot is kept until it has answered. ``None``:
    the headers count. An exception rejects the request with a ``ManagerError``. Default none. Bodies are
    yours.
    """

    redirect_max_delay: Seconds
    """The longest ``Retry-After`` of a redirect to wait for, in seconds. Beyond it the next hop fails at
    once. Default 300. As long as ``backoff.max_delay`` and ``retry.max_retry_after``. Scrapy:
    REDIRECT_MAX_DELAY.
    """

    release: Literal["headers", "body"]
    """When a request gives its slots back: at the headers, or when the body was read, cancelled or has
    failed. An unread body keeps them until it is garbage-collected. Default headers. A forgotten body would
    keep its slot.
    """

    debug: bool
    """Prints AutoThrottle's line for each response with the logger ``autothrottle``. Default False. A
    library is silent. Scrapy: AUTOTHROTTLE_DEBUG.
    """

    warnings: bool
    """Whether a warning without a listener is a line of ``warnings.warn``, once per code and scope. Default
    True. You should learn of a setting without effect before the ban.
    """


# Defaults of settings that the engine does not read, in seconds.
REDIRECT_MAX_DELAY = 300.0
RETRY_MAX_RETRY_AFTER = 300.0
ROBOTS_MAX_DELAY = 60.0

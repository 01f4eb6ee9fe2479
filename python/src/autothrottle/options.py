"""The options' types, written from ``src/config/rows.rs`` by ``npm run bless``: change them there.

Times are seconds: a number or a ``timedelta``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from ._clock import Clock
    from ._hooks import GetErrorBackoff, GetHints, GetResponseBackoff, GetResponseDelay, GetScopes
    from ._managers import MakeScopeManager, ScopeManager
    from .redis import Shared

Seconds: TypeAlias = float | timedelta
"""A time: seconds as a number, or a ``timedelta``."""

Jitter: TypeAlias = bool | float | tuple[float, float]
"""How far a delay may stray from its mean: ``True`` is ±50 %, ``0.2`` ±20 %, a pair its own ends."""

Snapshot: TypeAlias = Mapping[str, Any]
"""What ``throttle.snapshot()`` gave."""


class _RateOptionsRequired(TypedDict):
    limit: float
    """Requests per span; fractions welcome. A number above 0, at most 1000000000."""


class RateOptions(_RateOptionsRequired, total=False):
    """A rate with its own span, or with bursts."""

    per: Seconds
    """The span in seconds. Default 1. As for a rate that is a plain number."""

    burst: int
    """How many may follow each other at once after an idle time. A whole number from 1 to 1000000. Default
    1. Evenly spaced is what no server refuses.
    """


class _QuotaOptionsRequired(TypedDict):
    limit: float
    """Units per window. A number above 0, at most 1000000000000. Scrapy: quota."""


class QuotaOptions(_QuotaOptionsRequired, total=False):
    """A budget per window."""

    window: Seconds
    """The window in seconds. Default the scope's ``window``. Said once for all quotas of the scope. Scrapy:
    window.
    """

    strict: bool
    """Whether the window rolls: never more than the limit in any window-long span. Default the scope's
    ``strict``. Said once for all quotas of the scope.
    """


class AutoThrottleOptions(TypedDict, total=False):
    """Scrapy's AutoThrottle: the delay follows the latency."""

    start_delay: Seconds
    """Seconds of delay before anything is known, and never less than the scope's ``delay``. Default 5.
    Scrapy's number. Scrapy: AUTOTHROTTLE_START_DELAY.
    """

    max_delay: Seconds
    """The greatest delay in seconds. It wins where the scope's ``delay`` is larger, as in Scrapy. Default
    60. Scrapy's number. Scrapy: AUTOTHROTTLE_MAX_DELAY.
    """

    target_concurrency: float
    """How many requests the server should have in its hands on average; fractions welcome. A number above 0.
    Default 1. Scrapy's number: the most careful that is not idle. Scrapy: AUTOTHROTTLE_TARGET_CONCURRENCY.
    """


class BackoffOptions(TypedDict, total=False):
    """A longer delay after bad answers, and the way back."""

    status_codes: Collection[int]
    """Statuses that are bad answers. A 403 of a rate limit (it names a wait, or nothing is left) counts as a
    429. Default 429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529; without 430 and 529 under Scrapy's
    names. Too many requests, and a server (or the CDN before it) that cannot cope. A 500 is mostly a bug.
    Scrapy: BACKOFF_HTTP_CODES.
    """

    errors: Collection[Literal["timeout", "connection"]]
    """Failures that are bad answers. An abort by the caller never is. Default timeout, connection. A server
    under load drops connections and answers late. Scrapy: BACKOFF_EXCEPTIONS.
    """

    factor: float
    """What a bad answer multiplies the delay by, once per flight. A number above 1, at most 1000. Default 2.
    Ten steps reach any limit; the draft's number. Scrapy: BACKOFF_DELAY_FACTOR.
    """

    min_delay: Seconds
    """Seconds of delay after the first bad answer, at least. Default 1. Less is not felt by a server that is
    overloaded; the draft's number. Scrapy: BACKOFF_MIN_DELAY.
    """

    max_delay: Seconds
    """The longest delay in seconds. Default 300; a longer ``delay`` or gap of ``rate``. A program that waits
    for longer looks as if it hangs; the draft's number. Scrapy: BACKOFF_MAX_DELAY.
    """

    max_hold: Seconds
    """The longest wait in seconds that a server may ask for (``Retry-After``, a reset with nothing left). A
    longer one is cut, with the warning ``hold-cut``. Default 86400; ``BACKOFF_MAX_DELAY`` under Scrapy's
    names. What a server asks for is kept; but one wrong field must not silence a host for a year.
    """

    window: Seconds
    """Seconds without a bad answer (and with a good one) before a step back. Default 60. Most limits are per
    minute; the draft's number. Scrapy: BACKOFF_WINDOW.
    """

    jitter: Jitter
    """Spread of the delay while backing off, instead of the scope's; no gap is shorter than the scope's can
    be. Default 0.1. Clients that were refused together should not come back together; more would break what
    a server asked for. Scrapy: BACKOFF_JITTER.
    """

    concurrency_factor: float
    """What slots are multiplied by when the delay is at its longest and bad answers go on. A number above 0
    and below 1. Default 0.5. As the delay's factor, the other way round; the draft's number. Scrapy:
    BACKOFF_CONCURRENCY_FACTOR.
    """


class RampupOptions(TypedDict, total=False):
    """Find the server's limit and stay just below it."""

    backoff_target: float | tuple[float, float]
    """Bad answers per ``backoff.window`` that finding the limit may cost: a number, or a range [low, high],
    of which the middle is aimed at. Default 1. One a minute is heard by no operator; the draft's number.
    Scrapy: RAMPUP_BACKOFF_TARGET.
    """

    start_delay: Seconds
    """Seconds of delay before anything is known. Default 1; the scope's own delay if that is longer. A
    second is polite everywhere, and ten doublings from the fastest server.
    """

    min_delay: Seconds
    """The least delay in seconds. Default 0. The server's limit is the bound."""

    max_concurrency: int
    """The most slots. A whole number from 1 to 1000000. Default the global ``concurrency``. The limit of all
    scopes together is one already.
    """


class _RetryOptionsRequired(TypedDict):
    limit: int
    """Attempts after the first. A whole number from 1 to 1000000. Scrapy: RETRY_TIMES."""


class RetryOptions(_RetryOptionsRequired, total=False):
    """Retries of the transports. Scrapy: RETRY_ENABLED and its kin."""

    status_codes: Collection[int]
    """Statuses to try again. A 403 of a rate limit counts as a 429. Default 408, 413, 429, 430, 500, 502,
    503, 504, 520, 521, 522, 523, 524, 529; 413 only with ``Retry-After``. Timeouts, refusals and servers (or
    the CDN before them) that cannot cope. Scrapy: RETRY_HTTP_CODES.
    """

    methods: Collection[str]
    """Methods to try again. Default GET, HEAD, PUT, DELETE, OPTIONS, TRACE. The idempotent ones (RFC 9110
    §9.2.2): to send them twice does no harm.
    """

    max_retry_after: Seconds
    """The longest ``Retry-After`` to wait for, in seconds. Default 300. A program that waits for longer
    looks as if it hangs.
    """

    long_retry_after: Literal["fail", "wait", "cap"]
    """What to do beyond it: fail with a ``RetryAfterTooLongError``, wait all the same, or cap the wait at
    ``max_retry_after``, which is earlier than the server asked. The scope is held for as long as
    ``backoff.max_hold`` allows, so cap that, too. Default fail. The only one that neither hangs nor comes
    too early.
    """


class HeaderMapOptions(TypedDict, total=False):
    """How one server's headers are to be read. Names are those of header fields, in any case."""

    reset_unit: Literal["s", "ms"]
    """What a plain number in a reset means. Default s. Seconds are what most servers mean."""

    retry_after_unit: Literal["s", "ms"]
    """What a plain number in ``Retry-After`` means. Default s. RFC 9110 §10.2.3."""

    retry_after: str
    """The field that says how long to wait, read as ``Retry-After``. Default none. The usual fields are read
    without.
    """

    limit: str
    """The field that holds a quota's limit, read as ``X-RateLimit-Limit``. Default none. The usual fields
    are read without.
    """

    remaining: str
    """The field that holds what is left of it, read as ``X-RateLimit-Remaining``. Default none. The usual
    fields are read without.
    """

    reset: str
    """The field that says when it resets, read as ``X-RateLimit-Reset``. Default none. The usual fields are
    read without.
    """


class _ScopeOptionsShared(TypedDict, total=False):
    rate: float | str | RateOptions
    """Requests a second, evenly spaced whatever the latency: ``5``, ``"100/min"`` (``/s``, ``/min``, ``/h``,
    ``/day``), or ``{ limit, per, burst }``. It takes the place of ``delay`` and ``slot_delay``; ``jitter``
    is then 0 and ``concurrency`` the global limit, unless they are typed in the same place. With a
    ``jitter`` each request is put off by up to so much of a gap; the mean stays. Default none. The default
    of ``delay`` is a pace already.
    """
    delay: Seconds
    """Seconds between two sends of the scope, from send to send. Default 1; 0 beside ``rate``, ``quota`` or
    ``rampup``. A second is polite everywhere; whoever sets another pace has thought of one. Scrapy:
    DOWNLOAD_DELAY.
    """
    slot_delay: Seconds
    """Seconds between two sends of one slot, from send to send. Default 1; 0 beside ``delay``, ``rate``,
    ``quota``, ``rampup`` or ``autothrottle``. The draft's second, but only where nothing else was said of
    the pace, in this place or a farther one: it would make five a second one. Scrapy:
    DOWNLOAD_DELAY_PER_SLOT.
    """
    jitter: Jitter
    """Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true is
    ±50 %. The mean is the delay. Default True; with ``rate`` 0. As in Scrapy: requests like clockwork are a
    sign of a program. Scrapy: RANDOMIZE_DOWNLOAD_DELAY, DOWNLOAD_DELAY_JITTER.
    """
    autothrottle: bool | AutoThrottleOptions
    """Let the delay follow the latency: Scrapy's AutoThrottle. The scope's ``delay`` is the least delay
    then. Default False. A delay that was typed should stay; Scrapy's is off, too. Scrapy:
    AUTOTHROTTLE_ENABLED.
    """
    backoff: bool | BackoffOptions
    """Slow down after bad answers. ``False``: bad answers change nothing; what the server asks for
    (``Retry-After``) is kept all the same. Default True. A server that says too fast means it.
    """
    rampup: bool | RampupOptions
    """Find the server's limit and stay just below it. ``delay``, ``slot_delay`` and ``concurrency`` of the
    defaults are no bounds then; what you set for this very scope is. Default False. To look for a limit
    costs refusals: somebody must want it.
    """
    follow_rate_limit: bool
    """Pace by what ``RateLimit`` headers say: the slower of reset / remaining and window / limit. Without it
    they only say when to stop. Default False. Clients that share a limit would be paced by each other's use.
    """
    down_after: Seconds | Literal[False]
    """Seconds of nothing but failed connections and timeouts after which a scope is down: what waits is
    rejected with a ``ScopeDownError``, and one request at a time is let through to see whether the server is
    back. Default False. Whether to wait for a server that is away is the program's own matter: a crawl does,
    a page does not.
    """
    ignore_robots_txt: bool
    """Let robots.txt have no say in the pace of this scope, and do not warn about it. Default False. Whoever
    asks for robots.txt means to keep to it. Scrapy: ignore_robots_txt.
    """
    quota: float | QuotaOptions | Sequence[float | QuotaOptions]
    """Units that the scope may consume per window: a number, ``{ limit, window, strict }``, or a list of
    those. Default none. What a budget is, only its owner knows. Scrapy: quota.
    """
    window: Seconds
    """The window of a quota that names none, in seconds. It starts with the scope's first request. Default
    60. Most limits of APIs are per minute; the draft's number. Scrapy: THROTTLING_WINDOW, window.
    """
    strict: bool
    """Rolling window for quotas that omit ``strict``: never more than the quota in any window-long span.
    Default False. Most servers count in fixed windows, and a rolling one remembers each send.
    """
    manager: ScopeManager | MakeScopeManager
    """A strategy of your own in place of backoff and rampup. In ``defaults`` a function of the scope's name.
    Default none. The ones here need nobody to write code. Scrapy: THROTTLING_SCOPE_MANAGER, manager.
    """


class ScopeOptions(_ScopeOptionsShared, total=False):
    """Settings of one scope."""

    concurrency: int
    """Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with ``rate``
    the global limit. One is what a visitor with a browser tab does. Scrapy: CONCURRENT_REQUESTS_PER_DOMAIN.
    """


class ThrottleOptions(_ScopeOptionsShared, total=False):
    """What a throttle is told. Settings of scopes may stand at the top."""

    concurrency: int
    """Requests in flight, all scopes together. A whole number from 1 to 1000000. Default 16; 256 where a
    scope ramps. Sixteen keep a crawl of many hosts busy and one laptop calm, as in Scrapy; what ``rampup``
    finds may need more. Scrapy: CONCURRENT_REQUESTS.
    """

    defaults: ScopeOptions
    """Settings of every scope that is not named in ``scopes``, and of what those leave out. All but
    ``concurrency`` may stand at the top instead: ``rate=5`` is ``defaults={"rate": 5}``. Typed in both
    places they are an error. Default {}. Each setting's own default is polite.
    """

    scopes: Mapping[str, ScopeOptions]
    """Settings of single scopes, by name. A scope's name is by default the host of the URL. Default {}. No
    host is known before the first request. Scrapy: THROTTLING_SCOPES, DOWNLOAD_SLOTS.
    """

    stall_after: Seconds
    """Seconds of nothing but bad answers after which a scope has stalled: one ``stall`` event, or a
    ``warning`` where nobody listens to that. Default 120. In two minutes somebody who waits for a program
    looks what it is doing.
    """

    seed: int
    """Makes jitter repeat exactly. Default drawn from the system on first use. Two clients with the same
    seed would send in step.
    """

    max_waiting: int
    """Beyond so many waiting requests a new one is refused at once with a ``QueueFullError``. A whole number
    from 1 to 100000000. Default none. How much memory a program may use is not ours to guess;
    ``warn_threshold`` tells before it hurts.
    """

    max_scopes: int
    """Beyond so many scopes the least recently used idle ones are forgotten with what they learned, but
    never one that holds, is paused, has used quota or whose delay lasts. A whole number from 1 to 100000000.
    Default 100000. Some hundred bytes each: tens of megabytes at most, and more hosts than a crawl visits in
    an hour.
    """

    warn_threshold: int
    """So many waiting requests cause one warning. A whole number from 1 to 100000000. Default 500. Each
    keeps its task and its context in memory; whoever has more should pull them (``throttle.map``). The
    draft's number. Scrapy: DELAYED_REQUESTS_WARN_THRESHOLD.
    """

    retry: RetryOptions
    """Whether and how the transports try again. Default none. Clients do not by themselves, and to send a
    request twice is its caller's decision. Scrapy: RETRY_TIMES, RETRY_HTTP_CODES.
    """

    clock: Clock
    """Where time and timers come from. ``FakeClock`` of ``autothrottle.testing`` stands in for it in tests.
    Default the system's. Programs run in real time.
    """

    snapshot: Snapshot
    """Learned state to go on with. A bad or newer one is a ``SnapshotError``, never a half-restored
    throttle. Default none. Where to keep it is the program's own matter.
    """

    shared: Shared
    """One limit for many processes: one of them runs the engine, the others ask it (docs/shared.md). All
    with the same options. Default none. Most programs are one process.
    """

    request_timeout: Seconds
    """Seconds from the send to the headers, after which a request has failed with ``timeout``. Waiting for
    its turn does not count. Default none. A slow server is not a failed one, and clients have limits of
    their own. Scrapy: DOWNLOAD_TIMEOUT.
    """

    hints: Mapping[str, HeaderMapOptions]
    """How to read the headers of servers that speak a dialect of their own, by scope name. Default {}. The
    formats of docs/hints.md are read without.
    """

    get_scopes: GetScopes
    """Names the scopes of a request that names none itself: a name, names, or a map of scope to expected
    cost, perhaps awaitable. What it throws rejects its request as a ``ManagerError``. Helpers: ``by_host``,
    ``by_endpoint``, ``by_domain_hierarchy``, ``add_scope``. Default none. The host of the URL is what
    servers limit by. Scrapy: THROTTLING_MANAGER.
    """

    get_response_backoff: GetResponseBackoff
    """Names the scopes that a response makes back off, where its status does not say it: an API that answers
    200 for a target that refuses. The slot is kept until it has answered; ``None`` lets the status count.
    Default none. A status says it for nearly all servers. Scrapy: THROTTLING_MANAGER.
    """

    get_error_backoff: GetErrorBackoff
    """Names the scopes that a failure makes back off. Default none. A failure is news for all scopes of its
    request. Scrapy: THROTTLING_MANAGER.
    """

    get_response_delay: GetResponseDelay
    """How long a response asks not to be sent anything, in seconds, in place of its headers. Default none.
    Headers are read by themselves. Scrapy: THROTTLING_MANAGER.
    """

    get_hints: GetHints
    """Finds hints that are not in headers (Shopify's and Discord's are in bodies). The slot is kept until it
    has answered. ``None``: the headers count. What it throws rejects the request as a ``ManagerError``.
    Default none. Bodies are the caller's.
    """

    redirect_max_delay: Seconds
    """The longest ``Retry-After`` of a redirect to wait for, in seconds. Beyond it the next hop fails at
    once. Default 300. As long as ``backoff.max_delay`` and ``retry.max_retry_after``. Scrapy:
    REDIRECT_MAX_DELAY.
    """

    release: Literal["headers", "body"]
    """When a request gives its slots back: when the headers are there, or when the body was read, cancelled
    or has failed. A body that nobody reads keeps them until it is collected as garbage. Default headers. A
    body that is forgotten would keep its slot.
    """

    debug: bool
    """Prints AutoThrottle's line for each response with the logger ``autothrottle``: slot, in flight, delay
    and its change, latency. Default False. A library is silent. Scrapy: AUTOTHROTTLE_DEBUG.
    """

    warnings: bool
    """Whether a warning that nobody listens to (``throttle.on("warning", …)``) is one line of
    ``warnings.warn``, once for each code and scope. Default True. A setting without effect, or a throttle
    that hears nothing, is found out before the ban.
    """

"""The engine itself, for people with a loop of their own: no timers, no tasks, no clock.

After every mutation (``submit``, ``settle``, ``cancel``, ``configure``, the passing of time) call ``poll``.
It gives all that may be sent now, and the next instant at which to ask. Asking early, late or twice is
harmless.

All times are ``int`` nanoseconds: instants of a clock that only goes forward (``time.monotonic_ns()``),
spans, and wall time (``time.time_ns()``). Options are those of ``docs/settings.md``: camelCase and
milliseconds, the one document that every host of this engine shares.

``crates/bindings/python`` makes this module.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import Self

from ._records import Failure, Notice, Robots, ScopeStats, SettledKind, Stats, Watching
from ._state import Decision, HeaderMap, Headers, Hints, HintsRead, Peek, ScopeOutcome, Settled

SECTIONS: dict[str, dict[str, tuple[str, str]]]
"""Which settings there are: section → the key in Python's case → the engine's key, and what is in it."""
DRIVER: list[str]
"""Those that only the driver reads."""
SCRAPY_SETTINGS: dict[str, tuple[str, str, str]]
"""Scrapy's name of a setting → section, key and kind of the option. Of several names the first counts."""
SCRAPY_DEFAULTS: dict[str, Any]
"""The values that hold under Scrapy's names, where the engine's own default is another."""
SCRAPY_KEYS: dict[str, dict[str, tuple[str, str]]]
"""Section → key in a dict of THROTTLING_SCOPES → key and kind of the option."""
NO_ANSWER: str
NO_ANSWER_BY_TLS: str
COMPETE: str
"""The scripts of the store: see ``crates/shared/src/store.rs``."""
RENEW: str
SEND: str
RELEASE: str
TELL: str

class Engine:
    """Decides when requests may be sent.

    Threads may share one: each call is one step.

    .. code-block:: python

        engine = Engine({"defaults": {"delay": 1000, "jitter": False}})
        scope = engine.scope("example.com")
        ticket = engine.submit(0, [scope])
        assert engine.poll(0).send == [ticket]
        engine.settle(80_000_000, ticket, status=200, latency=80_000_000)
    """

    def __init__(self, options: Mapping[str, object] | None = None, *, seed: int | None = None) -> None:
        """:param seed: for jitter, where the options name none. Default: another one each time.
        :raises ConfigError: listing every problem of the options.
        """

    # written by `cargo xtask write`: verbs
    def scope(self, name: str) -> int:
        """The handle of a scope, made on first use and good until it is released."""

    def intern(self, name: str) -> int:
        """A handle that may be forgotten when its scope is idle: use it at once, or
        ``keep_alive`` it first.
        """

    def find(self, name: str) -> int | None:
        """The handle of a known scope. Makes none and keeps none. ``None`` for another name."""

    def keep_alive(self, scope: int) -> bool:
        """Whether the handle still means what it meant; if so, its scope stays at least until the next
        ``poll``.
        """

    def release(self, scope: int) -> None:
        """Gives a handle back: its scope is forgotten now if it looks like new, and may be later beyond
        ``maxScopes``.
        """

    @property
    def scopes(self) -> int:
        """How many scopes the engine knows."""

    def name(self, scope: int) -> str | None:
        """The name behind a handle."""

    def wants_route(self, ticket: int, has_fields: bool = False) -> bool:
        """Whether the ``route`` of a request is to be named. Ask after ``submit``; of what waits when the
        notice ``budgets`` comes; and before ``settle``, where ``has_fields`` says that header fields follow.
        """

    def route(self, now: int, ticket: int, method: str, url: str) -> None:
        """Names the route of a request, where it is wanted, by its method and URL. Poll afterwards."""

    def sent_at(self, now: int, ticket: int) -> None:
        """Says that the request that ``poll`` gave left only at ``now``: the delays of its scopes, and what
        rampup found, count from there. For a loop that is busy between the two. It may come later: an instant
        that is over counts as it is. Unknown tickets, and those that were not sent, are ignored.
        """

    def cancel(self, now: int, ticket: int) -> None:
        """Takes a waiting request out; one that was allowed to leave but never did gives everything back."""

    def prioritize(self, now: int, ticket: int, priority: float) -> None:
        """Gives a waiting request another priority; it keeps its age. Other tickets are ignored. Poll
        afterwards.
        """

    def hold(self, now: int, scope: int, span: int) -> None:
        """Sends no request of this scope for that long. A hold that is longer already stays."""

    def reset(self, now: int, scope: int) -> None:
        """Forgets what this scope learned and lifts its hold. The spent parts of quotas and budgets, settings
        and requests in flight stay. Poll afterwards.
        """

    @property
    def waiting(self) -> int:
        """Requests that wait."""

    @property
    def in_flight(self) -> int:
        """Requests in flight."""

    @property
    def warn_threshold(self) -> int:
        """The setting ``warnThreshold``: more waiting requests than that cause a warning."""

    def retries(self, method: str) -> int:
        """How often a request of this method is sent again at most, by the setting ``retry``."""

    @property
    def has_notices(self) -> bool:
        """Whether there is something for ``take_notices``."""

    # end of what is written
    def submit(
        self,
        now: int,
        scopes: Sequence[int],
        *,
        cost: float | Sequence[float] = 1,
        priority: float = 0,
        delay: int = 0,
        waited: int = 0,
    ) -> int:
        """Takes a request in. It waits, also if it could leave at once: ``poll`` says when.

        :param scopes: handles; all must agree.
        :param cost: expected cost in units of the scopes' quotas: one for all, or one each.
        :param priority: higher is first.
        :param delay: it is not sent before that many nanoseconds from now.
        :param waited: how long it has waited where another engine had it: its place is by age.
        :raises CostExceedsQuotaError: if it could never be sent.
        :raises QueueFullError: if ``maxWaiting`` requests wait already.
        :raises ValueError: for unknown scopes and for numbers that are none.
        """

    def adopt(
        self,
        now: int,
        scopes: Sequence[int],
        ago: int,
        *,
        cost: float | Sequence[float] = 1,
        priority: float = 0,
        waited: int = 0,
    ) -> int:
        """Takes in a request that another engine sent, ``ago`` before now, and that is in flight still: it
        has its slots, its cost is taken, and gaps count from its send. No limit refuses it. A request that
        left before the snapshot of ``restore`` was taken has its slots only, for the rest is in there. Tell
        the oldest first.

        :raises ValueError: for unknown scopes and for numbers that are none.
        """

    def send_at_once(
        self,
        now: int,
        scopes: Sequence[int],
        *,
        cost: float | Sequence[float] = 1,
        priority: float = 0,
    ) -> int | None:
        """``submit`` and the first ``poll`` in one, where no request waits and no limit keeps this one: a
        ticket to send now. ``None``: it must be submitted, and no state has changed. Raises as ``submit``
        does.
        """

    def poll(self, now: int) -> Decision:
        """The next request to send, or the instant to ask again."""

    def settle(
        self,
        now: int,
        ticket: int,
        *,
        status: int | None = None,
        failure: Failure | None = None,
        latency: int | None = None,
        headers: Headers | None = None,
        header_map: HeaderMap | None = None,
        hints: Hints | None = None,
        wall: int | None = None,
        backoff: bool | None = None,
        cost: float | None = None,
        adjust_delay: bool = True,
        scopes: Sequence[ScopeOutcome] = (),
        named_only: bool = False,
        retry: bool = False,
        replayable: bool = True,
        retry_delay: int | None = None,
        silent: bool = False,
    ) -> Settled:
        """Tells how a request ended. Unknown tickets, and those that were not sent, are ignored. Without
        ``status`` and ``failure`` no pace changes: the caller gave up.

        :param status: of the response, 100 to 599.
        :param failure: why no response came.
        :param latency: from send to response headers. Without it AutoThrottle keeps its delay.
        :param headers: the response's; what they ask for is kept.
        :param header_map: how to read them, for servers with a dialect of their own.
        :param hints: take the place of ``headers``.
        :param wall: wall time now, for dates in responses without a ``Date``.
        :param backoff: whether the answer is bad, for who knows better than the status and
            ``backoff.statusCodes``.
        :param cost: what the request really cost, if that is not what was expected.
        :param adjust_delay: ``False`` keeps AutoThrottle's delay as it is.
        :param scopes: what it means for single scopes, where that is another thing.
        :param named_only: ``scopes`` names those that it concerns. It is bad for each of them without a cost
        or
            a rest of its quota; the others ignore a refusal.
        :param retry: the request may be sent again: its method and body allow it, and there are attempts
            left. Whether it is, and not before when, is decided by the settings and the server.
        :param replayable: ``False`` for what can't be sent twice: where it would be sent again, it is
            ``not-replayable``.
        :param retry_delay: it is sent again whatever it was, not before that many nanoseconds from now.
        :param silent: a server was asked, and there is no word about its answer. After twenty in a row a
            notice says it.
        """

    def digest(
        self, *, retry: bool = False, retry_delay: int | None = None, **outcome: Any
    ) -> tuple[Settled, list[float]]:
        """The answer that ``settle`` would give for a request that another engine with the same options has
        sent, and the arguments for ``settle_digest`` there. Changes no state. Takes the outcome as ``settle``
        does.
        """

    def settle_digest(self, now: int, ticket: int, numbers: Sequence[float]) -> SettledKind:
        """``settle`` with what the ``digest`` of another engine says."""

    def peek(self, now: int, scopes: Sequence[int | None], *, cost: float | Sequence[float] = 1) -> Peek:
        """When a request could be sent as things stand, and why not now. Changes no state. A scope ``None``
        (from ``find``) is one that there is not yet: it allows everything. Raises as ``submit`` does.
        """

    def configure(self, now: int, scope: int, options: Mapping[str, object]) -> None:
        """Changes settings of one scope and keeps what it learned. Poll afterwards.

        :raises ConfigError: listing every problem; then no state is changed.
        """

    def crawl_delay(self, now: int, scope: int, delay: int | None) -> Robots:
        """Sets the pace that the robots.txt of this scope asks for: one slot and this delay in place of the
        defaults. Poll afterwards.
        """

    def adjust(self, now: int, scope: int, sent: int, charged: float, cost: float) -> None:
        """Corrects the cost in this scope of a request that left at ``sent`` to ``cost``, where ``charged``
        has been taken for it so far. It may have been settled. Poll afterwards.
        """

    def pause(self, now: int, scope: int | None = None) -> None:
        """Sends no request of this scope, or of all, until ``resume``."""

    def resume(self, now: int, scope: int | None = None) -> None:
        """Ends a pause. Poll afterwards."""

    def stats(self, now: int) -> Stats:
        """Statistics of the engine and of all scopes."""

    def scope_stats(self, now: int, scope: int) -> ScopeStats:
        """The state of one scope.

        :raises ValueError: for an unknown scope.
        """

    def snapshot(self, now: int, wall: int | None = None) -> dict[str, Any]:
        """The learned state, as plain JSON that every host of this engine can restore: a closed box."""

    def restore(self, snapshot: Mapping[str, object], now: int, wall: int | None = None) -> None:
        """Goes on where a snapshot was taken, here or elsewhere; before the first ``scope`` and ``submit``.

        :raises SnapshotError: listing every problem; then no state is changed.
        """

    def watch(self, level: Watching) -> None:
        """How much notices tell of answers from now on."""

    def take_notices(self) -> list[Notice]:
        """The notices since the last call."""

    def close(self) -> None:
        """Gives the engine's memory back at once. No method may be called afterwards."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

def parse_hints(
    headers: Headers,
    *,
    status: int = 429,
    wall: int | None = None,
    header_map: HeaderMap | None = None,
) -> HintsRead:
    """The limits in a response's headers: waits, quotas, resets, in all dialects of ``docs/hints.md``.

    :param status: the response's; on good ones an explicit wait has no meaning.
    :param wall: wall time in nanoseconds since 1970, for responses without a ``Date``.
    """

MOST_ROBOTS_BYTES: int
"""The number of bytes of a robots.txt that count (RFC 9309 §2.5)."""

def authority_of(url: str) -> tuple[str, int | None] | None:
    """The server of an absolute URL: the host as it was typed, and the port where it is not the scheme's
    own."""

def host_name(host: str) -> str | None:
    """The name of a host in ASCII; ``None`` where no server has this name."""

def robots_rules(robots: str, user_agent: str) -> bytes:
    """The rules of a robots.txt for ``user_agent``, for ``robots_allow``."""

def robots_allow(rules: bytes, url: str) -> bool:
    """Whether rules allow a URL, or a path and its query."""

def parse_robots(robots: bytes | str, user_agent: str) -> int | None:
    """The delay that a robots.txt asks of ``user_agent`` (a product token or a whole User-Agent header), in
    nanoseconds. It is the slower of ``Crawl-delay`` and ``Request-rate``; ``None`` if it names none.
    """

def check_driver_options(options: Mapping[str, object]) -> None:
    """Checks the options that only a driver reads; functions may be among them.

    :raises ConfigError: listing every problem.
    """

def is_for_good(why: str) -> bool:
    """Whether a failure of a group's store will not heal by itself: rights, keys, passwords."""

def nearest_name(typed: str, known: Sequence[str]) -> str | None:
    """The name that was meant by one that is not known, if one is near enough."""

class LlmBody:
    """Reads the body of a language model's answer in passing: plain JSON, or the events of a stream."""

    def __init__(self, is_stream: bool, is_cached_free: bool) -> None: ...
    def hear(self, part: bytes) -> None:
        """A part was read, wherever it was cut."""

    def end(self) -> None:
        """The body is over."""

    @property
    def input(self) -> float | None: ...
    @property
    def free(self) -> float: ...
    @property
    def output(self) -> float | None: ...
    @property
    def written(self) -> float: ...
    @property
    def is_broken(self) -> bool: ...
    @property
    def is_whole(self) -> bool: ...

def llm_refusal(
    status: int, wait: float, has_retry_after: bool, is_told_final: bool, is_anthropic: bool, text: bytes
) -> tuple[float | None, bool, str | None]:
    """Reads a refusal of a language model: seconds to wait, whether no wait helps, and its budget. ``wait``
    is that of its header fields, 0 where they ask for none.
    """

def llm_asked(
    host: str,
    path: str,
    method: str,
    body: bytes,
    form_model: str | None,
    vendor: str | None,
    keeps_texts: bool,
) -> tuple[str, str | None, float, float, float, float | None, bool, list[str]]:
    """Reads a request to a language model: vendor, model, characters, bytes, tokens, the most that may come
    out. Then whether a part of it is not counted, and the texts that the user counts.
    """

def llm_reported(
    vendor: str, policy: str, limit: float, remaining: float | None, reset: float
) -> tuple[str, float, float | None, float] | None:
    """Reads a quota of the headers: the budget that it is, its limit, what is left, and its seconds."""

class LlmPlan:
    """The expected size of a call."""

    @property
    def costs(self) -> list[tuple[str, float]]:
        """The amount that it takes of each budget."""

class LlmBudgets:
    """The accounts of one model and key. After each verb the host configures ``changes``, looks when what it
    ``asks`` could leave, and charges what ``carry`` says.
    """

    def __init__(
        self,
        vendor: str | None,
        limits: tuple[float, float, float, float, float],
        is_sliding: bool | None,
        is_cached_free: bool | None,
        headroom: float,
        is_max: bool | None,
        is_counted: bool,
        concurrency: float,
    ) -> None: ...
    @property
    def is_known(self) -> bool: ...
    @property
    def is_cached_free(self) -> bool: ...
    @property
    def needs_usage(self) -> bool: ...
    @property
    def kinds(self) -> list[str]: ...
    def changes(
        self,
    ) -> list[tuple[str, float, tuple[float, float, float] | None, list[tuple[float, float]]]]:
        """Slots of a scope; limit, window and burst of its rate; limit and window of each quota."""

    def plan(self, characters: float, size: float, tokens: float, bound: float | None) -> LlmPlan: ...
    def begin(self, now: float, plan: LlmPlan) -> int:
        """The call leaves, and this is its number."""

    def wrote(self, call: int, input: float | None, written: float) -> bool:  # noqa: A002
        """More was written. Whether something is due."""

    def report(
        self,
        now: float,
        call: int,
        kind: str,
        limit: float,
        left: float | None,
        per: float,
        wait: float | None,
    ) -> None: ...
    def answered(self, call: int, is_stream: bool) -> None: ...
    def gone(self, call: int, was_sent: bool) -> None: ...
    def refused(self, now: float, call: int, kind: str | None, wait: float) -> None: ...
    def ended(
        self,
        now: float,
        call: int,
        input: float | None,  # noqa: A002
        free: float,
        output: float | None,
        written: float,
        is_whole: bool,
    ) -> bool:
        """Whether what it took had to be estimated."""

    def asks(self) -> list[tuple[str, float]]:
        """The amounts whose waits ``carry`` wants to know."""

    def carry(self, now: float, waits: list[tuple[str, float]]) -> list[tuple[int, str, float]]:
        """Of each charge the call, the budget and the cost."""

class Shared:
    """One process of a group that shares a limit: the machine of ``shared/``. Instants and spans are whole
    nanoseconds; an effect is its name, then what belongs to it."""

    def __init__(
        self,
        id: str,  # noqa: A002
        options: Mapping[str, object],
        *,
        lease: int,
        offline: str | None,
        members: int | None,
        seed: int,
        snapshot: Mapping[str, object] | None = None,
        wall: int | None = None,
    ) -> None: ...
    def open(self, now: int) -> None: ...
    @property
    def scopes(self) -> int: ...
    def find(self, name: str) -> int | None: ...
    def intern(self, name: str) -> int: ...
    def scope(self, name: str) -> int: ...
    def release(self, scope: int) -> None: ...
    def keep_alive(self, scope: int) -> bool: ...
    def name(self, scope: int) -> str | None: ...
    # written by `cargo xtask write`: verbs of a group
    def wants_route(self, ticket: int, has_fields: bool = False) -> bool: ...
    def route(self, now: int, ticket: int, method: str, url: str) -> None: ...
    def sent_at(self, now: int, ticket: int) -> None: ...
    def cancel(self, now: int, ticket: int) -> None: ...
    @property
    def waiting(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def warn_threshold(self) -> int: ...
    def retries(self, method: str) -> int: ...
    # end of what is written
    def submit(
        self, now: int, scopes: Sequence[int], cost: float | Sequence[float], priority: float, delay: int
    ) -> int | list[Any]:
        """A ticket, or why it is refused."""

    def poll(self, now: int) -> int | None: ...
    @property
    def is_awaited(self) -> bool: ...
    def settle(self, now: int, ticket: int, **outcome: Any) -> Settled: ...
    def configure(self, now: int, scope: int, options: Mapping[str, object]) -> None: ...
    def crawl_delay(self, now: int, scope: int, delay: int | None) -> Robots: ...
    def hold(self, now: int, scope: int, span: int) -> None: ...
    def adjust(self, now: int, scope: int, sent: int, charged: float, cost: float) -> None: ...
    def pause(self, now: int, scope: int | None) -> None: ...
    def resume(self, now: int, scope: int | None) -> None: ...
    def reset(self, now: int, scope: int) -> None: ...
    def watch(self, now: int, level: int) -> None: ...
    def timeout(self, now: int) -> None: ...
    def opened(self, now: int) -> None: ...
    def received(self, now: int, frame: bytes) -> None: ...
    def elected(self, now: int, op: int, epoch: int, stored: bytes | None, age: int) -> None: ...
    def answered(self, now: int, op: int, is_ours: bool) -> None: ...
    def failed(self, now: int, op: int, why: str, is_denied: bool) -> None: ...
    def fenced(self, now: int, epoch: int) -> None: ...
    def unheard(self, now: int, member: str, epoch: int) -> None: ...
    def vacant(self, now: int, ended: bool) -> None: ...
    def poll_effect(self, now: int) -> tuple[Any, ...] | None: ...
    @property
    def wake_at(self) -> int | None: ...
    def close(self, now: int) -> None: ...
    def peek(
        self, now: int, scopes: Sequence[int | None], cost: float | Sequence[float]
    ) -> tuple[int | None, Any, int | None]:
        """When, why not now, and which scope says so."""

    def stats(self, now: int) -> Stats: ...
    def scope_stats(self, now: int, scope: int) -> ScopeStats: ...
    def snapshot(self, now: int, wall: int | None = None) -> dict[str, Any]: ...

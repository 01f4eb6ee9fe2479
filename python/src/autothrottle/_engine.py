"""The engine itself, for people with a loop of their own: no timers, no tasks, no clock.

Every mutation (``submit``, ``settle``, ``cancel``, ``configure``, the passing of time) is followed by
``poll``, which gives all that may be sent now and the next instant at which to ask. Asking early, late or
twice is harmless.

All times are ``int`` nanoseconds: instants of a clock that only goes forward (``time.monotonic_ns()``),
spans, and wall time (``time.time_ns()``). Options are those of ``docs/settings.md``: camelCase and
milliseconds, the one document that every host of this engine shares.

The trap is a number that ctypes cuts to its lowest bits without a word: so each one is looked at first.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ._documents import document
from ._errors import ConfigError, SnapshotError
from ._headers import HeaderMap, Headers
from ._numbers import (
    MOST,
    costs_of,
    handles,
    needs_of,
    real,
    refused,
    span,
    text,
    whole,
)
from ._reading import check_driver_options, nearest_name, parse_hints, parse_robots
from ._reports import outcome_of
from ._state import (
    Decision,
    Failure,
    Hints,
    HintsRead,
    Notice,
    Outcome,
    Peek,
    QuotaHint,
    Reason,
    Robots,
    ScopeOutcome,
    ScopeStats,
    Settled,
    Stats,
    Watching,
    notice_of,
    scope_stats_of,
)
from ._wasmtime import THROTTLING, Err, Instance

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Decision",
    "Engine",
    "Failure",
    "HeaderMap",
    "Headers",
    "Hints",
    "HintsRead",
    "Notice",
    "Outcome",
    "Peek",
    "QuotaHint",
    "Reason",
    "Robots",
    "ScopeOutcome",
    "ScopeStats",
    "Settled",
    "Stats",
    "Watching",
    "check_driver_options",
    "nearest_name",
    "parse_hints",
    "parse_robots",
]


class Engine:
    """Decides when requests may be sent.

    Not for several threads at once: who has some holds a lock.

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
        seed = secrets.randbits(64) if seed is None else whole("seed", seed)
        self._instance = Instance()
        made = self._instance.construct(
            THROTTLING, "engine", document({} if options is None else options), seed
        )
        if isinstance(made, Err):
            self._instance.close()
            raise ConfigError(made.error)
        methods = self._instance.methods(THROTTLING, "engine", made)
        self._call: dict[str, Any] = methods
        self._submit, self._poll, self._settle = methods["submit"], methods["poll"], methods["settle"]

    def scope(self, name: str) -> int:
        """The handle of a scope, made on first use and good until it is released."""
        return self._call["scope"](text("scope", name))  # type: ignore[no-any-return]

    def release(self, scope: int) -> None:
        """Gives a handle of ``scope`` back: the scope may be forgotten when it is idle."""
        self._call["release"](whole("scope", scope))

    def intern(self, name: str) -> int:
        """A handle that may be forgotten when its scope is idle: use it at once, or ``keep_alive`` it
        first.
        """
        return self._call["intern"](text("scope", name))  # type: ignore[no-any-return]

    def keep_alive(self, scope: int) -> bool:
        """Whether the handle still means what it meant; if so, its scope stays at least until the next
        ``poll``.
        """
        return self._call["keep-alive"](whole("scope", scope))  # type: ignore[no-any-return]

    def find(self, name: str) -> int | None:
        """The handle of a scope that the engine knows. Makes none."""
        return self._call["find"](text("scope", name))  # type: ignore[no-any-return]

    def name(self, scope: int) -> str | None:
        """The name behind a handle."""
        return self._call["name"](whole("scope", scope))  # type: ignore[no-any-return]

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
        :param delay: not to be sent before so long from now.
        :param waited: how long it has waited where another engine had it: its place is by age.
        :raises CostExceedsQuotaError: if it could never be sent.
        :raises QueueFullError: if ``maxWaiting`` requests wait already.
        :raises ValueError: for unknown scopes and for numbers that are none.
        """
        needs = needs_of(cost, priority, delay, waited)
        ticket = self._submit(whole("now", now), handles(scopes), needs)
        return refused(ticket) if isinstance(ticket, Err) else ticket  # type: ignore[no-any-return]

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
        has its slots, its cost is taken, and gaps count from its send. No limit refuses it. What left before
        the snapshot of ``restore`` was taken has its slots only, for the rest is in there. Tell the oldest
        first.

        :raises ValueError: for unknown scopes and for numbers that are none.
        """
        needs = needs_of(cost, priority, 0, waited)
        ticket = self._call["adopt"](whole("now", now), handles(scopes), needs, whole("ago", ago))
        return refused(ticket) if isinstance(ticket, Err) else ticket  # type: ignore[no-any-return]

    def send_at_once(
        self,
        now: int,
        scopes: Sequence[int],
        *,
        cost: float | Sequence[float] = 1,
        priority: float = 0,
    ) -> int | None:
        """``submit`` and the first ``poll`` in one, where nobody waits and nothing keeps the request: a
        ticket to send now. ``None``: it must be submitted, and nothing has changed. Raises as ``submit``
        does.
        """
        needs = needs_of(cost, priority)
        ticket = self._call["send-at-once"](whole("now", now), handles(scopes), needs)
        return refused(ticket) if isinstance(ticket, Err) else ticket  # type: ignore[no-any-return]

    def poll(self, now: int) -> Decision:
        """What to send now, and when to ask again."""
        send, wake, because = self._poll(whole("now", now))
        scope, reason = because or (None, None)
        return Decision(send, wake, reason, scope)

    def left(self, now: int, ticket: int) -> None:
        """Says that the request that ``poll`` gave left only now: the delays of its scopes count from here.
        For a loop that is busy between the two. Unknown tickets, and those that were not sent, are ignored.
        """
        self._call["left"](whole("now", now), whole("ticket", ticket))

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
        retry_delay: int | None = None,
    ) -> Settled:
        """Tells how a request ended. Unknown tickets, and those that were not sent, are ignored. Without
        ``status`` and ``failure`` it says nothing: the caller gave up.

        :param status: of the response, 100 to 599.
        :param failure: why no response came.
        :param latency: from send to response headers. Without it AutoThrottle learns nothing.
        :param headers: the response's; what they ask for is kept.
        :param header_map: how to read them, for servers with a dialect of their own.
        :param hints: take the place of ``headers``.
        :param wall: wall time now, for dates in responses without a ``Date``.
        :param backoff: whether the answer is bad, for who knows better than the status and
            ``backoff.statusCodes``.
        :param cost: what the request really cost, if that is not what was expected.
        :param adjust_delay: ``False`` keeps AutoThrottle's delay as it is.
        :param scopes: what it means for single scopes, where that is another thing.
        :param named_only: ``scopes`` names whom it concerns: it is bad for each of them that says nothing of
            a cost or of what is left, and a refusal is ignored by the others.
        :param retry: the request may be sent again: its method and body allow it, and there are attempts
            left. Whether it is, and not before when, is decided by the settings and the server.
        :param retry_delay: it is sent again whatever it was, not before so long from now.
        """
        answer, latency, report = outcome_of(
            status=status,
            failure=failure,
            latency=latency,
            headers=headers,
            header_map=header_map,
            hints=hints,
            wall=wall,
            backoff=backoff,
            cost=cost,
            adjust_delay=adjust_delay,
            scopes=scopes,
            named_only=named_only,
        )
        now, ticket = whole("now", now), whole("ticket", ticket)
        if retry_delay is not None:
            delay = whole("retry_delay", retry_delay)
            return Settled(*self._call["retry"](now, ticket, answer, latency, delay, report))
        return Settled(*self._settle(now, ticket, answer, latency, bool(retry), report))

    def digest(
        self, *, retry: bool = False, retry_delay: int | None = None, **outcome: Any
    ) -> tuple[Settled, list[float]]:
        """What ``settle`` would answer of a request that another engine with the same options has sent, and
        what that one is to be told by ``settle_told``. Changes nothing. Takes the outcome as ``settle`` does.
        """
        answer, latency, report = outcome_of(**outcome)
        delay = span("retry_delay", retry_delay)
        settled, told = self._call["digest"](answer, latency, bool(retry), delay, report)
        return Settled(*settled), told

    def settle_told(self, now: int, ticket: int, told: Sequence[float]) -> Outcome:
        """``settle`` with what the ``digest`` of another engine says."""
        numbers = [float(number) for number in told]
        now, ticket = whole("now", now), whole("ticket", ticket)
        return self._call["settle-told"](now, ticket, numbers)  # type: ignore[no-any-return]

    def cancel(self, now: int, ticket: int) -> None:
        """Takes a waiting request out; one that was allowed to leave but never did gives everything back."""
        self._call["cancel"](whole("now", now), whole("ticket", ticket))

    def prioritize(self, now: int, ticket: int, priority: float) -> None:
        """Gives a waiting request another priority; it keeps its age. Poll afterwards."""
        self._call["prioritize"](whole("now", now), whole("ticket", ticket), real("priority", priority))

    def peek(self, now: int, scopes: Sequence[int | None], *, cost: float | Sequence[float] = 1) -> Peek:
        """When a request could be sent as things stand, and why not now. Changes nothing. A scope ``None``
        (from ``find``) is one that there is not yet: it allows everything. Raises as ``submit`` does.
        """
        costs = costs_of(cost)
        known = [
            (scope, costs[min(place, len(costs) - 1)])
            for place, scope in enumerate(scopes)
            if scope is not None
        ]
        if scopes:
            found, costs = handles([scope for scope, _ in known]), [each for _, each in known]
        else:
            found = [MOST]  # No scope at all is a mistake here, as in ``submit``.
        answer = self._call["peek"](whole("now", now), found, costs)
        if isinstance(answer, Err):
            refused(answer)
        at, because = answer
        scope, reason = because or (None, None)
        return Peek(at, reason, scope)

    def configure(self, now: int, scope: int, options: Mapping[str, object]) -> None:
        """Changes settings of one scope and keeps what it learned. Poll afterwards.

        :raises ConfigError: listing every problem; nothing is changed then.
        """
        changed = self._call["configure"](whole("now", now), whole("scope", scope), document(options))
        if isinstance(changed, Err):
            raise ConfigError(changed.error)

    def crawl_delay(self, now: int, scope: int, delay: int | None) -> Robots:
        """What the robots.txt of this scope asks for: one slot and this delay in place of the defaults. Poll
        afterwards.
        """
        now, scope, delay = whole("now", now), whole("scope", scope), span("delay", delay)
        return self._call["crawl-delay"](now, scope, delay)  # type: ignore[no-any-return]

    def hold(self, now: int, scope: int, span: int) -> None:
        """Sends nothing of this scope for so long. A hold that is longer already stays."""
        self._call["hold"](whole("now", now), whole("scope", scope), whole("span", span))

    def pause(self, now: int, scope: int | None = None) -> None:
        """Sends nothing of this scope, or of all, until ``resume``."""
        self._call["pause"](whole("now", now), span("scope", scope))

    def resume(self, now: int, scope: int | None = None) -> None:
        """Ends a pause. Poll afterwards."""
        self._call["resume"](whole("now", now), span("scope", scope))

    def reset(self, now: int, scope: int) -> None:
        """Forgets what this scope learned and lifts its hold. Settings and what is in flight stay. Poll
        afterwards.
        """
        self._call["reset"](whole("now", now), whole("scope", scope))

    def stats(self, now: int) -> Stats:
        """The state of everything."""
        stats: tuple[Any, ...] = self._call["stats"](whole("now", now))
        plain: list[Any] = [*stats[:-1], {scope[0]: scope_stats_of(scope[1:]) for scope in stats[-1]}]
        return Stats(*plain)

    def scope_stats(self, now: int, scope: int) -> ScopeStats:
        """The state of one scope.

        :raises ValueError: for an unknown scope.
        """
        stats = self._call["scope-stats"](whole("now", now), whole("scope", scope))
        return refused(Err(("unknown-scope", None))) if stats is None else scope_stats_of(stats[1:])

    def snapshot(self, now: int, wall: int | None = None) -> dict[str, Any]:
        """What was learned, as plain JSON that every host of this engine can restore: a closed box."""
        wall = span("wall", wall)
        return json.loads(self._call["snapshot"](whole("now", now), wall))  # type: ignore[no-any-return]

    def restore(self, snapshot: Mapping[str, object], now: int, wall: int | None = None) -> None:
        """Goes on where a snapshot was taken, here or elsewhere; before the first ``scope`` and ``submit``.

        :raises SnapshotError: listing every problem; nothing is changed then.
        """
        wall = span("wall", wall)
        restored = self._call["restore"](document(snapshot), whole("now", now), wall)
        if isinstance(restored, Err):
            raise SnapshotError(restored.error)

    def watch(self, level: Watching) -> None:
        """How much notices tell of answers from now on."""
        if level not in ("nothing", "changes", "answers"):
            raise ValueError(f"level: want 'nothing', 'changes' or 'answers'; got {level!r}")
        self._call["watch"](level)

    @property
    def has_notices(self) -> bool:
        """Whether ``take_notices`` has something to give."""
        return self._call["has-notices"]()  # type: ignore[no-any-return]

    def take_notices(self) -> list[Notice]:
        """What people should know, since the last call."""
        return [notice_of(notice) for notice in self._call["take-notices"]()]

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return self._call["waiting"]()  # type: ignore[no-any-return]

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return self._call["in-flight"]()  # type: ignore[no-any-return]

    @property
    def scopes(self) -> int:
        """How many scopes the engine knows."""
        return self._call["scopes"]()  # type: ignore[no-any-return]

    @property
    def warn_threshold(self) -> int:
        """The setting ``warnThreshold``: so many waiting requests are worth a warning."""
        return self._call["warn-threshold"]()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Gives the engine's memory back at once. Nothing may be called afterwards."""
        if not isinstance(self._call, _Closed):
            self._call = _Closed()
            self._submit = self._poll = self._settle = _closed
            self._instance.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Closed(dict[str, Any]):
    """The calls of an engine that was closed."""

    def __missing__(self, name: str) -> Any:
        return _closed


def _closed(*_: object) -> NoReturn:
    raise ValueError("the engine is closed")

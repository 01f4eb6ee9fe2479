"""The shared part of the throttles for tasks and for threads: how they are made, asked and changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from ._clock import NANOS, Clock, SystemClock, nanos
from ._convert import convert_options, problem_of_span
from ._events import Events
from ._exchange import Robots
from ._hooks import ScopeRequest, ask, checked_scopes
from ._managers import ManagedScopes
from ._native import SECTIONS, parse_robots
from ._permit import Permit, Wait, Waiting
from ._requests import Settings
from ._scheduler import Scheduler
from ._scopes import Scopes, add_scope, checked_name, host_of, host_of_name, named_scopes, problem_of_name
from ._seconds import Peek
from ._stats import ScopeStats, Stats
from ._watch import ROW
from .errors import ConfigError, Problem, ThrottleTimeoutError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import ScopeOptions, Seconds


T = TypeVar("T")


class BaseThrottle:
    """The part of a throttle without waits."""

    _Scheduler: Callable[..., Scheduler]
    _is_plain = False
    _robots: Robots | None = None

    def _new_lock(self) -> AbstractAsyncContextManager[Any]:
        """A lock for tasks, or for threads."""
        raise NotImplementedError

    def __init__(self, options: Mapping[str, Any]) -> None:
        made = convert_options(options, is_clock)
        managed, problems = ManagedScopes.of(options)
        made.problems.extend(problems)
        self._clock: Clock = options.get("clock") or SystemClock()
        if not is_clock(self._clock):
            self._clock = SystemClock()
        shared = options.get("shared")
        if shared is not None and managed is not None:
            made.problems.append(Problem("shared", "no manager beside it: it is of one process", "one"))
        usable = shared if callable(getattr(shared, "open_host", None)) else None
        self._scheduler = self._Scheduler(made, self._clock, managed, usable)
        snapshot = options.get("snapshot")
        if snapshot is not None:
            self._scheduler.engine.restore(snapshot, self._clock.now(), self._clock.wall())
        self._settings = Settings.of(options, made.driver)
        self._robots_hosts: set[str] = set()
        robots = options.get("robots")
        if robots is not None and robots.get("obey") is not False:
            self._robots = Robots(robots, self._clock, self._new_lock)
        # As they were typed, for calls of language models, which have rules of their own.
        self._typed = frozenset(options.get("scopes") or ())
        slots = options.get("concurrency") or (options.get("defaults") or {}).get("concurrency") or 0
        self._concurrency = int(options.get("max_in_flight") or max(16, slots))
        self._events: Events = self._scheduler.events
        self.on = self._events.on
        """Calls a listener for each event of a kind; also a decorator: ``@throttle.on("backoff")``."""
        self.off = self._events.off
        """Stops calling a listener."""
        if isinstance(self._clock, SystemClock):
            ROW.made(self._scheduler.tally, self._scheduler.warn)
        for key, note in made.notes:
            kind, _, name = key.partition(" ")
            if kind != "scopes":
                self._scheduler.warn("suspicious-unit", note, about=key)
            elif self._settings.get_scopes is None:
                self._scheduler.warn("no-effect", note, about=name)

    def __setattr__(self, name: str, value: object) -> None:
        if (name in SECTIONS["Scope"] or name in SECTIONS["Root"]) and not hasattr(type(self), name):
            kind = type(self).__name__
            raise AttributeError(f"{name}: want it as an option, {kind}({name}=…)")
        super().__setattr__(name, value)

    def scope(self, name: str) -> ScopeControl:
        """One scope: its statistics, and how to change its pace."""
        problem = None if self._settings.get_scopes else problem_of_name(checked_name(name))
        if problem is not None and self._scheduler.engine.find(name) is None:
            self._scheduler.warn("no-effect", f'scope("{name}") {problem}', about=name)
        return ScopeControl(self._scheduler, checked_name(name))

    def stats(self) -> Stats:
        """Statistics of the throttle and of all scopes."""
        with self._scheduler.lock:
            return Stats.of(self._scheduler.engine.stats(self._clock.now()))

    def peek(self, target: object = None, *, scopes: Scopes | None = None, cost: float = 1) -> Peek:
        """When a request could leave as things stand, and why not now. It sends no request."""
        if scopes is None and self._settings.get_scopes is not None:
            raise TypeError("peek: with get_scopes, want scopes=…")
        names, costs = named_scopes(self._scopes_of(target, scopes))
        engine = self._scheduler.engine
        with self._scheduler.lock:
            handles = [engine.find(checked_name(name)) for name in names]
            answer = engine.peek(self._clock.now(), handles, cost=cost if costs is None else costs)
            return Peek.of(answer, engine)

    def snapshot(self) -> dict[str, Any]:
        """The learned state, as plain JSON for ``snapshot=``, here, elsewhere or in Node."""
        with self._scheduler.lock:
            return dict(self._scheduler.engine.snapshot(self._clock.now(), self._clock.wall()))

    def pause(self) -> None:
        """Sends no request until ``resume``."""
        with self._scheduler.lock:
            self._scheduler.engine.pause(self._clock.now())
            self._scheduler.drain()

    def resume(self) -> None:
        """Ends a pause."""
        with self._scheduler.lock:
            self._scheduler.engine.resume(self._clock.now())
            self._scheduler.drain()

    def now(self) -> float:
        """The throttle's clock in seconds, as in ``peek().at``, ``permit.sent_at`` and ``hold_until``."""
        return self._clock.now() / NANOS

    def close(self, reason: BaseException | None = None) -> None:
        """Rejects what waits, and each new request, with a ``ClosedError``. Requests in flight may end. After
        the last one a throttle with ``shared`` leaves its group.
        """
        self._scheduler.warn_unused_names()
        self._scheduler.close(reason)

    def robots(
        self, host: str, text: str | bytes, *, user_agent: str, max_delay: Seconds = 60.0
    ) -> float | None:
        """Takes the robots.txt of a host (or of a URL's): one slot and its ``Crawl-delay``, in place of the
        defaults. Returns the seconds that it asks for, or ``None``.

        From then on a request to that host is in the host's scope, too, whatever ``get_scopes`` or
        ``scopes=`` names. If you gave the scope a pace of its own, the scope keeps it, with one warning.
        """
        asked = parse_robots(text, user_agent)
        most = nanos("max_delay", max_delay)
        name = host_of(host) if "://" in host else host_of_name(host) or host
        delay = None if asked is None else min(asked, most)
        if delay is None:
            self._robots_hosts.discard(name)
        else:
            self._robots_hosts.add(name)
        outcome = self._crawl_delay(name, delay)
        if asked is not None and asked > most and outcome == "applied":
            wish = f"robots.txt of {name} asks for {asked / NANOS:g} s between requests"
            self._scheduler.warn("wait-capped", f"{wish}; max_delay makes it {most / NANOS:g}", name)
        if outcome == "overruled" and delay is not None:
            wish = f"robots.txt of {name} asks for one request at a time, {delay / NANOS:g} s apart"
            silence = "the scope keeps its own settings (ignore_robots_txt=True silences this)"
            self._scheduler.warn("robots-overruled", f"{wish}; {silence}", name)
        return None if asked is None else asked / NANOS

    def _scopes_of(self, target: object, scopes: Scopes | None) -> Scopes:
        """The scopes of a request; ``scopes`` are those that the caller or a hook named."""
        if scopes is not None and not self._robots_hosts:
            return scopes
        url = target if isinstance(target, str) else getattr(target, "url", target)
        if scopes is None:
            return host_of(url)
        try:
            host = host_of(url)
        except ValueError:
            return scopes
        return add_scope(scopes, host) if host in self._robots_hosts else scopes

    # For transports. In threads no await here suspends.

    async def _enter(self, target: object, scopes: Scopes | None, wait: Wait) -> Permit:
        hook = self._settings.get_scopes
        if scopes is None and hook is not None:
            url = target if isinstance(target, str) else getattr(target, "url", target)
            request = target if isinstance(target, ScopeRequest) else ScopeRequest(str(url), "GET", {})
            with self._scheduler.lock:
                self._scheduler.check_open(wait)
            wait = wait._replace(is_taken=True, since=self._clock.now())
            with self._scheduler.asking():
                asked = ask("get_scopes", request.url, lambda: hook(request), self._is_plain)
                result = await (self._entering(asked, wait.max_wait) if iscoroutinefunction(hook) else asked)
            scopes = checked_scopes("get_scopes", request.url, result)
            left = wait.left(self._clock.now())
            if left is not None and left < 0:
                raise ThrottleTimeoutError(wait.max_wait or 0)
        started = self._begin(target, scopes, wait)
        return started if isinstance(started, Permit) else await self._wait(started)

    async def _entering(self, asked: Awaitable[T], max_wait: float | None) -> T:
        """The result of a hook. Its wait ends as the one for permission does, where one can end it."""
        return await asked

    def _begin(self, target: object, scopes: Scopes | None, wait: Wait) -> Permit | Waiting:
        """Where no hook is asked: a permit at once, or what waits for one."""
        return self._scheduler.request(self._scopes_of(target, scopes), target, wait)

    async def _wait(self, waiting: Waiting) -> Permit:
        """The permit of one that waits."""
        raise NotImplementedError

    def _crawl_delay(self, name: str, delay: int | None) -> str:
        engine = self._scheduler.engine
        outcome: str = self._scheduler.change(name, lambda now, scope: engine.crawl_delay(now, scope, delay))
        return outcome


class ScopeControl:
    """The result of ``throttle.scope(name)``: statistics and control of one scope."""

    __slots__ = ("_scheduler", "name")

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._scheduler = scheduler
        self.name = name
        """The scope's name."""

    @property
    def stats(self) -> ScopeStats:
        """Its statistics."""
        scheduler = self._scheduler
        with scheduler.lock:
            return ScopeStats.of(
                scheduler.engine.scope_stats(scheduler.clock.now(), scheduler.handle(self.name))
            )

    def configure(self, **partial: Unpack[ScopeOptions]) -> None:
        """Changes settings and keeps what was learned. It counts at once, also for requests that wait.

        Raises ``ConfigError`` with every problem; then no setting is changed.
        """
        if not partial:
            raise ConfigError([Problem("configure", "settings, such as rate=5", "none")])
        self._scheduler.configure(self.name, partial)

    def hold(self, seconds: Seconds) -> None:
        """Sends no request for that many seconds. A longer hold stays."""
        span = nanos("hold", seconds)
        problem = problem_of_span("hold", seconds)
        if problem is not None:
            self._scheduler.warn("suspicious-unit", problem, self.name, f"hold of {self.name}")
        self._scheduler.change(self.name, lambda now, scope: self._scheduler.engine.hold(now, scope, span))

    def crawl_delay(self, seconds: Seconds | None) -> str:
        """Takes the delay that the robots.txt of this scope asks for; ``None`` if it asks for none.

        ``"applied"``: the scope keeps to it. ``"overruled"``: it has a pace of your own. ``"ignored"``.
        """
        span = None if seconds is None else nanos("crawl_delay", seconds)
        engine = self._scheduler.engine
        outcome: str = self._scheduler.change(
            self.name, lambda now, scope: engine.crawl_delay(now, scope, span)
        )
        return outcome

    def pause(self) -> None:
        """Sends no request until ``resume``."""
        self._scheduler.change(self.name, self._scheduler.engine.pause)

    def resume(self) -> None:
        """Ends a pause."""
        self._scheduler.change(self.name, self._scheduler.engine.resume)

    def reset(self) -> None:
        """Forgets what was learned and lifts the hold. The spent parts of quotas and budgets stay spent.
        Settings and what is in flight stay."""
        self._scheduler.change(self.name, self._scheduler.engine.reset)

    def __repr__(self) -> str:
        return f"<scope {self.name!r}>"


def is_clock(value: object) -> bool:
    """Whether this can stand in for the machine's clock."""
    return all(callable(getattr(value, name, None)) for name in ("now", "wall", "call_later", "wait"))


def refuse(options: Mapping[str, Any], key: str, want: str) -> None:
    """Refuses an option that this kind of throttle cannot keep."""
    if options.get(key) is not None:
        raise ConfigError([Problem(key, want, f"{options[key]!r:.60}")])

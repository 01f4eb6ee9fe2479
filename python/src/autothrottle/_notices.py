"""What the engine tells, passed on: to a scope's manager, to listeners, to the log.

The traps: a manager that raises and keeps others from hearing (all hear, then the first is raised); work for
listeners who are not there. The engine tells only what has a listener; without one it is asked for news at
most once a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ._clock import NANOS, Clock
from ._convert import in_seconds, python_path
from ._events import Events, ScopeEvent, StallEvent, logger
from ._managers import ManagedAnswer
from ._native import Engine
from .errors import ScopeDownError, StalledError


class Notices:
    """Between the engine and those who listen."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        events: Events,
        is_managed: bool,
        is_debug: bool,
        fail_all: Callable[[BaseException, str], None],
        split: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._events = events
        self._is_managed = is_managed
        self._is_debug = is_debug
        self._fail_all = fail_all
        self._split = split
        self._level: Literal["nothing", "changes", "answers"] = "nothing"
        self._asked_at: int | None = None
        self.watch()

    def watch(self) -> None:
        """Asks the engine to tell as much as has listeners."""
        level: Literal["nothing", "changes", "answers"] = "nothing"
        if self._is_debug:
            level = "answers"
        elif self._events.are_scopes_heard:
            level = "changes"
        if level != self._level:
            self._engine.watch(level)
            self._level = level

    def after_answer(
        self,
        status: int | None,
        error: BaseException | None,
        latency: int | None,
        answered: Callable[[bool, ManagedAnswer], None],
        has_headers: bool,
    ) -> None:
        """What an answer brought that has to be heard before others leave."""
        is_urgent = has_headers or self._level != "nothing" or self._is_managed or error is not None
        if is_urgent and self._engine.has_notices:
            self._pass(status, error, latency, answered)

    def heard(self) -> None:
        """What the engine of another process noticed."""
        if self._engine.has_notices:
            self._pass(None, None, None, None)

    def at_rest(self, now: int) -> None:
        """What the engine noticed by itself: settings without effect, scopes that only refuse."""
        if self._asked_at is not None and 0 <= now - self._asked_at < NANOS:
            return
        self._asked_at = now
        if self._engine.has_notices:
            self._pass(None, None, None, None)

    def _pass(
        self,
        status: int | None,
        error: BaseException | None,
        latency: int | None,
        answered: Callable[[bool, ManagedAnswer], None] | None,
    ) -> None:
        failure: Exception | None = None
        notices: list[Any] = self._engine.take_notices()
        for notice in notices:
            kind, scope = notice.kind, notice.scope
            if kind == "answer":
                took = latency if notice.latency is None else notice.latency
                if self._is_debug and took is not None:
                    logger.debug("%s", debug_line(notice, took))
                if answered is not None:
                    seconds = None if latency is None else latency / NANOS
                    at = self._clock.now() / NANOS
                    try:
                        answered(notice.is_bad, ManagedAnswer(scope, at, status, error, seconds))
                    except Exception as raised:
                        failure = failure or raised
            elif kind == "stall":
                self._stalled(scope, notice.span / NANOS)
            elif kind == "budgets":
                self._split(scope)
            elif kind == "down":
                self._fail_all(ScopeDownError(scope, notice.span / NANOS), scope)
            elif kind == "no-effect":
                where = f" in {scope}" if scope else ""
                message = f"{python_path(notice.path)} has no effect{where}: {in_seconds(notice.why)}"
                self._events.warn("no-effect", message, scope or None)
            elif kind == "rampup-bound":
                message = f"{python_path(notice.path)} slows rampup down in {scope}: {notice.why}"
                self._events.warn("rampup-bound", message, scope)
            elif kind == "hold-cut":
                message = f"{python_path(notice.path)} cuts a wait of {scope}: {notice.why}"
                self._events.warn("hold-cut", message, scope)
            else:
                hold, asked = notice.hold_until, notice.asked
                self._events.tell(
                    ScopeEvent(
                        kind,
                        scope,
                        notice.delay / NANOS,
                        notice.step,
                        None if hold is None else hold / NANOS,
                        None if asked is None else asked / NANOS,
                    )
                )
        if failure is not None:
            raise failure

    def _stalled(self, scope: str, seconds: float) -> None:
        def fail(error: BaseException | None = None) -> None:
            self._fail_all(StalledError(scope, seconds) if error is None else error, scope)

        if not self._events.is_stall_heard:
            message = f"{scope} has answered only badly for {round(seconds)} s"
            self._events.warn("stall", message, scope)
        self._events.tell(StallEvent("stall", scope, seconds, fail))


def debug_line(notice: Any, latency: int) -> str:
    """Scrapy's line of AUTOTHROTTLE_DEBUG; the size is not known when headers arrive."""
    delay, before = round(notice.delay / 1e6), round(notice.delay_before / 1e6)
    return (
        f"slot: {notice.scope} | conc:{notice.in_flight:2} | delay:{delay:5} ms ({delay - before:+}) | "
        f"latency:{round(latency / 1e6):5} ms"
    )

"""Requests of members, as the writer holds them, and the driver that asks its engine for them.

The traps: a number that is believed twice, so turns and grants are counted anew with each story of a member;
and a listener that submits while leave is handed out, so there is one drain at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import CostExceedsQuotaError, QueueFullError, ScopeDownError
from .engine import MsEngine
from .messages import Message, Refusal
from .transport import Scheduler, Timer


@dataclass(eq=False, slots=True)
class Member:
    """One process, as the writer knows it."""

    id: str
    seen_at: float
    hello: int = 0
    turns: int = 0
    grants: int = 0
    orders: int = 0
    """The number of the last order that was heard."""
    watch: int = 0
    requests: dict[int, Held] = field(default_factory=dict)
    early: dict[int, Message] = field(default_factory=dict)
    """Turns that came before those that go before them."""
    granted: list[int] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    def remembered(self) -> list[Any]:
        """What the next writer is told of it: how many it has in flight with the same scopes."""
        counts: dict[str, list[Any]] = {}
        for held in self.requests.values():
            if held.is_flying:
                counts.setdefault(json.dumps(held.scopes), [0, held.scopes])[0] += 1
        return [self.id, [self.hello, self.turns, self.orders], list(counts.values())]


@dataclass(eq=False, slots=True)
class Held:
    """A request of a member."""

    member: Member
    id: int
    attempt: int
    scopes: list[str]
    ticket: int
    is_flying: bool = False
    at: float = 0.0
    """The engine's instant at which it was granted."""

    @property
    def name(self) -> tuple[int, int]:
        """Unlike that of any other request of its member, and of its other attempts."""
        return self.id, self.attempt


def name_of(ask: Mapping[str, Any]) -> tuple[int, int]:
    """The name of a request that a story tells of."""
    return ask["id"], ask["attempt"]


def refusal_of(ticket: int, error: Exception) -> Refusal:
    """Why the engine does not take it."""
    if isinstance(error, QueueFullError):
        return [ticket, "full"]
    if isinstance(error, CostExceedsQuotaError):
        return [ticket, "cost", error.scope, error.path]
    if isinstance(error, ScopeDownError):
        return [ticket, "down", error.scope, error.seconds * 1000]
    return [ticket, "wrong", str(error)]


class Driver:
    """Asks the engine until nobody may leave, and again when somebody may."""

    def __init__(
        self,
        engine: MsEngine,
        scheduler: Scheduler,
        now: Callable[[], float],
        granted: Callable[[Held], None],
        on_rest: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._now = now
        self._granted = granted
        self._on_rest = on_rest
        self._waiting: dict[int, Held] = {}
        self._timer: Timer | None = None
        self._timer_at: float | None = None
        self._is_draining = False
        self._is_stale = False

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for a time."""
        return self._timer_at is not None

    def add(self, held: Held) -> None:
        """Keeps who waits for its ticket."""
        self._waiting[held.ticket] = held

    def forget(self, held: Held) -> None:
        """It waits no longer; whoever calls tells the engine."""
        self._waiting.pop(held.ticket, None)

    def changed(self) -> None:
        """Something changed: asks if anybody waits."""
        if self._waiting:
            self.drain()
        else:
            self._on_rest()

    def drain(self) -> None:
        """Asks until there is nothing more to send, then sleeps until there may be."""
        self._is_stale = True
        if self._is_draining:
            return
        self._is_draining = True
        wake: float | None = None
        try:
            while self._is_stale:
                self._is_stale = False
                now = self._now()
                send, wake = self._engine.poll(now)
                for ticket in send:
                    held = self._waiting.pop(ticket, None)
                    if held is not None:
                        held.is_flying = True
                        held.at = now
                        self._granted(held)
        finally:
            self._is_draining = False
        self._sleep(wake)
        self._on_rest()

    def rest(self) -> None:
        """Nobody is asked any more: no timer stays."""
        self._sleep(None)

    def _sleep(self, wake: float | None) -> None:
        if wake == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = wake
        if wake is not None:
            self._timer = self._scheduler.call_later(max(wake - self._now(), 0.0), self._woken)

    def _woken(self) -> None:
        self._timer = self._timer_at = None
        self.drain()

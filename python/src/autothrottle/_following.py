"""What a desk does where processes share a limit: it hears what happens by itself, and leaves.

The trap is the lock of threads: messages come from a thread of the group's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._convert import python_path
from ._events import SharedEvent
from ._stats import Stats
from .errors import CostExceedsQuotaError, QueueFullError

if TYPE_CHECKING:
    from ._desk import Desk
    from ._shared.host import SharedHost
    from ._shared.transport import Leaving, Scheduler
    from .redis import Shared


class Following:
    """Between a desk and its group."""

    def __init__(self, desk: Desk, scheduler: Scheduler) -> None:
        self._desk = desk
        self._scheduler = scheduler
        self._host: SharedHost | None = None
        self._leaving: Leaving | None = None

    def open(self, shared: Shared, options: Mapping[str, Any]) -> SharedHost:
        """Who stands in for the engine."""
        self._host = shared.open_host(options, self._scheduler)
        self._host.listen(self)
        return self._host

    def changed(self) -> None:
        """There may be leave for a request, or news to tell."""
        desk = self._desk
        with desk.lock:
            desk.notices.heard()
            if desk.waiting:
                desk.drain()

    def refuse(self, ticket: int, error: BaseException) -> None:
        """The process that decides does not take it."""
        desk = self._desk
        with desk.lock:
            waiting = desk.waiting.get(ticket)
            if waiting is not None:
                desk.forget(waiting)
                desk.fail(waiting, typed_refusal(error))
                desk.rest()

    def shared_warning(self, code: str, message: str) -> None:
        """Something about the group."""
        self._desk.warn(code, message)

    def moved(self) -> None:
        """Another decides, others are in the group, or the way to them is another."""
        desk = self._desk
        with desk.lock:
            stats = Stats.of(desk.engine.stats(desk.clock.now()))
        if stats.shared is not None:
            desk.events.tell(SharedEvent("shared", stats.shared))

    def leave(self) -> Leaving | None:
        """Leaves the group; gives what is still to be said there."""
        with self._desk.lock:
            if self._host is not None and self._leaving is None:
                self._leaving = self._host.leave()
                self._scheduler.close()
            return self._leaving


def typed_refusal(error: BaseException) -> BaseException:
    """A refusal of the engine's with the names of settings that were typed."""
    if isinstance(error, CostExceedsQuotaError):
        return CostExceedsQuotaError(error.scope, None if error.path is None else python_path(error.path))
    if isinstance(error, QueueFullError):
        error.args = ("as many requests wait as max_waiting allows",)
    return error

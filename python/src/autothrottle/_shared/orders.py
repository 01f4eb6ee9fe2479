"""What was set while it ran, as the writer keeps it: for all processes, and for whoever writes next.

The trap is an order that comes late: a hold has become shorter meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import ThrottleError
from .engine import MsEngine, mark, span


class Orders:
    """The orders that an engine has heard."""

    def __init__(self, engine: MsEngine, now: Callable[[], float]) -> None:
        self._engine = engine
        self._now = now
        self._settings: dict[str, dict[str, Any]] = {}
        self._is_paused = False

    def state(self) -> dict[str, Any]:
        """For the next writer."""
        settings = [[name, partial] for name, partial in self._settings.items()]
        return {"settings": settings, "isPaused": self._is_paused}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What the writer before this one had."""
        for name, partial in state["settings"]:
            self._configure(name, partial)
        if state["isPaused"]:
            self.apply(["pause", None])

    def apply(self, order: Sequence[Any], ago: float = 0.0) -> None:
        """An order that was given ``ago`` milliseconds ago."""
        what, name = order[0], order[1]
        engine, now = self._engine.engine, mark(self._now())
        if what == "watch":
            return
        if what == "configure":
            self._configure(name, order[2])
            return
        if name is None:
            self._is_paused = what == "pause"
            (engine.pause if what == "pause" else engine.resume)(now)
            return
        scope = engine.intern(name)
        if what == "crawl":
            engine.crawl_delay(now, scope, None if order[2] is None else span(order[2]))
        elif what == "hold":
            engine.hold(now, scope, span(max(order[2] - ago, 0.0)))
        elif what == "adjust":
            engine.adjust(now, scope, max(now - span(order[2] + ago), 0), order[3], order[4])
        elif what == "reset":
            engine.reset(now, scope)
        elif what == "pause":
            engine.pause(now, scope)
        elif what == "resume":
            engine.resume(now, scope)

    def _configure(self, name: str, partial: Mapping[str, Any]) -> None:
        self._settings[name] = {**self._settings.get(name, {}), **partial}
        # Its process was told what is wrong: the same settings are checked there.
        with contextlib.suppress(ThrottleError):
            self._engine.configure(self._now(), name, partial)

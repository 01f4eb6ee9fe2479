"""Scopes by name: their handles in the engine, and what their managers say of their pace. The engine forgets
idle scopes: those that were used last are held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from ._clock import NANOS, Clock
from ._convert import convert_scope
from ._errors import ConfigError
from ._managers import ManagedScopes, Pace
from ._native import Engine
from ._scopes import checked_name
from .errors import ManagerError

HELD_HANDLES = 2000
"""Scopes that are kept from being forgotten while they are idle."""


class Handles:
    """The handles of one engine."""

    def __init__(self, engine: Engine, clock: Clock, managed: ManagedScopes | None) -> None:
        self._engine = engine
        self._clock = clock
        self._managed = managed
        self.is_managed = managed is not None
        """Whether managers are to be asked."""
        self._held: OrderedDict[str, tuple[int, tuple[str, ...]]] = OrderedDict()

    def of(self, name: str) -> int:
        """The handle of a scope, made if it has to be."""
        return self.one(name)[0]

    def one(self, name: str) -> tuple[int, tuple[str, ...]]:
        """The same, and the names of a request of this scope alone: one tuple for all of them."""
        held = self._held.get(name)
        if held is not None:
            self._held.move_to_end(name)
            return held
        handle = self._engine.scope(checked_name(name))
        self._held[name] = held = (handle, (name,))
        if self._managed is not None:
            try:
                self._apply(name, handle, self._managed.begin(name))
            except BaseException:
                del self._held[name]
                self._engine.release(handle)
                raise
        while len(self._held) > HELD_HANDLES:
            self._engine.release(self._held.popitem(last=False)[1][0])
        return held

    def sent(self, names: Iterable[str], now: int) -> bool:
        """A request leaves; whether a manager changed a pace."""
        is_changed = False
        if self._managed is not None:
            for name in names:
                is_changed |= self._apply(name, self.of(name), self._managed.on_send(name, now / NANOS))
        return is_changed

    def answered(self, is_bad: bool, event: Any) -> None:
        """An answer is there."""
        if self._managed is not None:
            self._apply(event.scope, self.of(event.scope), self._managed.on_answer(is_bad, event))

    def _apply(self, name: str, handle: int, pace: Pace | None) -> bool:
        """What a scope's manager says."""
        if not pace:
            return False
        made = convert_scope(pace)
        try:
            self._engine.configure(self._clock.now(), handle, made.engine)
        except ConfigError as error:
            raise ManagerError("manager", f"of {name}: {made.translate(error)}") from error
        return True

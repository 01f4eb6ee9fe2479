"""A strategy of yours for a scope, in place of backoff and rampup: an object that gets each answer and says
how fast.

The way: an event → the object's method → its ``delay`` and ``concurrency`` are read → what changed is
configured. The engine does not know of it. An error of the object fails the request that the call was about,
as the cause. In ``defaults`` a function makes one for each scope.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from ._clock import NANOS, Clock
from ._convert import convert_scope
from ._native import Engine
from ._scopes import checked_name
from .errors import ConfigError, ManagerError, Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ManagedSend:
    """The event that a manager gets when a request of its scope leaves."""

    scope: str
    """The scope."""
    at: float
    """When, in seconds of the throttle's clock."""


@dataclass(frozen=True, slots=True)
class ManagedAnswer(ManagedSend):
    """The event that a manager gets when a request of its scope ended."""

    status: int | None
    """The status of the response, if there was one."""
    error: BaseException | None
    """Why there was none."""
    latency: float | None
    """From send to response headers in seconds, if there was a response."""


class ScopeManager:
    """Decides how fast one scope goes. Any object with some of these will do.

    ``delay`` and ``concurrency`` are read after each call; properties are welcome. ``None``: the scope's own.
    """

    delay: float | timedelta | None = None
    """Seconds between two sends."""
    concurrency: int | None = None
    """Slots."""

    def on_send(self, event: ManagedSend) -> None:
        """A request leaves."""

    def on_good(self, event: ManagedAnswer) -> None:
        """An answer that is not bad. An answer that the caller gave up is neither good nor bad."""

    def on_bad(self, event: ManagedAnswer) -> None:
        """A bad answer: a status in ``backoff.status_codes``, a failure, or what a hook says."""


MakeScopeManager: TypeAlias = Callable[[str], ScopeManager]
"""One for each scope by that name."""

Pace: TypeAlias = dict[str, Any]

_METHODS = ("on_send", "on_good", "on_bad")


def manager_problems(manager: object, path: str, is_shared: bool) -> list[Problem]:
    """Problems of a ``manager`` setting."""
    if manager is None:
        return []
    is_maker = isinstance(manager, type) or (callable(manager) and not _is_manager(manager))
    if is_shared and not is_maker:
        return [Problem(path, "a function that makes one for each scope", type(manager).__name__)]
    if is_maker or _is_manager(manager):
        return []
    return [Problem(path, "an object or a function that makes one", repr(manager)[:60])]


def _is_manager(value: object) -> bool:
    if isinstance(value, type) or value is None or isinstance(value, (str, int, float, Mapping, list)):
        return False
    return any(hasattr(value, name) for name in (*_METHODS, "delay", "concurrency"))


class Managers:
    """The managers of scopes, and what each said last of its pace."""

    name = "manager"
    """The manager's name in errors."""

    def __init__(self) -> None:
        self._managers: dict[str, tuple[Any, Pace]] = {}

    def pace_of(self, scope: str) -> Pace | None:
        """The pace of a scope that has a manager."""
        known = self._managers.get(scope)
        return None if known is None else known[1]

    def keep(self, scope: str, manager: Any) -> Pace:
        """From here on a scope has this one. Gives its pace."""
        pace = self._pace(scope, manager)
        self._managers[scope] = manager, pace
        return pace

    def call(self, scope: str, method: str, *event: Any) -> Pace | None:
        """Tells a scope's manager; gives its pace, if that is another now."""
        known = self._managers.get(scope)
        if known is None:
            return None
        manager, told = known
        call = getattr(manager, method, None)
        if call is not None:
            self.ask(scope, lambda: call(*event), self.name_of(method))
        pace = self.keep(scope, manager)
        return None if pace == told else pace

    def name_of(self, method: str) -> str:
        """A method's name in errors."""
        return self.name

    def ask(self, scope: str, call: Callable[[], T], name: str | None = None) -> T:
        """The result of a call of the user's function."""
        try:
            return call()
        except Exception as error:
            what = f"of {scope} failed: {error!r:.200}"
            raise ManagerError(name or self.name, what) from error

    def _pace(self, scope: str, manager: Any) -> Pace:
        names = ("delay", "concurrency")
        pace = self.ask(scope, lambda: {name: getattr(manager, name, None) for name in names})
        return {name: value for name, value in pace.items() if value is not None}


class ManagedScopes(Managers):
    """The managers that the options of a throttle name, as their scopes are met."""

    def __init__(self, scopes: Mapping[str, Any], shared: Any) -> None:
        super().__init__()
        self._own = {
            name: each["manager"]
            for name, each in scopes.items()
            if isinstance(each, Mapping) and each.get("manager") is not None
        }
        self._shared = shared

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> tuple[ManagedScopes | None, list[Problem]]:
        """The managers in the options; none without any."""
        defaults, scopes = options.get("defaults"), options.get("scopes")
        defaults = defaults if isinstance(defaults, Mapping) else {}
        scopes = scopes if isinstance(scopes, Mapping) else {}
        top, inner = options.get("manager"), defaults.get("manager")
        problems = manager_problems(top, "manager", True)
        if top is not None and inner is not None:
            want = "manager here or in defaults, not in both"
            problems.append(Problem("manager", want, type(top).__name__))
        problems += manager_problems(inner, "defaults.manager", True)
        made = cls(scopes, inner if top is None else top)
        for name, manager in made._own.items():
            problems += manager_problems(manager, f'scopes["{name}"].manager', False)
        return (made if made._own or made._shared is not None else None), problems

    def begin(self, scope: str) -> Pace | None:
        """The options of a scope when it is made, or made anew."""
        known = self.pace_of(scope)
        make = self._own.get(scope, self._shared)
        if known is not None or make is None:
            return known
        manager = make if _is_manager(make) else self.ask(scope, lambda: make(scope))
        if not _is_manager(manager):
            raise ManagerError("manager", f"for {scope}: want an object; got {manager!r:.60}")
        if len(self._managers) > 100_000:
            self._managers = {name: each for name, each in self._managers.items() if name in self._own}
        return self.keep(scope, manager)

    def on_send(self, scope: str, at: float) -> Pace | None:
        """Tells that a request leaves; gives what that changes."""
        return self.call(scope, "on_send", ManagedSend(scope, at))

    def on_answer(self, is_bad: bool, event: ManagedAnswer) -> Pace | None:
        """Tells of an answer that the engine has judged; gives what that changes."""
        return self.call(event.scope, "on_bad" if is_bad else "on_good", event)


HELD_HANDLES = 2000
"""Scopes that are kept from being forgotten while they are idle."""


class Handles:
    """The handles of one engine by name, and what managers say of their pace. The engine forgets idle scopes:
    those that were used last are held.
    """

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
        """The pace that a scope's manager asks for."""
        if not pace:
            return False
        made = convert_scope(pace)
        try:
            self._engine.configure(self._clock.now(), handle, made.engine)
        except ConfigError as error:
            raise ManagerError("manager", f"of {name}: {made.translate(error)}") from error
        return True

"""The state of a throttle, as it reports it: the engine's numbers in seconds."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from ._clock import seconds
from ._native import Engine
from ._records import TIMES
from ._state import Peek as EnginePeek

if TYPE_CHECKING:
    from typing_extensions import Self

_KINDS: dict[str, type[InSeconds]] = {}


class InSeconds:
    """A record of the engine's by the same names, times in seconds."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls

    @classmethod
    def of(cls, record: object) -> Self:
        """The engine's numbers in seconds."""
        names = [each.name for each in fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: _converted(getattr(record, name), name in TIMES) for name in names})


def _converted(value: Any, is_time: bool) -> Any:
    """A field's value, with records in it in seconds."""
    if isinstance(value, dict):
        return {name: _converted(each, False) for name, each in value.items()}
    if is_dataclass(value):
        return _KINDS[type(value).__name__].of(value)
    return seconds(value) if is_time and value is not None else value


@dataclass(frozen=True, slots=True)
class Peek:
    """When a request could be sent as things stand."""

    at: float | None
    """Seconds of the throttle's clock; ``None`` if that depends on an answer or a ``resume``."""
    reason: str | None
    """Why it waits; ``None`` if it could leave now."""
    scope: str | None
    """The scope that keeps it; ``None`` for the whole throttle."""

    @classmethod
    def of(cls, peek: EnginePeek, engine: Engine) -> Peek:
        """The engine's answer in seconds."""
        scope = None if peek.scope is None else engine.name(peek.scope)
        return cls(None if peek.at is None else seconds(peek.at), peek.reason, scope)

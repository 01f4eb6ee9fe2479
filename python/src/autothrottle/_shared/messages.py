"""What processes that share a limit say to each other, and how it is written: see ``js/shared/messages.ts``.

A message is a JSON object. Names are those of the protocol (camel case, milliseconds), for processes in
JavaScript read them as well. Instants never travel without the now of their clock.

The trap is a number that JSON lacks: what is unknown is ``null`` there, and never ``NaN``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from .checks import is_message, is_state

VERSION = 1
"""Of the messages. Another one is not understood."""

Message: TypeAlias = dict[str, Any]
"""``hello``, ``turn``, ``ping`` and ``bye`` go to the writer; ``grant``, ``beat``, ``tell`` and ``resign``
come from there."""

Refusal: TypeAlias = Sequence[Any]
"""Why a request was refused: its number; ``full``, ``cost`` with scope and path, ``down`` with scope
and for how many milliseconds, or ``wrong`` with a text."""

Told: TypeAlias = list[float | None]
"""How a request ended, in numbers, for the engine that sent it. ``None`` is unknown."""

TO_WRITER = frozenset(("hello", "turn", "ping", "bye"))
"""The kinds of messages that a writer hears."""

_RECORDS_AT, _STRIDE = 11, 7
"""Where records of single scopes begin in what the engine is told, and how long each is."""


def encode(message: Message) -> str:
    """Written down. What is unknown is ``null``."""
    return as_json({"v": VERSION, **message})


def as_json(value: object) -> str:
    """As ``JSON.stringify`` writes it: no blanks, and nothing that is no number."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def decode(text: str) -> Message | Literal["version", "wrong"]:
    """Read; ``"wrong"`` for what is not well formed, ``"version"`` for a message of another version."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return "wrong"
    version = message.get("v") if isinstance(message, dict) else None
    if isinstance(version, (int, float)) and version != VERSION:
        return "version"
    return message if version == VERSION and is_message(message) else "wrong"


def state_in(text: str) -> Mapping[str, Any]:
    """A memory as it was heard. Raises a ``ValueError`` if it is none."""
    state: Mapping[str, Any] = json.loads(text)
    if not is_state(state):
        raise ValueError("it is not well formed")
    return state


def known(numbers: Sequence[float]) -> Told:
    """Numbers as they are told: what is unknown is ``None``."""
    return [number if math.isfinite(number) else None for number in numbers]


def numbers_in(told: Sequence[float | None]) -> list[float]:
    """The same as the engine hears it: what is unknown is ``NaN``."""
    return [math.nan if number is None else float(number) for number in told]


def renumber(told: list[Any], to: Callable[[Any], float]) -> None:
    """Says the scopes of the records by another number: an engine's handle, or the place among the names."""
    for at in range(_RECORDS_AT, len(told), _STRIDE):
        told[at] = to(told[at])


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value

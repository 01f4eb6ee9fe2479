"""Whether a message is well formed: each field that anybody reads has its type and a sensible number.

The trap is a message that is believed: one odd field, of a newer version or of a program with a fault, ended
every process that heard it. See ``js/shared/checks.ts``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

_Check: TypeAlias = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _amount(value: Any) -> bool:
    return _real(value) and value >= 0


def _count(value: Any) -> bool:
    """As JSON has it: 3.0 is 3 elsewhere."""
    return _amount(value) and value == int(value) and value < 2**53


def _level(value: Any) -> bool:
    return _count(value) and value <= 2


def _is(*known: str | None) -> _Check:
    return lambda value: (value is None or isinstance(value, str)) and value in known


def _or(*checks: _Check) -> _Check:
    return lambda value: any(check(value) for check in checks)


def _maybe(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _list(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(check(each) for each in value)


def _row(*checks: _Check) -> _Check:
    return lambda value: (
        isinstance(value, list)
        and len(value) >= len(checks)
        and all(check(each) for check, each in zip(checks, value, strict=False))
    )


def _object(fields: Mapping[str, _Check]) -> _Check:
    return lambda value: (
        isinstance(value, dict) and all(check(value.get(name)) for name, check in fields.items())
    )


def _told(value: Any) -> bool:
    """What the engine is told of an answer: four numbers at least."""
    return _list(_maybe(_real))(value) and len(value) >= 4


_NAMES = _list(_text)
_ASK: dict[str, _Check] = {
    "id": _count,
    "attempt": _count,
    "names": _NAMES,
    "cost": _or(_amount, _list(_amount)),
    "priority": _real,
    "delay": _amount,
    "waited": _amount,
}
_FLIGHT = _object({**_ASK, "sentAgo": _amount, "told": _maybe(_told), "said": _maybe(_row(_count, _count))})
_ORDER = _or(
    _row(_is("configure"), _text, _object({})),
    _row(_is("crawl"), _text, _maybe(_amount)),
    _row(_is("hold"), _text, _amount),
    _row(_is("adjust"), _text, _amount, _amount, _amount),
    _row(_is("pause", "resume"), _maybe(_text)),
    _row(_is("reset"), _text),
    _row(_is("watch"), _level),
)
_ACTS = {
    "ask": _row(_text, *_ASK.values()),
    "over": _row(_text, _count, _count, _told),
    "left": _row(_text, _count, _count, _real),
    "cancel": _row(_text, _count),
    "order": _row(_text, _count, _ORDER),
}


def _act(value: Any) -> bool:
    """One of a newer program that nobody here knows means nothing."""
    return _row(_text)(value) and _ACTS.get(value[0], lambda _: True)(value)


def _ids(value: Any) -> bool:
    return _list(_count)(value) and len(value) % 2 == 0


def _members(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_row(_count, _count, _count), value.values()))


_REFUSAL = _or(
    _row(_count, _is("full")),
    _row(_count, _is("cost"), _maybe(_text), _maybe(_text)),
    _row(_count, _is("down"), _text, _amount),
    _row(_count, _is("wrong"), _text),
)
_HEAD: dict[str, _Check] = {"from": _text, "epoch": _count}
_TO_WRITER: dict[str, _Check] = {**_HEAD, "hello": _count}
_MESSAGES = {
    "hello": _object(
        {
            **_TO_WRITER,
            "waiting": _list(_object(_ASK)),
            "flying": _list(_FLIGHT),
            "orders": _list(_row(_count, _amount, _ORDER)),
            "hash": _text,
            "watch": _level,
        }
    ),
    "turn": _object({**_TO_WRITER, "number": _count, "acts": _list(_act)}),
    "ping": _object(_TO_WRITER),
    "bye": _object(_TO_WRITER),
    "grant": _object(
        {
            **_HEAD,
            "hello": _count,
            "number": _count,
            "ids": _ids,
            "refused": _list(_REFUSAL),
            "at": _maybe(_real),
        }
    ),
    "beat": _object(
        {**_HEAD, "members": _members, "hash": _text, "state": _maybe(_text), "seen": _maybe(_text)}
    ),
    "tell": _object({**_HEAD, "now": _real, "notices": _list(_object({"kind": _text})), "of": _maybe(_text)}),
    "resign": _object({**_HEAD, "state": _text}),
}


def is_message(value: Mapping[str, Any]) -> bool:
    """Whether whoever reads it finds what is to be in a message of its type."""
    kind = value.get("type")
    return isinstance(kind, str) and kind in _MESSAGES and _MESSAGES[kind](value)


is_state = _object(
    {
        "snapshot": _object({"scopes": _object({})}),
        "settings": _list(_row(_text, _object({}))),
        "members": _list(_row(_text, _row(_count, _count, _count), _list(_row(_count, _NAMES)))),
    }
)
"""Whether it is what a writer remembers; of its snapshot the engine judges."""

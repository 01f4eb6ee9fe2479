"""Options on their way to the engine, as JSON.

The trap is a value that JSON lacks: a not-a-number that ``json`` writes as no JSON, a function, a circle. The
engine is told what it is, so that it is reported with its path beside all other problems, in the same words
as in every host.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

_DEEPEST = 10
"""Options nest a few levels deep; whatever is deeper is a mistake or a circle."""


def document(value: object) -> str:
    """A document for the component."""
    return json.dumps(_plain(value, 0), allow_nan=False, separators=(",", ":"))


def _plain(value: object, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return _utf8(value) if isinstance(value, str) else value
    if isinstance(value, (int, float)):
        return _number(value)
    if depth > _DEEPEST:
        return _other("something nested too deep")
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return [_plain(item, depth + 1) for item in sorted(value, key=repr)]
    return _other("a function" if callable(value) else "something that is no plain value")


def _number(value: float) -> Any:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if math.isfinite(number):
        return value
    return _other("NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity")


def _key(key: object) -> str:
    return _utf8(key) if isinstance(key, str) else str(key)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _other(what: str) -> dict[str, str]:
    return {"$other": what}

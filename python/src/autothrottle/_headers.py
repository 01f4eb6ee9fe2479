"""Header fields on their way to the engine, which reads them.

The trap is to carry twenty strings across for each response: most say nothing about limits, and are left here
after one look at their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

Text: TypeAlias = str | bytes
Headers: TypeAlias = (
    Mapping[str, Text | Sequence[Text]]
    | Mapping[bytes, Text | Sequence[Text]]
    | Iterable[tuple[Text, Text | Sequence[Text]]]
)
"""Header fields: a mapping, or pairs of name and value. Bytes are read as latin-1."""


class HeaderMap(TypedDict, total=False):
    """How to read the fields of a server with a dialect of its own."""

    retryAfter: str
    """The field that says what ``Retry-After`` says."""
    limit: str
    """The field with the units per window."""
    remaining: str
    """The field with the units left."""
    reset: str
    """The field that says when more is there."""
    resetUnit: Literal["s", "ms"]
    """The unit of plain numbers in the reset field."""
    retryAfterUnit: Literal["s", "ms"]
    """The unit of plain numbers in ``Retry-After``."""


_SAYS_SOMETHING = re.compile(r"retry-after|rate-?limit|api-call-limit", re.IGNORECASE)
_IS_AGED = re.compile(r"\s*0*[1-9]")

_LIMITS, _AGE, _TIME, _NOTHING = "limits", "age", "time", ""
_kinds: dict[str, str] = {}
_MOST_KINDS = 1000  # Names are a stranger's.


def fields_of(headers: Headers, header_map: HeaderMap | None = None) -> list[tuple[str, str]]:
    """The fields that matter; none if no field tells of limits or of a cache."""
    renamed = _renamed(header_map)
    fields: list[tuple[str, str]] = []
    says = False
    for raw, value in _pairs(headers):
        name = _text(raw)
        known = renamed.get(name.lower()) if renamed else None
        kind = _LIMITS if known else _kind_of(name)
        if kind == _NOTHING or value is None:
            continue
        for each in [value] if isinstance(value, (str, bytes, int, float)) else value:
            text = _text(each)
            fields.append((known or name, text))
            says = says or kind == _LIMITS or (kind == _AGE and _IS_AGED.match(text) is not None)
    return fields if says else []


def units_of(header_map: HeaderMap | None) -> set[str]:
    """How plain numbers are meant, as the component says it."""
    units = set()
    if header_map:
        if header_map.get("resetUnit") == "ms":
            units.add("reset-is-millis")
        if header_map.get("retryAfterUnit") == "ms":
            units.add("retry-after-is-millis")
    return units


def _pairs(headers: Headers) -> Iterator[tuple[Text, Text | Sequence[Text]]]:
    multi = getattr(headers, "multi_items", None)  # httpx: repeated fields stay apart.
    if multi is not None:
        yield from multi()
    elif isinstance(headers, Mapping):
        yield from headers.items()
    else:
        for pair in headers:
            if not isinstance(pair, Sequence) or isinstance(pair, (str, bytes)) or len(pair) != 2:
                raise TypeError(f"headers: want (name, value); got {pair!r}")
            yield pair[0], pair[1]


def _text(value: object) -> str:
    if isinstance(value, str):
        text = value
    elif isinstance(value, bytes):
        text = value.decode("latin-1")
    elif isinstance(value, (int, float)):
        text = str(value)
    else:
        raise TypeError(f"headers: want text; got {value!r}")
    # What cannot cross as UTF-8 is no field of a server's.
    return text.encode("utf-8", "replace").decode("utf-8")


def _kind_of(name: str) -> str:
    kind = _kinds.get(name)
    if kind is None:
        lower = name.lower()
        kind = _LIMITS if _SAYS_SOMETHING.search(name) else {"date": _TIME, "age": _AGE}.get(lower, _NOTHING)
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        _kinds[name] = kind
    return kind


def _renamed(header_map: HeaderMap | None) -> dict[str, str]:
    if not header_map:
        return {}
    known = {}
    for part in ("limit", "remaining", "reset"):
        if part in header_map:
            known[str(header_map[part]).lower()] = f"x-ratelimit-{part}"
    if "retryAfter" in header_map:
        known[header_map["retryAfter"].lower()] = "retry-after"
    return known

"""What header fields may look like on their way to the engine, which reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

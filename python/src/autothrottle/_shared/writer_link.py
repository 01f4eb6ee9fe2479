"""What a writer is given: the process that it writes in, what it goes on from, and how often it says so.

The traps: a memory that looks younger than it is, so its age counts from when it was heard; and news, which
hurries it: a memory of a hundred thousand scopes takes half a second to write down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .messages import Message

_CHARACTERS = 65_536
"""A memory goes along less often the larger it is: not more than this a second, on average."""

_HURRY = 10
"""So many times oftener where there is news: whoever has it tells it in its story as well."""


@dataclass(frozen=True)
class WriterLink:
    """What a writer needs of its process."""

    id: str
    epoch: float
    hash: str
    lease_ms: float
    is_good: Callable[[], bool]
    """Whether it may still grant. If not, it is stopped by this call."""
    grant: Callable[[str, Message], None]
    tell: Callable[[Message], None]
    again: Callable[[], None]
    """A beat is wanted."""
    learned: Callable[[], None]
    """Something was learned that the next writer should know."""
    differs: Callable[[str], None]
    """A member has other options."""
    offset_ms: Callable[[], float | None]
    is_alone: bool = False
    """Decides for its own process only, while the way is broken."""


@dataclass(frozen=True)
class Beginning:
    """What the engine goes on from."""

    state: Mapping[str, Any] | None = None
    age_ms: float = 0.0
    former: str | None = None
    """Who wrote last."""
    gone: str | None = None
    """A process that is known to have ended."""
    snapshot: Mapping[str, Any] | None = None
    """Without a state: what the program gave."""


class Cadence:
    """How often a memory goes along with a beat."""

    def __init__(self) -> None:
        self._at = self._next_at = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it goes along."""
        return now >= self._next_at

    def went(self, now: float, characters: int) -> None:
        """It did."""
        self._at = now
        self._next_at = now + 1000 * characters / _CHARACTERS

    def hurry(self) -> None:
        """There is news."""
        self._next_at = min(self._next_at, self._at + (self._next_at - self._at) / _HURRY)

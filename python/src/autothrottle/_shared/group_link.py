"""What a group needs of its host.

The trap is a warning that says what and not why: each has its cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._events import SharedCode
from .messages import Message, Refusal


@dataclass(frozen=True)
class GroupLink:
    """What a group tells its host."""

    changed: Callable[[list[Refusal]], None]
    told: Callable[[Message], None]
    failed: Callable[[Exception], None]
    """Nobody can be asked: what waits is to fail."""
    warn: Callable[[SharedCode, str], None]

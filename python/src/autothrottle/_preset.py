"""What a preset is."""

from __future__ import annotations

from dataclasses import dataclass

from .options import ScopeOptions


@dataclass(frozen=True, slots=True)
class PresetSource:
    """A limit in its owner's words."""

    sentence: str
    """The sentence."""
    url: str
    """Where the owner says it."""
    read: str
    """When it was read: a day."""
    copy: str | None = None
    """It was read in this copy, not at the owner's address."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One host."""

    options: ScopeOptions
    """Settings of its scope. Times are seconds."""
    sources: tuple[PresetSource, ...]
    """Who says so."""
    user_agent: str | None = None
    """What the owner wants in ``User-Agent``; requests without it may be refused."""

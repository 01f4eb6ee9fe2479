"""A throttle that sees no status of its servers: one warning, before they have to ban."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._permit import Permit, Told

MANY = 20
"""That many requests of a scope in a row without a status cause a warning."""
_MOST_SCOPES = 10_000


class Unheard:
    """Scopes whose requests end without a status."""

    def __init__(self, warn: Callable[..., None]) -> None:
        self._warn = warn
        self._counts: dict[str, int] = {}

    def ended(self, permit: Permit, told: Told) -> None:
        """A request ended."""
        counts = self._counts
        if told.status is not None or told.error is not None or told.hints is not None:
            if counts:
                for name in permit.scopes:
                    counts.pop(name, None)
            return
        url = permit.target if isinstance(permit.target, str) else getattr(permit.target, "url", "")
        if "://" not in str(url):
            return
        if len(counts) > _MOST_SCOPES:
            counts.clear()
        for name in permit.scopes:
            counts[name] = counts.get(name, 0) + 1
            if counts[name] == MANY:
                what = f"the last {MANY} requests of {name} ended without a status, so a 429 has no effect"
                remedy = "return the response, or tell it by permit.settle(response)"
                self._warn("unheard", f"{what}; {remedy}", name, f"unheard {name}")

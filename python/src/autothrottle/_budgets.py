"""Scopes whose answers name several budgets (GitHub's resources, Discord's buckets): the desk names the
routes of their requests to the engine, which knows by them from which budget each one spends.

The trap is what waits or is on its way already when the first answer names one: the desk names those, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._desk import Desk
    from ._permit import Permit

_MOST = 10_000
"""Scopes that are kept, for a crawl sees many."""


class Budgets:
    """The scopes of one throttle that have several budgets, and since when."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._since: dict[str, int] = {}
        self.are_there = False
        """Whether any scope has some."""

    def has(self, names: tuple[str, ...]) -> bool:
        """Whether requests of these scopes have routes."""
        return len(names) == 1 and names[0] in self._since

    def split(self, scope: str) -> None:
        """Answers of a scope name several budgets: what waits goes to that of its route."""
        if len(self._since) >= _MOST:
            self._since.clear()
        now = self._desk.clock.now()
        self._since[scope] = now
        self.are_there = True
        for waiting in list(self._desk.waiting.values()):
            if waiting.scopes == (scope,):
                self.route(now, waiting.ticket, waiting.target)

    def ends(self, permit: Permit, now: int) -> None:
        """The answer of a request came that may have left before its budget could be known."""
        if self.has(permit.scopes) and permit.charge.sent <= self._since[permit.scopes[0]]:
            self.route(now, permit._ticket, permit.target)

    def route(self, now: int, ticket: int, target: object) -> None:
        """Tells the engine the route of a request. One that is for a scope alone has none."""
        url = target if isinstance(target, str) else getattr(target, "url", None)
        route = getattr(self._desk.engine, "route", None)
        if url is not None and route is not None:
            method = getattr(target, "method", None)
            route(now, ticket, method if isinstance(method, str) else "GET", str(url))

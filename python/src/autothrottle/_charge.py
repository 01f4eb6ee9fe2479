"""What has been taken for a request, in each of its scopes.

The trap is a correction of what was corrected: the engine begins from what it expected, so of a request that
was adjusted it gets no cost again, only the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ._told import checked_costs

if TYPE_CHECKING:
    from ._desk import Desk

_UNEVEN = "cost: want a mapping of scope to cost, for the scopes of this request have different ones"


class Charge:
    """All permits of one request share it: of who sends it, and of each attempt."""

    __slots__ = ("_costs", "_expected", "_is_adjusted", "sent")

    def __init__(self, names: Sequence[str], cost: float | Sequence[float]) -> None:
        costs = cost if isinstance(cost, Sequence) else [cost] * len(names)
        self._expected = dict(zip(names, costs, strict=True))
        self.leave(0)

    @property
    def expected(self) -> list[float]:
        """What it is to cost in each scope."""
        return list(self._expected.values())

    def leave(self, now: int) -> None:
        """An attempt leaves: it costs what was expected."""
        self.sent = now
        self._costs = self._expected
        self._is_adjusted = False

    def checked(self, cost: float | Mapping[str, float]) -> dict[str, float]:
        """A cost by scope; raises for what is none."""
        names = list(self._expected)
        if isinstance(cost, Mapping):
            return checked_costs(cost, names)
        if len(set(self._expected.values())) > 1:
            raise TypeError(_UNEVEN)
        return checked_costs(dict.fromkeys(names, cost), names)

    def adjust(self, desk: Desk, now: int, costs: Mapping[str, float]) -> None:
        """The engine takes or gives back the difference."""
        self._is_adjusted = True
        for name, cost in costs.items():
            charged = self._costs[name]
            if cost != charged:
                desk.engine.adjust(now, desk.handle(name), self.sent, charged, cost)
        self._costs = {**self._costs, **costs}

    def settle(self, desk: Desk, now: int, what: dict[str, Any]) -> None:
        """What its outcome says that it cost."""
        scopes, one = what.get("scopes", ()), what.get("cost")
        own = {each.scope: each.cost for each in scopes if each.cost is not None}
        if one is None and not own:
            return
        costs = {name: own.get(desk.handle(name), one) for name in self._expected}
        known = {name: cost for name, cost in costs.items() if cost is not None}
        if not self._is_adjusted:
            self._costs = {**self._costs, **known}
            return
        self.adjust(desk, now, known)
        what.pop("cost", None)
        if scopes:
            what["scopes"] = [replace(each, cost=None) for each in scopes]

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

    __slots__ = ("_corrected", "_cost", "_is_adjusted", "_names", "sent")

    def __init__(self, names: Sequence[str], cost: float | Sequence[float]) -> None:
        self._names = names
        self._cost = cost
        self.start_attempt(0)

    @property
    def expected(self) -> float | Sequence[float]:
        """What it is to cost in each scope."""
        return self._cost

    @property
    def _expected(self) -> dict[str, float]:
        costs = self._cost if isinstance(self._cost, Sequence) else [self._cost] * len(self._names)
        return dict(zip(self._names, costs, strict=True))

    @property
    def _costs(self) -> dict[str, float]:
        """What it has cost so far. A request that is not corrected makes no mapping."""
        return self._expected if self._corrected is None else self._corrected

    def start_attempt(self, now: int) -> None:
        """An attempt leaves: it costs what was expected."""
        self.sent = now
        self._corrected: dict[str, float] | None = None
        self._is_adjusted = False

    def checked(self, cost: float | Mapping[str, float]) -> dict[str, float]:
        """A cost by scope; raises for what is none."""
        names = list(self._names)
        if isinstance(cost, Mapping):
            return checked_costs(cost, names)
        if len(set(self._expected.values())) > 1:
            raise TypeError(_UNEVEN)
        return checked_costs(dict.fromkeys(names, cost), names)

    def adjust(self, desk: Desk, now: int, costs: Mapping[str, float]) -> None:
        """The engine takes or gives back the difference."""
        self._is_adjusted = True
        before = self._costs
        for name, cost in costs.items():
            charged = before[name]
            if cost != charged:
                desk.engine.adjust(now, desk.handle(name), self.sent, charged, cost)
        self._corrected = {**before, **costs}

    def settle(self, desk: Desk, now: int, what: dict[str, Any]) -> None:
        """What its outcome says that it cost."""
        if "scopes" not in what and "cost" not in what:
            return
        scopes, one = what.get("scopes", ()), what.get("cost")
        own = {each.scope: each.cost for each in scopes if each.cost is not None}
        if one is None and not own:
            return
        costs = {name: own.get(desk.handle(name), one) for name in self._names}
        known = {name: cost for name, cost in costs.items() if cost is not None}
        if not self._is_adjusted:
            self._corrected = {**self._costs, **known}
            return
        self.adjust(desk, now, known)
        what.pop("cost", None)
        if scopes:
            what["scopes"] = [replace(each, cost=None) for each in scopes]

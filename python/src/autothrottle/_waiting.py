"""Who waits, how, and what may become of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from .errors import ClosedError

if TYPE_CHECKING:
    from ._alarms import Alarm
    from ._charge import Charge
    from ._desk import Desk
    from ._permit import Permit


class Wait(NamedTuple):
    """How a request waits."""

    priority: float = 0
    cost: float = 1
    delay: int = 0
    timeout: float | None = None


class Waiting:
    """A request that waits. Its caller hears by ``wake``."""

    __slots__ = ("alarm", "charge", "error", "outer", "permit", "scopes", "target", "ticket")

    def __init__(self, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge) -> None:
        self.ticket = ticket
        self.scopes = scopes
        self.target = target
        self.charge = charge
        self.alarm: Alarm | None = None
        self.permit: Permit | None = None
        self.outer: Sequence[Permit] = ()
        self.error: BaseException | None = None

    def wake(self) -> None:
        """It has a permit or an error now."""

    def take(self) -> Permit:
        """The permit, once; or raises the error."""
        permit, self.permit = self.permit, None
        if permit is not None:
            return permit
        # One error for all who wait: each raises its own, so that tracebacks do not grow.
        if type(self.error) is ClosedError:
            raise ClosedError() from self.error.__cause__
        raise cast("BaseException", self.error)


Verdict: TypeAlias = Waiting | Literal["over", "again", "too-long"]
"""What became of a request: over; over since the server asks for too long a wait; over although it should
be sent
again, since it cannot be repeated; or what its next attempt waits for."""


P = ParamSpec("P")
T = TypeVar("T")


def locked(method: Callable[Concatenate[Desk, P], T]) -> Callable[Concatenate[Desk, P], T]:
    """One thread at a time: the engine knows of none."""

    @wraps(method)
    def call(desk: Desk, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with desk.lock:
            return method(desk, *args, **kwargs)

    return call

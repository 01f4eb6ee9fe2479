"""Permission to send one request. It holds a slot in every scope of the request until it is settled.

The trap is the permit that nobody settles: its slots are gone for good. ``with`` settles it at the end of the
block, whatever happened there; one that is collected as garbage is given back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ._begun import left
from ._clock import NANOS
from ._hooks import Backoffs, SomeHints
from ._outcome import answer_in, answer_in_error, failure_of, fields_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._desk import Desk


@dataclass(slots=True)
class Told:
    """How a request ended, as a permit is told. Without a status and an error nothing is learned."""

    status: int | None = None
    headers: Any = None
    error: BaseException | None = None
    hints: SomeHints | None = None
    latency: float | timedelta | None = None
    backoff: bool | None = None
    scopes: Backoffs | None = None
    cost: float | None = None
    adjust_delay: bool = True
    is_blamed: bool = True
    """Whether somebody says that the error is the server's."""


NOTHING = Told()
"""Nothing is learned; the slots come back."""


class Permit:
    """Made by ``throttle.acquire``."""

    __slots__ = ("_desk", "_is_settled", "_sent", "_ticket", "scopes", "target")

    def __init__(self, desk: Desk, ticket: int, scopes: tuple[str, ...], target: object, sent: int) -> None:
        self._desk = desk
        self._ticket = ticket
        self._sent = sent
        self._is_settled = False
        self.scopes = scopes
        """The scopes that agreed."""
        self.target = target
        """What it is for."""

    @property
    def sent_at(self) -> float:
        """When it was given, or could first be used if that was later: seconds of the throttle's clock."""
        return self._sent / NANOS

    @property
    def is_settled(self) -> bool:
        """Whether it was settled."""
        return self._is_settled

    def settle(
        self,
        response: object = None,
        *,
        status: int | None = None,
        headers: object = None,
        error: BaseException | None = None,
        hints: SomeHints | None = None,
        latency: float | timedelta | None = None,
        backoff: bool | None = None,
        scopes: Backoffs | None = None,
        cost: float | None = None,
        adjust_delay: bool = True,
    ) -> None:
        """Gives the slots back and tells what happened. Only the first call counts.

        ``response`` is that of any client; ``status`` and ``headers`` say the same without one.

        * ``error``: why there was no response. If it carries one (``error.response``), that counts. A
          cancelled task teaches nothing about the server.
        * ``hints``: what was not in headers; they take the place of ``headers``.
        * ``latency``: seconds from send to response headers. Default: until now, if there was a response.
        * ``backoff``: whether the answer is bad, if you know better than the status and
          ``backoff.status_codes``.
        * ``scopes``: those that this makes back off, if not all or none of them.
        * ``cost``: what the request really cost, if that is not what was expected.
        * ``adjust_delay``: ``False`` keeps AutoThrottle's delay as it is.

        Raises ``TypeError``, ``ValueError`` or ``ManagerError`` for what makes no sense; the slots come back
        all the same.
        """
        if not self.take():
            return
        if response is not None and status is None:
            answer = answer_in(response)
            if answer is None:
                self._desk.end(self, NOTHING)
                raise TypeError(f"settle: want a response with a status; got {response!r:.60}")
            status, headers = answer.status, answer.headers if headers is None else headers
        elif headers is not None:
            headers = fields_of(headers)
        told = Told(status, headers, error, hints, latency, backoff, scopes, cost, adjust_delay)
        self._desk.end(self, told)

    def take(self) -> bool:
        """Marks it as settled; ``False`` if it was."""
        if self._is_settled:
            return False
        self._is_settled = True
        return True

    def begun(self) -> None:
        """Its request is on its way only now."""
        desk = self._desk
        with desk.lock:
            if not self._is_settled:
                self._sent = left(desk.engine, desk.clock.now, self._ticket, self._sent)

    def leave(self, error: BaseException | None) -> None:
        """The end of the block that it was taken for."""
        if self.take():
            self._desk.end(self, NOTHING if error is None else told_by_error(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.leave(error)

    def __del__(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._desk.lose(self._ticket, self.scopes)

    def __repr__(self) -> str:
        state = "settled" if self._is_settled else "open"
        return f"<Permit for {', '.join(self.scopes)}: {state}>"


def told_by_result(result: object) -> Told:
    """What a function's result says."""
    answer = answer_in(result)
    return NOTHING if answer is None else Told(answer.status, answer.headers)


def told_by_error(error: BaseException) -> Told:
    """What a function's error says. A bug of the function's, and a cancelled task, teach nothing."""
    answer = answer_in_error(error)
    if answer is not None:
        return Told(answer.status, answer.headers)
    return NOTHING if failure_of(error) is None else Told(error=error)

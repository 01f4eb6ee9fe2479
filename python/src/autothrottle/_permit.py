"""Permission to send one request. It holds a slot in every scope of the request until it is settled.

The trap is the permit that is never settled: its slots are gone for good. ``with`` settles it at the end of
the block, whatever happened there; one that is collected as garbage is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ._begun import LATE, is_told
from ._clock import NANOS
from ._hooks import Backoffs, SomeHints
from ._nesting import enter_block, exit_block
from ._outcome import answer_in, answer_in_error, failure_of, fields_of
from ._waiting import Verdict, Wait

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._charge import Charge
    from ._desk import Desk


@dataclass(slots=True)
class Told:
    """How a request ended, for ``settle``. Without a status and an error no pace changes."""

    status: int | None = None
    headers: Any = None
    error: BaseException | None = None
    hints: SomeHints | None = None
    latency: float | timedelta | None = None
    backoff: bool | None = None
    scopes: Backoffs | None = None
    cost: float | Mapping[str, float] | None = None
    adjust_delay: bool = True
    is_blamed: bool = True
    """Whether the caller says that the error is the server's."""

    @property
    def is_refusal(self) -> bool:
        """Whether another attempt may end better."""
        return self.error is not None or self.status == 429 or (self.status or 0) >= 500


NOTHING = Told()
"""The slots come back, and no pace changes."""


class Permit:
    """Made by ``throttle.acquire``, and given to functions of ``run``, ``map`` and ``wrap`` with a parameter
    ``permit``.
    """

    __slots__ = (
        "_desk",
        "_is_settled",
        "_ticket",
        "again",
        "asked",
        "charge",
        "heir",
        "scopes",
        "target",
        "verdict",
    )

    def __init__(
        self, desk: Desk, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge
    ) -> None:
        self._desk = desk
        self._ticket = ticket
        self.charge = charge  # What has been taken for it, and since when.
        self._is_settled = False
        self.again: Wait | None = None  # How it waits for another attempt, if there may be one.
        self.verdict: Verdict | None = None  # What became of it.
        self.asked: int | None = None  # What its server asked for, if its function was still running then.
        self.heir: Permit | None = None  # Who sends its request. (Itself would be a cycle, and never lost.)
        self.scopes = scopes
        """The scopes that agreed."""
        self.target = target
        """What the permit is for."""

    @property
    def sent_at(self) -> float:
        """When the request could leave, in seconds of the throttle's clock."""
        return self.charge.sent / NANOS

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
        cost: float | Mapping[str, float] | None = None,
        adjust_delay: bool = True,
    ) -> None:
        """Gives the slots back and says how the request ended. Only the first call counts.

        ``response`` is that of any client; ``status`` and ``headers`` say the same without one.

        * ``error``: why there was no response. If it carries one (``error.response``), that counts. A
          cancelled task changes no pace.
        * ``hints``: what was not in headers; they take the place of ``headers``.
        * ``latency``: seconds from send to response headers. Default: until now, if there was a response.
        * ``backoff``: whether the answer is bad, if you know better than the status and
          ``backoff.status_codes``.
        * ``scopes``: those that this makes back off, if not all or none of them.
        * ``cost``: what the request really cost, if that is not what was expected: a number, or a mapping of
          scope to cost.
        * ``adjust_delay``: ``False`` keeps AutoThrottle's delay as it is.

        Raises ``TypeError``, ``ValueError`` or ``ManagerError`` for what makes no sense; the slots come back
        all the same.
        """
        if self._is_settled:
            return
        if response is not None and status is None:
            answer = answer_in(response)
            if answer is None:
                self.tell(NOTHING)
                raise TypeError(f"settle: want a response with a status; got {response!r:.60}")
            status, headers = answer.status, answer.headers if headers is None else headers
        slip = None
        given: object = error
        if given is not None and not isinstance(given, BaseException):
            slip, error = f"error: want an exception; got {given!r:.60}", None
        if headers is not None:
            typed, headers = headers, fields_of(headers)
            if headers is None:
                slip = f"headers: want a mapping, or names and values; got {typed!r:.60}"
        self.tell(Told(status, headers, error, hints, latency, backoff, scopes, cost, adjust_delay))
        if slip is not None:
            raise TypeError(slip)

    def adjust(self, cost: float | Mapping[str, float]) -> None:
        """Corrects the cost of the request, as often as you like, also after it was settled.

        A mapping of scope to cost, or a number where all of its scopes had one cost. If it is more than was
        taken, later requests wait for the rest; if it is less, the rest comes back. Raises ``TypeError`` or
        ``ValueError`` for what is no cost.
        """
        self._desk.adjust(self, cost)

    def end(self, told: Told) -> None:
        """Tells how it ended, once."""
        if self.take():
            self.verdict = self._desk.end(self, told, self.again)

    def tell(self, told: Told) -> None:
        """The same while its function runs: another attempt would hold slots that the function waits for."""
        if self.take():
            self.verdict = self._desk.end(self, told, self.again, False)
            self.asked = self._desk.asked

    def give(self, target: object) -> Permit:
        """The same permit for who sends its request; this one is settled."""
        self._is_settled = True
        given = Permit(self._desk, self._ticket, self.scopes, target, self.charge)
        given.again = self.again
        self.heir = given
        given.begun()
        return given

    def take(self) -> bool:
        """Marks it as settled; ``False`` if it was."""
        if self._is_settled:
            return False
        self._is_settled = True
        return True

    def begun(self) -> None:
        """Its request is on its way only now."""
        desk = self._desk
        now = desk.clock.now()
        if now - self.charge.sent < LATE:
            return
        with desk.lock:
            if not self._is_settled and is_told(desk.engine):
                desk.engine.left(now, self._ticket)
                self.charge.sent = now

    def end_block(self, error: BaseException | None) -> None:
        """The end of the block that it was taken for."""
        self.end(NOTHING if error is None else told_by_error(error))

    def __enter__(self) -> Self:
        self._desk.unsettled.tickets.discard(self._ticket)
        enter_block(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        exit_block(self)
        self.end_block(error)

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
    """What a function's error says. Its bugs, and a cancelled task, say no word about the server."""
    answer = answer_in_error(error)
    if answer is not None:
        return Told(answer.status, answer.headers)
    return NOTHING if failure_of(error) is None else Told(error=error)

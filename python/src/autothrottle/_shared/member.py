"""The requests of one process, and what its writer has to be told of them: see ``js/shared/member.ts``.

The trap is another process that remembers for us: it may be gone. So everything is kept here until it is
over, and beyond that until the writer's memory of it has been heard in a beat; and whenever something may
have been lost, the whole story is told again (``hello``).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from .._begun import LATE
from .messages import Message, Refusal, Told

T = TypeVar("T")

RETRY_DELAY = 4
"""Where the delay of the next attempt stands in what the engine is told."""

_LATE = 1 / 6
"""Where leave is later by this part of a lease, only one of those that are due is used."""

_UNTOLD_MS = LATE / 1e6
"""So much later than it was to a request may leave, and nobody is told."""

_QUITE_LATE_MS = 20.0
"""So late it is said also where nobody waits for the time after it."""

_FARTHEST_MS = 1000.0
"""No grant is made farther ahead: a store's clock that was set would hold it for long."""

_TELL_MS = 0.05
"""A request of a story takes so long to be told and heard, on a machine that has much to do."""

_LONGEST_LEASES = 20
"""What no memory is known to have is kept for so many leases."""


class Memory(NamedTuple):
    """What was heard of the writer, and when."""

    text: str
    at: float


@dataclass(slots=True)
class Pending:
    """A request of this process."""

    id: int
    names: list[str]
    cost: float | list[float]
    priority: float
    since: float
    """Since when it waits."""
    not_before: float
    """Its own delay ends then."""
    attempt: int = 0
    state: Literal["waiting", "granted", "flying"] = "waiting"
    sent_at: float = math.nan
    """When it is to leave, or left."""
    due_at: float = math.nan
    """When it was to leave."""
    is_awaited: bool = False
    """Whether somebody waits for the time after it."""


@dataclass(slots=True)
class _Kept(Generic[T]):
    """What is over, or was ordered, and may not be in anybody's memory yet."""

    what: T
    at: float
    hello: int
    first: int
    """The hello and the turn that said so first."""
    turn: int
    """The turn of this hello that said so; 0 if the hello did."""
    is_remembered: bool = False
    """Whether a beat came with a memory that has it."""


@dataclass(frozen=True)
class MemberLink:
    """What the member needs of its process."""

    id: str
    hash: str
    now: Callable[[], float]
    offset_ms: Callable[[], float | None]
    """Milliseconds that the group's clock is ahead."""
    after_turn: Callable[[Callable[[], object]], None]
    send: Callable[[Message], None]
    """To the writer; here, if this process writes."""
    changed: Callable[[list[Refusal]], None]
    """Somebody may leave, or was refused."""


class Member:
    """The requests of this process."""

    def __init__(self, link: MemberLink, lease_ms: float) -> None:
        self.memory: Memory | None = None
        """What was last heard of the writer's memory; for whoever writes next."""
        self.seen: Memory | None = None
        """What was last heard of its statistics."""
        self.watch = 0
        self.is_awaited = False
        """Whether somebody waits for the time after what was granted last."""
        self.waiting = 0
        self.in_flight = 0
        self._link = link
        self._lease_ms = lease_ms
        self._requests: dict[int, Pending] = {}
        self._granted: list[Pending] = []
        self._over: list[_Kept[tuple[Pending, Told]]] = []
        self._orders: list[_Kept[tuple[int, list[Any]]]] = []
        self._ordered = 0
        self._acts: list[list[Any]] = []
        self._late: dict[int, Pending] = {}
        """Those that left late in this turn."""
        self._is_flushing = False
        self._last = -1
        self._epoch: float = 0
        self._hello = 0
        self._hello_at = -math.inf
        self._turn = self._turns_before = self._grants_before = 0
        self._grants: set[int] = set()

    @property
    def epoch(self) -> float:
        """Of the writer that is asked; 0 before there is one."""
        return self._epoch

    def submit(self, names: list[str], cost: float | list[float], priority: float, delay: float) -> int:
        """A request that waits from now on."""
        now = self._link.now()
        self._last += 1
        request = Pending(self._last, names, cost, priority, now, now + delay)
        self._requests[request.id] = request
        self.waiting += 1
        self._say(["ask", request.id, 0, names, cost, priority, delay, 0])
        return request.id

    def poll(self, now: float) -> tuple[int | None, float | None]:
        """A ticket that may leave now; or when to ask again."""
        if not self._granted:
            return None, None
        first = self._granted[0]
        if first.sent_at > now:
            return None, first.sent_at
        late = now - first.sent_at
        if late > self._lease_ms:
            self._wake_up()
            return None, None
        self._granted.pop(0)
        first.state = "flying"
        self.waiting -= 1
        self.in_flight += 1
        self._leave(first, now)
        # All at once would be a burst; none at all would be for ever where a machine has too much to do.
        if late > _LATE * self._lease_ms and self._granted:
            self._wake_up()
        return first.id, None

    def left(self, now: float, ticket: int) -> None:
        """A request leaves only now: what the writer grants next counts from here."""
        request = self._requests.get(ticket)
        if request is not None and request.state == "flying":
            self._leave(request, now)

    def _leave(self, request: Pending, now: float) -> None:
        request.sent_at = now
        # Where nobody waits for the time after it, quotas still have to know of one that is noticeably late.
        if now - request.due_at >= (_UNTOLD_MS if request.is_awaited else _QUITE_LATE_MS):
            self._late[request.id] = request
            self._soon()

    def settle(self, ticket: int, told: Told) -> bool:
        """It ended. Whether it waits anew is in what the engine is told. False if it was not in flight."""
        request = self._requests.get(ticket)
        if request is None or request.state != "flying":
            return False
        self._say(["over", ticket, request.attempt, told])
        self.in_flight -= 1
        delay = told[RETRY_DELAY] if len(told) > RETRY_DELAY else None
        if delay is None:
            del self._requests[ticket]
            self._over.append(self._kept((request, told)))
        else:
            over = [*told[:RETRY_DELAY], None, *told[RETRY_DELAY + 1 :]]
            self._over.append(self._kept((replace(request), over)))
            request.attempt += 1
            request.state = "waiting"
            request.not_before = self._link.now() + delay
            self.waiting += 1
        return True

    def cancel(self, ticket: int) -> None:
        """Nobody wants it."""
        request = self._requests.get(ticket)
        if request is not None:
            self._forget(request)
            self._say(["cancel", ticket])

    def order(self, order: list[Any]) -> None:
        """A change that concerns everybody."""
        self._ordered += 1
        self._orders.append(self._kept((self._ordered, order)))
        self._say(["order", self._ordered, order])

    def is_flying(self, ticket: int) -> bool:
        """Whether it left and is not over."""
        request = self._requests.get(ticket)
        return request is not None and request.state == "flying"

    def names_of(self, ticket: int) -> Sequence[str]:
        """Its scopes."""
        request = self._requests.get(ticket)
        return () if request is None else request.names

    def everybody(self) -> list[int]:
        """A ticket of everybody who waits."""
        return [request.id for request in self._requests.values() if request.state == "waiting"]

    def enter(self, epoch: float) -> None:
        """Another writer. Everything is said again; what was granted and has not left keeps its leave."""
        if epoch > self._epoch:
            self._epoch = epoch
            self.say_hello()

    def retreat(self) -> None:
        """Back from alone: the writer before it may be there still, and is told when it beats."""
        self._epoch = math.floor(self._epoch)
        self._hello += 1

    def say_hello(self) -> None:
        """The whole story. Grants that answer an older one are not heard."""
        if self._epoch == 0:
            return
        now = self._link.now()
        self._hello += 1
        self._hello_at = now
        self._acts = []
        self._late.clear()
        self._turn = self._turns_before = self._grants_before = 0
        self._grants.clear()
        for over in self._over:
            over.turn = 0
        for order in self._orders:
            order.turn = 0
        waiting: list[dict[str, Any]] = []
        flying = [
            {**self._flight(kept.what[0], now), "told": kept.what[1], "said": [kept.hello, kept.first]}
            for kept in self._over
        ]
        for request in self._requests.values():
            if request.state == "waiting":
                waiting.append(self._ask(request, now))
            else:
                flying.append(self._flight(request, now))
        self._link.send(
            {
                **self._head("hello"),
                "waiting": waiting,
                "flying": flying,
                "orders": [[kept.what[0], now - kept.at, kept.what[1]] for kept in self._orders],
                "hash": self._link.hash,
                "watch": self.watch,
            }
        )

    def ping(self, kind: Literal["ping", "bye"] = "ping") -> None:
        """It is there, or leaves."""
        if self._epoch > 0:
            self._link.send(self._head(kind))

    def on_grant(self, grant: Message) -> None:
        """The writer gives leave, or refuses."""
        number = grant["number"]
        if grant["epoch"] != self._epoch or grant["hello"] != self._hello or number in self._grants:
            return
        now, offset = self._link.now(), self._link.offset_ms()
        at = grant.get("at")
        then = now if at is None or offset is None else at - offset
        if now - then > self._lease_ms:
            # As if it were lost.
            self._tell_again(now)
            return
        self._grants.add(number)
        sent_at = min(then, now + _FARTHEST_MS)
        self.is_awaited = grant.get("isAwaited") is True
        ids = grant["ids"]
        for ticket, attempt in zip(ids[::2], ids[1::2], strict=True):
            request = self._requests.get(ticket)
            if request is None or request.state != "waiting" or request.attempt != attempt:
                continue
            request.state = "granted"
            request.sent_at = sent_at
            request.due_at = then
            request.is_awaited = self.is_awaited
            insort(self._granted, request, key=lambda each: each.sent_at)
        wanted: list[Refusal] = []
        for refusal in grant["refused"]:
            request = self._requests.get(refusal[0])
            if request is not None and request.state == "waiting":
                self._forget(request)
                wanted.append(refusal)
        self._link.changed(wanted)

    def on_beat(self, beat: Message) -> None:
        """The writer is there. Tells it everything again where one of both has missed something."""
        if beat["epoch"] != self._epoch:
            return
        now = self._link.now()
        state, seen = beat.get("state"), beat.get("seen")
        if state is not None:
            self.memory = Memory(state, now)
        if seen is not None:
            self.seen = Memory(seen, now)
        hello, turns, grants = beat["members"].get(self._link.id, (0, 0, 0))
        if hello != self._hello:
            self._tell_again(now)
            return
        # Whoever writes next may have missed this beat: so it is kept for two more.
        soon, late = now - 2 * self._lease_ms, now - _LONGEST_LEASES * self._lease_ms

        def is_needed(kept: _Kept[Any]) -> bool:
            if state is not None and kept.turn <= turns:
                kept.is_remembered = True
            return kept.at > (soon if kept.is_remembered else late)

        self._over = [kept for kept in self._over if is_needed(kept)]
        self._orders = [kept for kept in self._orders if is_needed(kept)]
        is_missing = turns < self._turns_before or len(self._grants) < self._grants_before
        self._turns_before = self._turn
        self._grants_before = grants
        if is_missing:
            self.say_hello()

    def flush(self) -> None:
        """Says what has not been said yet."""
        acts, self._acts = self._acts, []
        for request in self._late.values():
            acts.insert(0, ["left", request.id, request.attempt, request.sent_at - request.due_at])
        self._late.clear()
        # Before there is a writer: the hello will say it.
        if acts and self._epoch != 0:
            self._turn += 1
            self._link.send({**self._head("turn"), "number": self._turn, "acts": acts})

    def _tell_again(self, now: float) -> None:
        """Not again and again while the answer is on its way, which takes longer where there is much."""
        if now - self._hello_at >= self._lease_ms / 20 + _TELL_MS * len(self._requests):
            self.say_hello()

    def _wake_up(self) -> None:
        """It slept for so long that others have gone on, or its grants were taken back: they wait again."""
        granted, self._granted = self._granted, []
        for request in granted:
            request.state = "waiting"
        self.say_hello()

    def _forget(self, request: Pending) -> None:
        del self._requests[request.id]
        if request.state == "flying":
            self.in_flight -= 1
        else:
            self.waiting -= 1
        if request.state == "granted":
            self._granted = [each for each in self._granted if each is not request]

    def _kept(self, what: T) -> _Kept[T]:
        turn = self._turn + 1
        return _Kept(what, self._link.now(), self._hello, turn, turn)

    def _say(self, act: list[Any]) -> None:
        """Whatever happens in one turn of the loop is one message."""
        self._acts.append(act)
        self._soon()

    def _soon(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self._link.after_turn(self._flushed)

    def _flushed(self) -> None:
        self._is_flushing = False
        self.flush()

    def _head(self, kind: str) -> Message:
        return {"type": kind, "from": self._link.id, "epoch": self._epoch, "hello": self._hello}

    @staticmethod
    def _ask(request: Pending, now: float) -> dict[str, Any]:
        return {
            "id": request.id,
            "attempt": request.attempt,
            "names": request.names,
            "cost": request.cost,
            "priority": request.priority,
            "delay": max(request.not_before - now, 0.0),
            "waited": now - request.since,
        }

    def _flight(self, request: Pending, now: float) -> dict[str, Any]:
        ago = 0.0 if request.state == "granted" else max(now - request.sent_at, 0.0)
        return {**self._ask(request, now), "delay": 0, "sentAgo": ago}

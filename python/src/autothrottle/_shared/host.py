"""A shared host: it answers what an engine answers, by the machine of a group (``shared/`` in Rust).

The machine decides everything. Here refusals are errors; what the machine wants done is carried out at the
end of each turn, and one timer wakes it. The machine's knowledge of other processes is as old as the last
message from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .._clock import Timer
from .._native import Engine, Shared
from .._records import Notice, Robots, ScopeStats, SharedCode, Stats, Watching
from .._state import Decision, Peek, Settled
from ..errors import (
    ConfigError,
    CostExceedsQuotaError,
    Problem,
    QueueFullError,
    ScopeDownError,
    SharedError,
)
from .transport import EventLoop, Lease, Leaving, Offline, Peer, Transport

_NS = 1_000_000
_LEVELS = {"nothing": 0, "changes": 1, "answers": 2}


class Listener(Protocol):
    """Calls of the host by itself."""

    def changed(self) -> None:
        """There may be something to poll, or a notice."""

    def refuse(self, ticket: int, error: BaseException) -> None:
        """A request that waits never will leave."""

    def shared_warning(self, code: SharedCode, message: str) -> None:
        """Something noteworthy that is no error."""

    def moved(self) -> None:
        """Another decides, others are in the group, or the way to them is another."""


class SharedHost:
    """Stands in for an :class:`Engine` at a scheduler. Instants and spans are its: whole nanoseconds."""

    def __init__(
        self,
        transport: Transport,
        event_loop: EventLoop,
        options: Mapping[str, Any],
        *,
        offline: Offline | None,
        members: int | None = None,
        random: Callable[[], float],
        id: str | None = None,  # noqa: A002
    ) -> None:
        self._transport = transport
        self._event_loop = event_loop
        self._options = options
        self._offline = offline
        self._members = members
        self._seed = int(random() * 2**53)
        self.id = id or "".join(f"{int(random() * 256):02x}" for _ in range(16))
        self._machine = self._made()
        self._listener: Listener | None = None
        self._notices: list[Notice] = []
        self._timer: Timer | None = None
        self._is_turning = self._is_open = self._is_closed = False
        self._denied: ConfigError | None = None
        self._broken: BaseException | None = None
        self._carry()

    def _made(self, **restored: Any) -> Shared:
        lease = int(self._transport.lease_ms * _NS)
        return Shared(
            self.id,
            self._options,
            lease=lease,
            offline=self._offline,
            members=self._members,
            seed=self._seed,
            **restored,
        )

    def listen(self, listener: Listener) -> None:
        """Sets who gets the news."""
        self._listener = listener

    def leave(self) -> Leaving | None:
        """No more questions come. Gives what is still to be said, once."""
        if self._is_closed:
            return None
        self._machine.close(self._now())
        self._carry()
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        return self._transport.close() if self._is_open else None

    # Scopes, by numbers of this process's own.

    @property
    def scopes(self) -> int:
        """Names that are known."""
        return self._machine.scopes

    def find(self, name: str) -> int | None:
        """A handle, if the name has one: only the leader knows whether the scope exists."""
        return self._machine.find(name)

    def intern(self, name: str) -> int:
        """A handle that may be forgotten."""
        return self._machine.intern(name)

    def scope(self, name: str) -> int:
        """A handle that is good until it is released."""
        return self._machine.scope(name)

    def release(self, scope: int) -> None:
        """Gives it back."""
        self._machine.release(scope)

    def keep_alive(self, scope: int) -> bool:
        """Whether the handle still means what it meant."""
        return self._machine.keep_alive(scope)

    def name(self, scope: int) -> str | None:
        """The name behind a handle."""
        return self._machine.name(scope)

    # Requests.

    def submit(
        self,
        now: int,
        scopes: Sequence[int],
        *,
        cost: float | Sequence[float] = 1,
        priority: float = 0,
        delay: int = 0,
    ) -> int:
        """A request that waits until the leader grants it."""
        ticket = self._machine.submit(now, scopes, cost, priority, delay)
        if not isinstance(ticket, int):
            raise self._error_of(ticket)
        self._soon()
        return ticket

    def send_at_once(self, now: int, scopes: Sequence[int], **needs: Any) -> None:
        """No request leaves before the leader has said so."""

    def poll(self, now: int) -> Decision:
        """The requests that may leave now. When to ask again this host knows by itself."""
        send: list[int] = []
        while (ticket := self._machine.poll(now)) is not None:
            send.append(ticket)
        if send:
            self._soon()
        return Decision(send, None, None, None)

    @property
    def is_awaited(self) -> bool:
        """Whether a request waits for the time after the last grant."""
        return self._machine.is_awaited

    # written by `cargo xtask write`: verbs of a group
    def wants_route(self, ticket: int, has_fields: bool = False) -> bool:
        """Whether the ``route`` of a request is to be named. Ask after ``submit``; of what waits when the
        notice ``budgets`` comes; and before ``settle``, where ``has_fields`` says that header fields follow.
        """
        return self._machine.wants_route(ticket, has_fields)

    def route(self, now: int, ticket: int, method: str, url: str) -> None:
        """Names the route of a request, where it is wanted, by its method and URL. Poll afterwards."""
        self._machine.route(now, ticket, method, url)
        self._soon()

    def sent_at(self, now: int, ticket: int) -> None:
        """Says that the request that ``poll`` gave left only at ``now``: the delays of its scopes, and what
        rampup found, count from there. For a loop that is busy between the two. It may come later: an instant
        that is over counts as it is. Unknown tickets, and those that were not sent, are ignored.
        """
        self._machine.sent_at(now, ticket)
        self._soon()

    def cancel(self, now: int, ticket: int) -> None:
        """Takes a waiting request out; one that was allowed to leave but never did gives everything back."""
        self._machine.cancel(now, ticket)
        self._soon()

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return self._machine.waiting

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return self._machine.in_flight

    @property
    def warn_threshold(self) -> int:
        """The setting ``warnThreshold``: more waiting requests than that cause a warning."""
        return self._machine.warn_threshold

    def retries(self, method: str) -> int:
        """How often a request of this method is sent again at most, by the setting ``retry``."""
        return self._machine.retries(method)

    # end of what is written

    def settle(self, now: int, ticket: int, **outcome: Any) -> Settled:
        """How a request ended: judged here, told there."""
        settled = self._machine.settle(now, ticket, **outcome)
        self._soon()
        return settled

    # Settings and states: orders, which all hear.

    def configure(self, now: int, scope: int, options: Mapping[str, object]) -> None:
        """Changes settings of one scope, in all processes."""
        self._machine.configure(now, scope, options)
        self._soon()

    def crawl_delay(self, now: int, scope: int, delay: int | None) -> Robots:
        """Sets the pace that a robots.txt asks for."""
        self._soon()
        return self._machine.crawl_delay(now, scope, delay)

    def hold(self, now: int, scope: int, length: int) -> None:
        """Sends no request for that long."""
        self._machine.hold(now, scope, length)
        self._soon()

    def adjust(self, now: int, scope: int, sent: int, charged: float, cost: float) -> None:
        """Corrects the cost of a request."""
        self._machine.adjust(now, scope, sent, charged, cost)
        self._soon()

    def pause(self, now: int, scope: int | None = None) -> None:
        """Sends no request."""
        self._machine.pause(now, scope)
        self._soon()

    def resume(self, now: int, scope: int | None = None) -> None:
        """Ends a pause."""
        self._machine.resume(now, scope)
        self._soon()

    def reset(self, now: int, scope: int) -> None:
        """Forgets what a scope learned."""
        self._machine.reset(now, scope)
        self._soon()

    def watch(self, level: Watching) -> None:
        """How much news there is of answers."""
        self._machine.watch(self._now(), _LEVELS[level])
        self._soon()

    # Questions.

    def peek(self, now: int, scopes: Sequence[int | None], *, cost: float | Sequence[float] = 1) -> Peek:
        """As of the last message, where another process decides."""
        return Peek(*self._machine.peek(now, scopes, cost))

    def stats(self, now: int) -> Stats:
        """The leader's last statistics. ``age``: how old it is."""
        return self._machine.stats(now)

    def scope_stats(self, now: int, scope: int) -> ScopeStats:
        """The state of one scope."""
        return self._machine.scope_stats(now, scope)

    def snapshot(self, now: int, wall: int | None = None) -> dict[str, Any]:
        """The state that all processes learned."""
        return self._machine.snapshot(now, wall)

    def restore(self, snapshot: Mapping[str, object], now: int, wall: int | None = None) -> None:
        """The state that the first leader starts with. A wrong one raises at once."""
        Engine(self._options).restore(snapshot, now, wall)
        self._machine = self._made(snapshot=snapshot, wall=wall)
        self._carry()

    @property
    def has_notices(self) -> bool:
        """Whether there is something for ``take_notices``."""
        return bool(self._notices)

    def take_notices(self) -> list[Notice]:
        """The notices since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        """As an engine's: there is no memory to give back."""

    # Performs the machine's effects.

    def _now(self) -> int:
        return max(0, round(self._event_loop.now() * _NS))

    def _soon(self) -> None:
        """Carries at the end of this turn. Before the loop runs, the first request takes it along."""
        if self._is_turning or self._is_closed or not self._event_loop.is_running:
            return
        self._open()
        self._is_turning = True
        self._event_loop.after_turn(self._turn)

    def _turn(self) -> None:
        self._is_turning = False
        if not self._is_closed:
            self._carry()

    def _carry(self) -> None:
        now = self._now()
        while (effect := self._machine.poll_effect(now)) is not None:
            self._do(*effect)
        if self._listener is not None:
            # A grant of this process to itself is in no frame.
            self._listener.changed()
        self._sleep()

    def _do(self, what: str, *of: Any) -> None:
        machine, transport = self._machine, self._transport
        if what == "fail":
            ticket, refusal = of
            if self._listener is not None:
                self._listener.refuse(ticket, self._error_of(refusal))
        elif what == "notice":
            self._notices.append(of[0])
        elif what == "warn":
            if self._listener is not None:
                self._listener.shared_warning(*of)
        elif what == "moved":
            if self._listener is not None:
                self._listener.moved()
        elif what == "compete":
            op, above = of
            transport.compete(above, self._answer(op, lambda lease, now: self._elected(now, op, lease)))
        elif what == "renew":
            op, epoch, store = of
            transport.renew(epoch, store, self._answer(op, lambda yes, now: machine.answered(now, op, yes)))
        elif what == "release":
            op, epoch, store = of
            transport.release(epoch, store, self._answer(op, lambda _, now: machine.answered(now, op, True)))
        elif what == "leader":
            transport.to_leader(*of)
        elif what == "member":
            transport.to_member(*of)
        elif what == "all":
            transport.to_all(*of)
        elif what == "reconnect":
            transport.reconnect(*of)

    def _elected(self, now: int, op: int, lease: Lease | None) -> None:
        if lease is None:
            self._machine.answered(now, op, False)
        else:
            self._machine.elected(now, op, lease.epoch, lease.stored, int(lease.age_ms * _NS))

    def _answer(
        self, op: int, answer: Callable[[Any, int], None]
    ) -> Callable[[Any, BaseException | None], None]:
        def done(result: Any, error: BaseException | None) -> None:
            if self._is_closed:
                return
            now = self._now()
            if error is None:
                self._denied = None
                answer(result, now)
            else:
                self._broken = error
                if isinstance(error, ConfigError):
                    self._denied = error
                self._machine.failed(now, op, str(error), isinstance(error, ConfigError))
            self._notify()

        return done

    def _open(self) -> None:
        if self._is_open:
            return
        self._is_open = True
        self._event_loop.open()
        self._transport.open(
            Peer(
                self.id,
                opened=lambda: self._receive(self._machine.opened),
                received=lambda frame: self._receive(self._machine.received, frame),
                unheard=lambda member, epoch: self._receive(self._machine.unheard, member, epoch),
                vacant=lambda: self._receive(self._machine.vacant, False),
                fenced=lambda epoch: self._receive(self._machine.fenced, epoch),
            )
        )

    def _receive(self, give: Callable[..., None], *what: Any) -> None:
        if not self._is_closed:
            give(self._now(), *what)
            self._notify()

    def _notify(self) -> None:
        """Something happened outside: who may leave now leaves."""
        if self._listener is not None:
            self._listener.changed()
        self._soon()

    def _sleep(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._machine.wake_at
        if at is None or not self._is_open or self._is_closed:
            return
        self._timer = self._event_loop.call_later(max(0, at - self._now()) / _NS, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._receive(self._machine.timeout)

    def _error_of(self, refusal: Sequence[Any]) -> Exception:
        what, *more = refusal
        if what == "full":
            return QueueFullError()
        if what == "cost":
            return CostExceedsQuotaError(more[0], more[1])
        if what == "down":
            return ScopeDownError(more[0], more[1] / 1000)
        if what == "offline":
            error = SharedError()
            error.__cause__ = self._broken
            return error
        if what == "denied":
            return self._denied or ConfigError(
                [Problem("shared", "a connection that this process may use", more[0])]
            )
        return ValueError(more[0])

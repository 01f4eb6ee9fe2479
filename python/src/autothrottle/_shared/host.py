"""A shared host: it answers what an engine answers, and asks the group. See ``js/shared/host.ts``.

What needs an answer at once is answered here, by an engine that has the same options and sends nothing:
whether a setting makes sense, what an outcome means, when a request could be sent as far as is known. The
trap is to believe it beyond that: what it says of others is as old as the last beat.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from .._events import SharedCode
from .._native import Engine
from .._state import Decision, Notice, Peek, Robots, ScopeStats, Settled, Stats, Watching
from ..errors import CostExceedsQuotaError, QueueFullError, ScopeDownError
from .engine import MsEngine, digest, mark, millis, notice_read, scope_read, span, stats_read
from .group import Group
from .group_link import GroupLink
from .member import Memory
from .messages import Message, Refusal, renumber, state_in
from .transport import Leaving, Offline, Scheduler, Transport

T = TypeVar("T")

_MOST_NAMES = 20_000
"""Names that are known by number at a time, beside those that somebody holds."""

_WALL_MS = 1e12
_LEVELS = {"nothing": 0, "changes": 1, "answers": 2}


class Listener(Protocol):
    """What happens by itself."""

    def changed(self) -> None:
        """There may be something to poll, or a notice."""

    def refuse(self, ticket: int, error: BaseException) -> None:
        """A request that waits never will leave."""

    def shared_warning(self, code: SharedCode, message: str) -> None:
        """Something noteworthy that is no error."""


class SharedHost:
    """Stands in for an :class:`Engine` at a desk. Instants and spans are its: whole nanoseconds."""

    def __init__(
        self,
        transport: Transport,
        scheduler: Scheduler,
        options: Mapping[str, Any],
        *,
        offline: Offline,
        members: int | None = None,
        random: Callable[[], float],
        id: str | None = None,  # noqa: A002
    ) -> None:
        self._scheduler = scheduler
        self._judge = Engine(options)
        self._names: dict[int, str] = {}
        self._handles: dict[str, int] = {}
        self._holders: dict[int, int] = {}
        self._made = 0
        self._listener: Listener | None = None
        self._notices: list[Notice] = self._judge.take_notices()
        self._level = 0
        self._seen: tuple[Memory, Any] | None = None
        self._early: list[list[Any]] = []
        link = GroupLink(self._changed, self._told, self._failed, self._warn)
        self.group = Group(
            transport,
            scheduler,
            options,
            link,
            offline=offline,
            members=members,
            random=random,
            id=id or _new_id(random),
        )

    def listen(self, listener: Listener) -> None:
        """Names who is told."""
        self._listener = listener

    def leave(self) -> Leaving | None:
        """Nothing more will be asked. Gives what is still to be said, once."""
        return self.group.close()

    # Scopes, by numbers of this process's own.

    @property
    def scopes(self) -> int:
        """Names that are known."""
        return len(self._names)

    def find(self, name: str) -> int | None:
        """A handle: whether there is such a scope, only the writer knows."""
        return self.intern(name)

    def intern(self, name: str) -> int:
        """A handle that may be forgotten."""
        known = self._handles.get(name)
        if known is not None:
            return known
        if len(self._names) - len(self._holders) >= _MOST_NAMES:
            self._forget_names()
        made = self._handles[name] = self._made
        self._made += 1
        self._names[made] = name
        return made

    def scope(self, name: str) -> int:
        """A handle that is good until it is released."""
        handle = self.intern(name)
        self._holders[handle] = self._holders.get(handle, 0) + 1
        return handle

    def release(self, scope: int) -> None:
        """Gives it back."""
        holders = self._holders.pop(scope, 0)
        if holders > 1:
            self._holders[scope] = holders - 1

    def keep_alive(self, scope: int) -> bool:
        """Whether the handle still means what it meant."""
        return scope in self._names

    def name(self, scope: int) -> str | None:
        """The name behind a handle."""
        return self._names.get(scope)

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
        """A request that waits until the writer gives leave."""
        costs = [cost] if isinstance(cost, (int, float)) else list(cost)
        if not all(math.isfinite(each) and each >= 0 for each in costs) or not math.isfinite(priority):
            raise ValueError("cost and delay must be finite and not below 0, priority finite")
        names = [self._name_of(scope) for scope in scopes]
        if not names:
            raise ValueError("the request names no scope that is known")
        self._open()
        told = cost if isinstance(cost, (int, float)) else costs
        return self.group.member.submit(names, told, priority, millis(delay))

    def send_at_once(self, now: int, scopes: Sequence[int], **needs: Any) -> None:
        """Nothing leaves before the writer has said so."""

    def poll(self, now: int) -> Decision:
        """What may leave now, and when to ask again."""
        send: list[int] = []
        member, at = self.group.member, now / 1e6
        while True:
            ticket, wake = member.poll(at)
            if ticket is None:
                return Decision(send, None if wake is None else max(span(wake), now + 1), None, None)
            send.append(ticket)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the time after what was granted last."""
        return self.group.member.is_awaited

    def left(self, now: int, ticket: int) -> None:
        """The request left only now: gaps count from here."""
        self.group.member.left(now / 1e6, ticket)

    def settle(self, now: int, ticket: int, **outcome: Any) -> Settled:
        """How a request ended: judged here, told there."""
        member = self.group.member
        if not member.is_flying(ticket):
            return Settled("unknown", None)
        settled, asked, told = digest(self._judge, outcome)
        names = member.names_of(ticket)

        def place(scope: float) -> int:
            name = self._names.get(int(scope))
            return names.index(name) if name in names else -1

        renumber(told, place)
        member.settle(ticket, told)
        return Settled(settled, asked)  # type: ignore[arg-type]

    def cancel(self, now: int, ticket: int) -> None:
        """Nobody wants it."""
        self.group.member.cancel(ticket)

    @property
    def waiting(self) -> int:
        """Requests of this process that wait."""
        return self.group.member.waiting

    @property
    def in_flight(self) -> int:
        """Requests of this process in flight."""
        return self.group.member.in_flight

    # Settings and states: orders, which all hear.

    def configure(self, now: int, scope: int, options: Mapping[str, object]) -> None:
        """Changes settings of one scope, in all processes."""
        name = self._name_of(scope)
        self._judge.configure(now, self._judge.scope(name), options)
        self._order("configure", name, dict(options))

    def crawl_delay(self, now: int, scope: int, delay: int | None) -> Robots:
        """What a robots.txt asks for."""
        name = self._name_of(scope)
        outcome = self._judge.crawl_delay(now, self._judge.intern(name), delay)
        if outcome == "applied":
            self._order("crawl", name, None if delay is None else millis(delay))
        return outcome

    def hold(self, now: int, scope: int, length: int) -> None:
        """Sends nothing for so long."""
        self._order("hold", self._name_of(scope), millis(length))

    def adjust(self, now: int, scope: int, sent: int, charged: float, cost: float) -> None:
        """What a request turned out to cost."""
        self._order("adjust", self._name_of(scope), millis(max(now - sent, 0)), charged, cost)

    def pause(self, now: int, scope: int | None = None) -> None:
        """Sends nothing."""
        self._order("pause", None if scope is None else self._name_of(scope))

    def resume(self, now: int, scope: int | None = None) -> None:
        """Ends a pause."""
        self._order("resume", None if scope is None else self._name_of(scope))

    def reset(self, now: int, scope: int) -> None:
        """Forgets what a scope learned."""
        self._order("reset", self._name_of(scope))

    def watch(self, level: Watching) -> None:
        """How much is told of answers."""
        self._level = _LEVELS[level]
        self.group.member.watch = self._level
        if self.group.member.epoch > 0:
            self._order("watch", self._level)

    # Questions.

    def peek(self, now: int, scopes: Sequence[int | None], *, cost: float | Sequence[float] = 1) -> Peek:
        """As of the last beat, where another process decides."""
        writer = self.group.writer
        engine = self._remembered(now) if writer is None else writer.engine.engine
        ahead = 0 if writer is None else mark(writer.now) - now
        handles = [None if scope is None else engine.find(self._name_of(scope)) for scope in scopes]
        at, reason, where = engine.peek(now + ahead, handles, cost=cost)
        name = None if where is None else engine.name(where)
        return Peek(None if at is None else at - ahead, reason, None if name is None else self.intern(name))

    def stats(self, now: int) -> Stats:
        """What the writer last said. ``age``: how old it is."""
        writer, member = self.group.writer, self.group.member
        if writer is not None:
            ahead = writer.now - now / 1e6
            return stats_read(writer.engine.stats(writer.now), -ahead, 0.0)
        memory, seen = member.memory, member.seen
        if seen is None or (memory is not None and memory.at > seen.at):
            age = None if memory is None else span(now / 1e6 - memory.at)
            return replace(self._remembered(now).stats(now), age=age)
        known = self._readable(lambda: self._stats_of(seen, now))
        return replace(self._judge.stats(now), age=None) if known is None else known

    def _stats_of(self, seen: Memory, now: int) -> Stats:
        told = self._told_of(seen)
        return stats_read(told["stats"], seen.at - told["now"], now / 1e6 - seen.at)

    def scope_stats(self, now: int, scope: int) -> ScopeStats:
        """The state of one scope."""
        name, writer, seen = self._name_of(scope), self.group.writer, self.group.member.seen
        if writer is not None:
            known = writer.engine.engine.find(name)
            if known is not None:
                ahead = mark(writer.now) - now
                stats = writer.engine.engine.scope_stats(now + ahead, known)
                hold = stats.hold_until
                return replace(stats, hold_until=None if hold is None else max(hold - ahead, 0))
        elif seen is not None:
            known_there = self._readable(lambda: self._scope_of(seen, name))
            if known_there is not None:
                return known_there
        return self._judge.scope_stats(now, self._judge.intern(name))

    def _scope_of(self, seen: Memory, name: str) -> ScopeStats | None:
        told = self._told_of(seen)
        scope = told["stats"]["scopes"].get(name)
        return None if scope is None else scope_read(scope, seen.at - told["now"])

    def snapshot(self, now: int, wall: int | None = None) -> dict[str, Any]:
        """What was learned, by all."""
        writer, memory = self.group.writer, self.group.member.memory
        if writer is not None:
            return writer.engine.engine.snapshot(mark(writer.now), wall)
        state = None if memory is None else self._readable(lambda: state_in(memory.text))
        if memory is None or state is None:
            return self._judge.snapshot(now, wall)
        snapshot: dict[str, Any] = state["snapshot"]
        if wall is None:
            return {key: each for key, each in snapshot.items() if key != "wallMs"}
        return {**snapshot, "wallMs": wall / 1e6 - (now / 1e6 - memory.at)}

    def restore(self, snapshot: Mapping[str, object], now: int, wall: int | None = None) -> None:
        """What whoever writes first goes on from. What is wrong with it is said at once."""
        self._judge.restore(snapshot, now, wall)
        self._notices += self._judge.take_notices()
        self.group.snapshot = dict(snapshot)

    @property
    def has_notices(self) -> bool:
        """Whether there is something for ``take_notices``."""
        return bool(self._notices)

    def take_notices(self) -> list[Notice]:
        """What people should know, since the last call."""
        notices, self._notices = self._notices, []
        return notices

    @property
    def warn_threshold(self) -> int:
        """The setting ``warnThreshold``."""
        return self._judge.warn_threshold

    def close(self) -> None:
        """Gives the memory back of the engine that only judges."""
        self._judge.close()

    # Inside.

    def _name_of(self, scope: int) -> str:
        name = self._names.get(scope)
        if name is None:
            raise ValueError("the request names no scope that is known")
        return name

    def _told_of(self, seen: Memory) -> Any:
        """Statistics as they were told: read once, for there are many scopes."""
        if self._seen is None or self._seen[0] is not seen:
            self._seen = seen, json.loads(seen.text)
        return self._seen[1]

    def _order(self, *order: Any) -> None:
        if not self._scheduler.is_running:
            # Said before the loop runs, as the program is set up: the first request takes it along.
            self._early.append(list(order))
            return
        self._open()
        self.group.member.order(list(order))

    def _open(self) -> None:
        """A request or an order is about to come."""
        self.group.open()
        early, self._early = self._early, []
        for order in early:
            self.group.member.order(order)

    def _remembered(self, now: int) -> Engine:
        """What another process knew when it was last heard."""
        memory = self.group.member.memory

        def read() -> None:
            assert memory is not None
            state = state_in(memory.text)
            engine = MsEngine(self._judge)
            age = now / 1e6 - memory.at
            engine.restore({**state["snapshot"], "wallMs": _WALL_MS}, now / 1e6, _WALL_MS + age)
            for name, partial in state["settings"]:
                engine.configure(now / 1e6, name, partial)
            self._judge.take_notices()

        if memory is not None:
            self._readable(read)
        return self._judge

    def _readable(self, read: Callable[[], T]) -> T | None:
        """What was heard of the writer, as far as it can be read: what cannot is forgotten."""
        try:
            return read()
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.group.member.memory = self.group.member.seen = None
            self.group.unreadable(error)
            return None

    def _changed(self, refused: list[Refusal]) -> None:
        if self._listener is None:
            return
        for refusal in refused:
            self._listener.refuse(refusal[0], _error_of(refusal))
        self._listener.changed()

    def _failed(self, error: Exception) -> None:
        for ticket in self.group.member.everybody():
            self.group.member.cancel(ticket)
            if self._listener is not None:
                self._listener.refuse(ticket, error)

    def _warn(self, code: SharedCode, message: str) -> None:
        if self._listener is not None:
            self._listener.shared_warning(code, message)

    def _told(self, tell: Message) -> None:
        """Of an answer only its own process hears; of what changed, whoever listens."""
        shift = self._scheduler.now() - tell["now"]
        is_ours = tell.get("of") in (None, self.group.id)
        for notice in tell["notices"]:
            if notice["kind"] == "answer" and not (self._level == 2 and is_ours):
                continue
            if self._level == 0 and notice["kind"] in ("backoff", "recover", "delay", "hold"):
                continue
            self._notices.append(notice_read(notice, shift, tell.get("latencyMs")))
        if self._notices and self._listener is not None:
            self._listener.changed()

    def _forget_names(self) -> None:
        self._names = {handle: name for handle, name in self._names.items() if handle in self._holders}
        self._handles = {name: handle for handle, name in self._names.items()}


def _new_id(random: Callable[[], float]) -> str:
    """A name unlike that of any other process."""
    return "".join(f"{int(random() * 2**31):x}" for _ in range(3))


def _error_of(refusal: Refusal) -> Exception:
    if refusal[1] == "full":
        return QueueFullError()
    if refusal[1] == "cost":
        return CostExceedsQuotaError(refusal[2], refusal[3])
    if refusal[1] == "down":
        return ScopeDownError(refusal[2], refusal[3] / 1000)
    return ValueError(refusal[2])

"""The one process that decides: the very engine, asked by members instead of a desk: ``js/shared/writer.ts``.

The traps: a writer that slept and believes it still writes (before anything is granted it asks whether its
lease is still good, and what it drew is thrown away if not); a slot that is given away twice when the writer
changes (what flies is adopted before anybody is asked); and whoever is quick after that (all are collected
for a moment, and age decides).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .._native import Engine
from ..errors import ThrottleError
from .engine import MsEngine
from .held import Driver, Held, Member, name_of, refusal_of
from .messages import Message, as_json, renumber
from .orders import Orders
from .transport import Scheduler, Timer
from .writer_link import Beginning, Cadence, WriterLink

COLLECT_MS = 100.0
"""For so long a new writer listens before it grants, where it does not know to whom; those that it knows may
take so much longer, for a story that is lost is told again then."""

_WALL_MS = 1e12
"""Snapshots count their age from here: no wall clock is believed."""

_LONG_AGO_MS = 1e10
"""Nothing that is adopted is in a memory that there is not."""

_MOST_SEEN = 5000
"""Statistics of more scopes do not go along: they take longer than a lease."""

_MOST_AHEAD = 1000
"""So many turns may overtake their hello: the others are told again."""


class Writer:
    """Decides for all."""

    def __init__(
        self,
        link: WriterLink,
        options: Mapping[str, Any],
        scheduler: Scheduler,
        lead_ms: Callable[[], float],
        beginning: Beginning,
    ) -> None:
        self.cadence = Cadence()
        self._link = link
        self._scheduler = scheduler
        # The engine runs ahead by the time that a grant takes to arrive.
        self._lead_ms = lead_ms
        self._now = -math.inf
        self._beat_at = self.now
        self._engine = MsEngine(Engine(options))
        self._members: dict[str, Member] = {}
        self._owed: dict[str, Member] = {}
        self._at = 0.0
        self._level = 1
        self._heard: list[Message] | None = None
        self._ahead: list[Message] = []
        self._collecting: Timer | None = None
        self._is_stopped = self._is_listening = False
        state, age = beginning.state, beginning.age_ms
        known: list[Any] = state["members"] if state else []
        self._former = beginning.former
        self._missing = {each[0] for each in known if each[0] != beginning.gone} | {link.id}
        self._knows_all = state is not None
        self._remembered = {each[0]: each[1] for each in known}
        if state is None and beginning.snapshot is not None:
            self._engine.restore(beginning.snapshot, self.now, scheduler.wall())
        else:
            # Also without one: what is adopted left before the engine's own origin.
            snapshot = state["snapshot"] if state else {"version": 1, "scopes": {}}
            wall = _WALL_MS + (max(age, 0.0) if state else _LONG_AGO_MS)
            self._engine.restore({**snapshot, "wallMs": _WALL_MS}, self.now, wall)
        self._engine.watch(self._level)
        # What the options say without effect, each process has found by itself.
        self._engine.take_notices()
        self._driver = Driver(self._engine, scheduler, lambda: self.now, self._granted, self._flush)
        self._orders = Orders(self._engine, lambda: self.now)
        if state:
            self._orders.restore(state)
        for each in known:
            if each[0] != beginning.gone:
                self._presume(each, age)

    @property
    def now(self) -> float:
        """The engine's instant, for what it tells. It stands still where the lead becomes less."""
        self._now = max(self._now, self._scheduler.now() + self._lead_ms())
        return self._now

    @property
    def size(self) -> int:
        """How many processes there are; 0 before it knows."""
        return len(self._members) if self._heard is None else 0

    @property
    def engine(self) -> MsEngine:
        """The engine, for questions about now."""
        return self._engine

    def collect(self) -> None:
        """Listens for a moment, so that age decides and what flies is known before anybody is asked."""
        self._heard = []
        self._wait(COLLECT_MS + (self._link.lease_ms / 5 if self._knows_all else 0.0))

    def hear(self, message: Message) -> None:
        """A member says something."""
        if self._is_stopped or message["epoch"] != self._link.epoch:
            return
        kind = message["type"]
        member = self._members.get(message["from"])
        if member is not None:
            member.seen_at = self.now
        if kind == "hello":
            if self._heard is not None:
                self._collected(message)
            else:
                self._story([message])
        elif kind == "turn":
            if self._heard is not None:
                self._heard.append(message)
            elif member is not None and message["hello"] == member.hello:
                self._turn(member, message)
            # It has overtaken its hello.
            elif message["hello"] > (member.hello if member else 0) and len(self._ahead) < _MOST_AHEAD:
                self._ahead.append(message)
        elif kind == "bye" and member is not None:
            self.drop(member.id)

    def drop(self, member_id: str) -> None:
        """A process has ended: what it had comes back."""
        member = self._members.pop(member_id, None)
        if member is not None:
            self._owed.pop(member_id, None)
            self._leave(member.requests.values())
            self._driver.drain()

    def beat(self) -> Message:
        """Says that it is there, and forgets members that no longer say so."""
        now, link = self.now, self._link
        # It slept: nobody could be heard meanwhile, so their silence is counted anew.
        slept, self._beat_at = now - self._beat_at > link.lease_ms, now
        for member in list(self._members.values()):
            if slept:
                member.seen_at = now
            if member.id != link.id and now - member.seen_at > 2 * link.lease_ms:
                self.drop(member.id)
        members = {each.id: [each.hello, each.turns, each.grants] for each in self._members.values()}
        beat: Message = {**self._head("beat"), "members": members, "hash": link.hash}
        if not self.cadence.is_due(now) or self._heard is not None:
            return beat
        state = self.state()
        self.cadence.went(now, len(state))
        beat["state"] = state
        if self._engine.engine.scopes <= _MOST_SEEN:
            beat["seen"] = as_json({"now": now, "stats": self._engine.stats(now)})
            self.cadence.went(now, len(state) + len(beat["seen"]))
        return beat

    def state(self) -> str:
        """What the next writer needs, as text."""
        snapshot = self._engine.snapshot(self.now, _WALL_MS)
        members = [member.remembered() for member in self._members.values()]
        return as_json({"snapshot": snapshot, **self._orders.state(), "members": members})

    def stop(self) -> None:
        """Decides nothing more."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._collecting is not None:
            self._collecting.cancel()
        self._driver.rest()

    def _head(self, kind: str) -> Message:
        return {"type": kind, "from": self._link.id, "epoch": self._link.epoch}

    def _wait(self, ms: float) -> None:
        """Asks again, now and then: a story may have been lost."""

        def over() -> None:
            self._missing.discard(self._former or "")
            if ms <= COLLECT_MS or (self._knows_all and not self._missing):
                self._begin()
                return
            self._link.again()
            self._wait(ms - COLLECT_MS)

        self._collecting = self._scheduler.call_later(min(ms, COLLECT_MS), over)

    def _collected(self, hello: Message) -> None:
        assert self._heard is not None
        self._heard.append(hello)
        self._missing.discard(hello["from"])
        if self._knows_all and not self._missing:
            if self._collecting is not None:
                self._collecting.cancel()
            self._begin()

    def _begin(self) -> None:
        heard, self._heard = self._heard or [], None
        hellos = [message for message in heard if message["type"] == "hello"]
        self._story(hellos, [message for message in heard if message["type"] == "turn"])

    def _story(self, hellos: Sequence[Message], turns: Sequence[Message] = ()) -> None:
        """Members' stories: what flies, the oldest first; who waits, by age; what followed."""
        self._is_listening = True
        newest: dict[str, Message] = {}
        for hello in hellos:
            sender = hello["from"]
            known = newest[sender]["hello"] if sender in newest else self._hello_of(sender)
            if hello["hello"] > known:
                newest[sender] = hello
        flying: list[tuple[Member, Mapping[str, Any], bool]] = []
        waiting: list[tuple[Member, Mapping[str, Any]]] = []
        given: list[Any] = []
        for hello in newest.values():
            is_new = self._hello_of(hello["from"]) == 0
            member = self._welcome(hello) if is_new else self._members[hello["from"]]
            self._reconcile(member, hello)
            flying.extend((member, flight, is_new) for flight in hello["flying"])
            waiting.extend((member, ask) for ask in hello["waiting"])
            given.extend(order for order in hello["orders"] if order[0] > member.orders)
            member.orders = max([member.orders, *(order[0] for order in hello["orders"])])
        given.sort(key=lambda order: -order[1])
        flying.sort(key=lambda each: -each[1]["sentAgo"])
        for member, flight, is_new in flying:
            self._fly(member, flight, is_new)
        waiting.sort(key=lambda each: -each[1]["waited"])
        for member, ask in waiting:
            if ask["id"] not in member.requests:
                self._ask(member, ask)
        for _, ago, order in given:
            self._orders.apply(order, ago)
        ahead, self._ahead = self._ahead, []
        for turn in [*ahead, *turns]:
            self.hear(turn)
        self._is_listening = False
        self._notice()
        self._driver.drain()

    def _hello_of(self, member_id: str) -> int:
        member = self._members.get(member_id)
        return 0 if member is None else member.hello

    def _is_remembered(self, member_id: str, said: Sequence[int]) -> bool:
        """Whether it is in the memory: a later story has it as well."""
        heard, turns, *_ = self._remembered.get(member_id, (0, 0))
        return bool(said[0] < heard or (said[0] == heard and said[1] <= turns))

    def _presume(self, remembered: Sequence[Any], age: float) -> None:
        """A process that the memory knows keeps its slots until it tells its story, or is forgotten."""
        if age > 2 * self._link.lease_ms:
            return
        member_id, _, flying = remembered
        member = self._members[member_id] = Member(member_id, self.now - age)
        made = 0
        for count, names in flying:
            for _ in range(count):
                made += 1
                # No story has its number; its cost is in the memory.
                ticket = self._engine.adopt(self.now, names, age + 1, {})
                member.requests[-made] = Held(member, -made, 0, list(names), ticket, True)

    def _welcome(self, hello: Message) -> Member:
        sender = hello["from"]
        member = self._members.setdefault(sender, Member(sender, self.now))
        member.orders = self._remembered.get(sender, (0, 0, 0))[2]
        # The next writer is to know whose story it waits for.
        self._link.learned()
        if hello["hash"] != self._link.hash:
            self._link.differs(sender)
        return member

    def _reconcile(self, member: Member, hello: Message) -> None:
        """A newer story: what it does not know is over, and what it says waits was not granted."""
        member.hello = hello["hello"]
        member.turns = member.grants = 0
        member.early.clear()
        member.granted = []
        member.refused = []
        self._watch(member, hello["watch"])
        waits = {name_of(ask) for ask in hello["waiting"]}
        flies = {name_of(flight) for flight in hello["flying"]}
        gone = [
            held for held in member.requests.values() if held.name not in (flies if held.is_flying else waits)
        ]
        for held in gone:
            del member.requests[held.id]
        self._leave(gone, waits)

    def _fly(self, member: Member, flight: Mapping[str, Any], is_new: bool) -> None:
        """A request that left: adopted if it is not known, and heard if it is over."""
        told, said = flight.get("told"), flight.get("said")
        if told and is_new and said and self._is_remembered(member.id, said):
            return
        if flight["id"] not in member.requests and (is_new or not told):
            ago = flight["sentAgo"]
            ask = {**flight, "waited": max(flight["waited"] - ago, 0.0)}
            try:
                # Later by the time of the way, as the memory may be: what is in doubt is counted.
                ticket = self._engine.adopt(self.now, flight["names"], ago, ask)
            except (ThrottleError, ValueError):
                return  # It makes no sense, and no harm.
            held = Held(member, flight["id"], flight["attempt"], list(flight["names"]), ticket, True)
            member.requests[held.id] = held
        if told:
            self._over(member, flight["id"], flight["attempt"], told)

    def _turn(self, member: Member, turn: Message) -> None:
        if turn["number"] <= member.turns:
            return
        member.early[turn["number"]] = turn
        while (next_turn := member.early.pop(member.turns + 1, None)) is not None:
            member.turns = next_turn["number"]
            for act in next_turn["acts"]:
                self._act(member, act)
        self._notice()
        if not self._is_listening:
            self._driver.changed()

    def _act(self, member: Member, act: Sequence[Any]) -> None:
        kind = act[0]
        if kind == "ask":
            keys = ("id", "attempt", "names", "cost", "priority", "delay", "waited")
            self._ask(member, dict(zip(keys, act[1:], strict=True)))
        elif kind == "over":
            self._over(member, act[1], act[2], act[3])
        elif kind == "order":
            member.orders = act[1]
            if act[2][0] == "watch":
                self._watch(member, act[2][1])
            else:
                self._orders.apply(act[2])
        elif kind == "left":
            self._left(member, act[1], act[2], act[3])
        elif kind == "cancel":
            self._cancel(member, act[1])

    def _left(self, member: Member, ticket: int, attempt: int, late: float) -> None:
        """It left later than it was granted: gaps count from there, though not from later than now."""
        held = member.requests.get(ticket)
        if held is not None and held.is_flying and held.attempt == attempt:
            self._engine.left(min(held.at + late, self.now), held.ticket)

    def _ask(self, member: Member, ask: Mapping[str, Any]) -> None:
        try:
            ticket = self._engine.submit(self.now, ask["names"], ask)
        except (ThrottleError, ValueError) as error:
            refusal = refusal_of(ask["id"], error)
            # More than this process's part of a quota: it waits for the way.
            if self._link.is_alone and refusal[1] == "cost":
                return
            member.refused.append(refusal)
            self._owed[member.id] = member
            return
        held = Held(member, ask["id"], ask["attempt"], list(ask["names"]), ticket)
        member.requests[held.id] = held
        self._driver.add(held)

    def _over(self, member: Member, ticket: int, attempt: int, told: Sequence[float | None]) -> None:
        """The engine hears how it ended; if it says so, the request waits anew."""
        held = member.requests.get(ticket)
        if held is None or not held.is_flying or held.attempt != attempt:
            return
        numbers, scopes = list(told), held.scopes

        def handle(place: float) -> int:
            return self._engine.handle(scopes[int(place)] if 0 <= place < len(scopes) else "")

        renumber(numbers, handle)
        settled = self._engine.settle_told(self.now, held.ticket, numbers)
        if self._level == 2:
            self._notice(member, told[1])
        if settled != "again":
            del member.requests[ticket]
            return
        held.is_flying = False
        held.attempt += 1
        self._driver.add(held)

    def _cancel(self, member: Member, ticket: int) -> None:
        held = member.requests.pop(ticket, None)
        if held is not None:
            self._leave([held], {held.name})

    def _leave(self, gone: Iterable[Held], unused: set[tuple[int, int]] | None = None) -> None:
        """They are over. What was granted has left and costs, unless its process says that it waits."""
        now = self.now
        for held in gone:
            if not held.is_flying:
                self._driver.forget(held)
            if held.is_flying and (unused is None or held.name not in unused):
                self._engine.settle(now, held.ticket)
            else:
                self._engine.cancel(now, held.ticket)

    def _watch(self, member: Member, level: int) -> None:
        """As much is told of answers as anybody hears; and what is learned, for the next writer."""
        member.watch = level
        self._level = max([1, *(each.watch for each in self._members.values())])
        self._engine.watch(self._level)

    def _notice(self, member: Member | None = None, latency: float | None = None) -> None:
        notices = self._engine.take_notices()
        if not notices:
            return
        tell: Message = {**self._head("tell"), "now": self.now, "notices": notices}
        if member is not None:
            tell |= {"of": member.id, "latencyMs": latency}
        self._link.tell(tell)
        if any(notice["kind"] in ("hold", "backoff") for notice in notices):
            self._link.learned()

    def _granted(self, held: Held) -> None:
        self._at = held.at
        held.member.granted += (held.id, held.attempt)
        self._owed[held.member.id] = held.member

    def _flush(self) -> None:
        """Everything that could be granted was: it is said, if it may be said."""
        if not self._owed or self._is_stopped or not self._link.is_good():
            return
        offset = self._link.offset_ms()
        owed, self._owed = list(self._owed.values()), {}
        for member in owed:
            ids, refused = member.granted, member.refused
            member.granted, member.refused = [], []
            member.grants += 1
            grant: Message = {
                **self._head("grant"),
                "hello": member.hello,
                "number": member.grants,
                "ids": ids,
                "refused": refused,
            }
            if offset is not None and ids:
                grant["at"] = self._at + offset
            if self._driver.is_awaited:
                grant["isAwaited"] = True
            self._link.grant(member.id, grant)

"""Processes that share a limit, in virtual time: their clocks, the network between them, and the store that
elects. Faults are the machine's affair, and are played in Rust (``crates/shared/tests``): here is the
host around it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from autothrottle._shared.host import SharedHost
from autothrottle._shared.transport import Done, Lease, Offline, Peer

LEASE_MS = 1500.0
WAY_MS = 1.0


@dataclass(eq=False)
class Event:
    """A call at an instant."""

    at: float
    order: int
    owner: Process | None
    run: Callable[[], object]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def __lt__(self, other: Event) -> bool:
        return (self.at, self.order) < (other.at, other.order)


@dataclass
class Store:
    """The store: it compares the lease before it passes anything on."""

    epoch: int = 0
    holder: str = ""
    until: float = 0.0
    state: bytes | None = None
    state_at: float = 0.0


class World:
    """Time, a network and a store."""

    def __init__(self, seed: int) -> None:
        self.now = 1000.0
        self.dice = random.Random(seed)
        self.store = Store()
        self.processes: list[Process] = []
        self._events: list[Event] = []
        self._made = 0

    def after(self, ms: float, owner: Process | None, run: Callable[[], object]) -> Event:
        """Calls after so long, but not when its process is dead."""
        self._made += 1
        event = Event(self.now + max(ms, 0.0), self._made, owner, run)
        heapq.heappush(self._events, event)
        return event

    def travel(self, run: Callable[[], object], owner: Process | None = None) -> None:
        """Something travels."""
        self.after(WAY_MS, owner, run)

    def run(self, ms: float) -> None:
        """Lets so long pass."""
        until = self.now + ms
        while self._events and self._events[0].at <= until:
            event = heapq.heappop(self._events)
            if event.is_cancelled or (event.owner is not None and event.owner.is_dead):
                continue
            self.now = max(self.now, event.at)
            event.run()
        self.now = until

    @property
    def writer(self) -> Process:
        """The process that has the lease."""
        return next(process for process in self.processes if process.id == self.store.holder)


class Process:
    """A process: its clock has an origin of its own, and may be hours apart."""

    is_loop = False
    is_running = True

    def __init__(
        self,
        world: World,
        name: str,
        options: Mapping[str, Any],
        offline: Offline = "wait",
        members: int | None = None,
    ) -> None:
        self.id = name.encode().hex().zfill(32)
        self.world = world
        self.is_dead = self.is_cut = False
        self.peer: Peer | None = None
        self.origin = world.dice.choice([0.0, 17.25, 3.6e6])
        self.warnings: list[str] = []
        self.failed: list[tuple[int, BaseException]] = []
        self.work: Callable[[int], None] = lambda _: None
        self._timer: Event | None = None
        world.processes.append(self)
        self.host = SharedHost(
            Way(self), self, options, offline=offline, members=members, random=world.dice.random, id=self.id
        )
        self.host.listen(self)

    # A event_loop.

    def now(self) -> float:
        return self.world.now + self.origin

    def wall(self) -> float:
        return 1.7e12 + self.now() * 1000

    def call_later(self, ms: float, call: Callable[[], object]) -> Event:
        return self.world.after(ms, self, call)

    def after_turn(self, call: Callable[[], object]) -> None:
        self.world.after(0, self, call)

    post = after_turn

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    # A scheduler.

    def changed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        decision = self.host.poll(self.ns)
        for ticket in decision.send:
            self.work(ticket)
        if decision.wake is not None:
            self._timer = self.call_later(decision.wake / 1e6 - self.now(), self.changed)

    def refuse(self, ticket: int, error: BaseException) -> None:
        self.failed.append((ticket, error))

    def shared_warning(self, code: str, message: str) -> None:
        self.warnings.append(code)

    def moved(self) -> None:
        pass

    @property
    def ns(self) -> int:
        """Its clock as the engine has it."""
        return round(self.now() * 1e6)

    def submit(self, *names: str, **needs: Any) -> int:
        """Asks for leave."""
        return self.host.submit(self.ns, [self.host.intern(name) for name in names], **needs)

    def kill(self) -> None:
        """As ``kill -9``."""
        self.is_dead = True

    def cut(self, ms: float) -> None:
        """No message passes for this long."""
        self.is_cut = True
        self.world.after(ms, None, lambda: setattr(self, "is_cut", False))


@dataclass(eq=False)
class Way:
    """The way of one process through the store."""

    process: Process
    lease_ms: float = LEASE_MS

    def open(self, peer: Peer) -> None:
        self.process.peer = peer
        peer.opened()

    def compete(self, above: int, done: Done) -> None:
        world = self.process.world

        def answer() -> Lease | None:
            store = world.store
            if world.now < store.until and store.epoch >= above:
                return None
            store.epoch = max(store.epoch, above) + 1
            store.holder, store.until = self.process.id, world.now + LEASE_MS
            return Lease(store.epoch, store.state, world.now - store.state_at)

        self._ask(answer, done)

    def renew(self, epoch: int, state: bytes | None, done: Done) -> None:
        store, world = self.process.world.store, self.process.world

        def answer() -> bool:
            if not self._is_good(epoch):
                return False
            store.until = world.now + LEASE_MS
            if state is not None:
                store.state, store.state_at = state, world.now
            return True

        self._ask(answer, done)

    def release(self, epoch: int, state: bytes | None, done: Done) -> None:
        def answer() -> None:
            store, world = self.process.world.store, self.process.world
            if self._is_good(epoch):
                store.until = world.now
                if state is not None:
                    store.state, store.state_at = state, world.now

        self._ask(answer, done)

    def to_leader(self, frame: bytes) -> None:
        self._send(lambda other: other.id == self.process.world.store.holder, frame, None)

    def to_member(self, epoch: int, member: str, frame: bytes) -> None:
        self._send(lambda other: other.id == member, frame, epoch)

    def to_all(self, epoch: int, frame: bytes) -> None:
        self._send(lambda _: True, frame, epoch)

    def reconnect(self, speaks: bool) -> None:
        if self.process.peer is not None:
            self.process.peer.opened()

    def close(self) -> Any:
        self.process.peer = None

    def _is_good(self, epoch: int) -> bool:
        """As the scripts of Redis: the process that had it last has it still."""
        store, now = self.process.world.store, self.process.world.now
        if store.epoch == epoch and now < store.until:
            return True
        if store.epoch > epoch or now < store.until:
            return False
        store.epoch, store.holder, store.until = epoch, self.process.id, now + LEASE_MS
        return True

    def _send(self, is_for: Callable[[Process], bool], frame: bytes, epoch: int | None) -> None:
        process, world = self.process, self.process.world
        if process.is_cut:
            return

        def heard(other: Process) -> None:
            if not other.is_cut and other.peer is not None:
                other.peer.received(frame)

        def passed() -> None:
            if epoch is not None and not self._is_good(epoch):
                if process.peer is not None:
                    world.travel(partial(process.peer.fenced, epoch), process)
                return
            for other in world.processes:
                if is_for(other) and not other.is_cut:
                    world.travel(lambda other=other: heard(other), other)  # type: ignore[misc]

        world.travel(passed)

    def _ask(self, answer: Callable[[], Any], done: Done) -> None:
        """A question to the store: both ways take time, and either may break."""
        process, world = self.process, self.process.world

        def broken() -> None:
            world.after(300, process, lambda: done(None, ConnectionError("the way is broken")))

        def asked() -> None:
            given = answer()
            if process.is_cut:
                broken()
            else:
                world.travel(lambda: done(given, None), process)

        if process.is_cut:
            broken()
        else:
            world.travel(asked)

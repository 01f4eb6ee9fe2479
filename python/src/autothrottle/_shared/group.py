"""This process among those that share a limit: member always, writer while it holds the lease.

1. Nothing happens before the first request. Then it competes: somebody writes, or this process does.
2. A writer makes its lease last, and says so in a beat, three times a lease. Who hears none for a lease
   competes.
3. Whoever writes next goes on from what it last heard, or from what the transport kept: the younger.
4. Where the way is broken for long, ``offline`` says what happens; the way is tried all the while.

The trap is a clock: only spans of this process's own clock are compared, so a process that slept finds its
lease over before it believes anything that lay unread. See ``js/shared/group.ts``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import SharedError
from .group_link import GroupLink
from .member import Member, MemberLink, Memory
from .messages import TO_WRITER, Message, decode, encode, state_in
from .settings import Slower, divided, divided_state, hash_of
from .transport import Lease, Leaving, Offline, Peer, Scheduler, Timer, Transport
from .writer import Writer
from .writer_link import Beginning, WriterLink

_PATIENCE_MS = 5000.0
"""The way may be broken for so long before ``offline`` counts."""


class Group:
    """This process in its group."""

    def __init__(
        self,
        transport: Transport,
        scheduler: Scheduler,
        options: Mapping[str, Any],
        link: GroupLink,
        *,
        offline: Offline,
        members: int | None = None,
        random: Callable[[], float],
        id: str,  # noqa: A002
    ) -> None:
        self.id = id
        self.snapshot: Mapping[str, Any] | None = None
        """What the program gave to go on from, where nobody knows more."""
        self._transport = transport
        self._scheduler = scheduler
        self._options = options
        self._link = link
        self._offline = offline
        self._random = random
        self._hash = hash_of(options)
        self._writer: Writer | None = None
        self._lease: Lease | None = None
        self._until = 0.0
        """Until when the lease is good, by this process's clock."""
        self._alone: Writer | None = None
        """Goes on alone, while the way is broken."""
        self._is_open = self._is_closed = self._is_competing = self._is_offline = False
        self._heard_at = 0.0
        self._broken_at: float | None = None
        self._broken_by: BaseException | None = None
        self._writer_id: str | None = None
        self._gone_id: str | None = None
        """Who wrote when a writer was last heard; and the one that is known to have ended."""
        self._size = members
        """Members that there were when a beat was last heard or said; or that the program says."""
        self._ticking: Timer | None = None
        self._hurrying: Timer | None = None
        member_link = MemberLink(
            id=id,
            hash=self._hash,
            now=scheduler.now,
            offset_ms=lambda: transport.offset_ms,
            after_turn=scheduler.after_turn,
            send=self._send,
            changed=link.changed,
        )
        self.member = Member(member_link, transport.lease_ms)

    @property
    def writer(self) -> Writer | None:
        """The writer, if it is this process."""
        return self._writer or self._alone

    @property
    def _lead_ms(self) -> float:
        """How far ahead a grant is made now. A slow way costs slots that time, so there is a most."""
        return min(self._transport.lead_ms, self._transport.lease_ms / 5)

    def open(self) -> None:
        """A request is about to come."""
        if self._is_open:
            return
        self._is_open = True
        self._scheduler.open()
        peer = Peer(self.id, self._hear, lambda: self._later(20), self._step_down, self._deaf)
        self._transport.open(peer)
        self._heard_at = self._scheduler.now()
        self._tick()
        self._compete()

    def close(self) -> Leaving | None:
        """Nothing more will be asked: others go on. Gives what is still to be said."""
        if self._is_closed:
            return None
        self._is_closed = True
        for timer in (self._ticking, self._hurrying):
            if timer is not None:
                timer.cancel()
        if self._alone is not None:
            self._alone.stop()
        if not self._is_open:
            return None
        self.member.flush()
        writer, lease = self._writer, self._lease
        if writer is not None and lease is not None and self._holds():
            state = writer.state()
            self._say(lease, {"type": "resign", "from": self.id, "epoch": lease.epoch, "state": state})
            writer.stop()
            self._transport.release(lease, state)
        else:
            self.member.ping("bye")
        return self._transport.close()

    def _tick(self) -> None:
        lease_ms, now = self._transport.lease_ms, self._scheduler.now()
        after = lease_ms / 3
        if self._writer is not None:
            if self._holds():
                self._renew()
            else:
                self._step_down()
        else:
            if self._broken_at is not None and now - self._broken_at >= _PATIENCE_MS:
                self._go_offline()
            left = self._heard_at + lease_ms - now
            if left > 0:
                self.member.ping()
            else:
                self._later(lease_ms / 10)
            # Its lease may be over between two pings: then nobody waits for the next one.
            after = min(after, left if left > 0 else lease_ms / 10)
        self._ticking = self._scheduler.call_later(after, self._tick)

    def _later(self, most: float) -> None:
        """Competes in a moment, so that not all do at once."""
        if not self._is_closed:
            self._scheduler.call_later(self._random() * most, self._compete)

    def _compete(self) -> None:
        if self._is_competing or self._writer is not None or self._is_closed:
            return
        self._is_competing = True
        asked = self._scheduler.now()

        def answered(lease: Lease | None, error: BaseException | None) -> None:
            self._is_competing = False
            if error is not None:
                self._is_broken(error)
            elif self._is_closed:
                if lease is not None:
                    self._transport.release(lease, "")
            else:
                self._is_connected()
                if lease is not None:
                    self._lead(lease, asked)
                elif self.member.epoch == 0:
                    # Whoever writes is to say so at once: a new process need not wait for the next beat.
                    ping = {"type": "ping", "from": self.id, "epoch": 0, "hello": 0}
                    self._transport.to_writer(encode(ping))

        self._transport.compete(math.floor(self.member.epoch), answered)

    def _lead(self, lease: Lease, asked: float) -> None:
        now = self._scheduler.now()
        self._lease = lease
        self._until = asked + self._transport.lease_ms
        memory = self.member.memory
        kept = Memory(lease.state, now - lease.state_age_ms) if lease.state else None
        known = sorted((each for each in (memory, kept) if each is not None), key=lambda each: -each.at)
        # Said first: a memory of many scopes takes a while to read, and meanwhile the others tell.
        first = {"type": "beat", "from": self.id, "epoch": lease.epoch, "members": {}, "hash": self._hash}
        self._say(lease, first)
        self._writer = self._beginning(lease.epoch, known)
        self._writer.collect()
        self.member.enter(lease.epoch)

    def _beginning(self, epoch: float, known: Iterable[Memory], share: int | None = None) -> Writer:
        """A writer that goes on from the youngest memory that can be read."""
        for memory in known:
            try:
                return self._new_writer(epoch, memory, share)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                self.unreadable(error)
        return self._new_writer(epoch, None, share)

    def unreadable(self, error: Exception) -> None:
        """Says that a memory is none."""
        why = f"what the writer remembered cannot be read ({error})"
        self._link.warn("shared-memory", f"{why}: the group goes on without it")

    def _new_writer(self, epoch: float, memory: Memory | None, share: int | None = None) -> Writer:
        """``share`` processes go on alone, each slower by so much."""
        transport, scheduler = self._transport, self._scheduler

        def tell(message: Message) -> None:
            self._link.told(message)
            if share is None and self._lease is not None:
                self._say(self._lease, message)

        def learned() -> None:
            if self._writer is not None:
                self._writer.cadence.hurry()
            self._soon(20)

        def differs(other: str) -> None:
            self._link.warn("shared-options", f"process {other} shares the limit with other options")

        link = WriterLink(
            id=self.id,
            epoch=epoch,
            hash=self._hash,
            lease_ms=transport.lease_ms,
            is_good=lambda: self._is_good(epoch),
            grant=self._grant,
            tell=tell,
            again=lambda: self._soon(0),
            learned=learned,
            differs=differs,
            offset_ms=lambda: transport.offset_ms if share is None else None,
            is_alone=share is not None,
        )
        state = None if memory is None else state_in(memory.text)
        age = 0.0 if memory is None else scheduler.now() - memory.at
        if share is not None:
            state, age = None if state is None else divided_state(state, share), age / share
        beginning = Beginning(state, age, self._writer_id, self._gone_id, self.snapshot)
        if share is None:
            return Writer(link, self._options, scheduler, lambda: self._lead_ms, beginning)
        return Writer(link, divided(self._options, share), Slower(scheduler, share), lambda: 0.0, beginning)

    def _is_good(self, epoch: float) -> bool:
        """Whether a grant may be made: not if it slept beyond its lease."""
        if self._lease is None or self._lease.epoch != epoch:
            return self._alone is not None
        if self._holds():
            return True
        self._step_down()
        return False

    def _holds(self) -> bool:
        return self._lease is not None and self._scheduler.now() < self._until

    def _renew(self) -> None:
        lease = self._lease
        if lease is None:
            return
        # The lease first: to write down a memory of many scopes may take as long as is left of it.
        self._keep(lease, None)
        state = self._beat()
        if state is not None:
            self._keep(lease, state)

    def _keep(self, lease: Lease, state: str | None) -> None:
        asked = self._scheduler.now()

        def answered(is_ours: bool, error: BaseException | None) -> None:
            if error is not None:
                self._is_broken(error)
            elif self._lease is lease:
                if is_ours:
                    self._until = max(self._until, asked + self._transport.lease_ms)
                else:
                    self._step_down()

        self._transport.renew(lease, state, answered)

    def _beat(self) -> str | None:
        """Says that it writes; gives what it remembers, where that went along."""
        writer, lease = self._writer, self._lease
        if writer is None or lease is None:
            return None
        beat = writer.beat()
        self._size = writer.size or self._size
        self._say(lease, beat)
        self.member.on_beat(beat)
        return beat.get("state")

    def _soon(self, ms: float) -> None:
        """Something was learned that should not be lost, or somebody is new: the next beat comes soon."""
        if self._hurrying is None and self._writer is not None:

            def over() -> None:
                self._hurrying = None
                state, lease = self._beat(), self._lease
                # Whatever is said is stored as well: whoever writes next may have heard nothing.
                if state is not None and lease is not None:
                    self._keep(lease, state)

            self._hurrying = self._scheduler.call_later(ms, over)

    def _step_down(self) -> None:
        """Writes no longer: another does, or will."""
        if self._writer is None:
            return
        self._writer.stop()
        self._writer = None
        self._lease = None
        self._heard_at = self._scheduler.now()
        self._later(self._transport.lease_ms / 10)

    def _send(self, message: Message) -> None:
        writer = self.writer
        if writer is not None:
            writer.hear(message)
        else:
            self._transport.to_writer(encode(message))

    def _grant(self, to: str, grant: Message) -> None:
        if to == self.id:
            self._on_member(grant)
        elif self._lease is not None:
            self._transport.to_member(self._lease, to, encode(grant))

    def _say(self, lease: Lease, message: Message) -> None:
        self._transport.to_all(lease, encode(message))

    def _hear(self, text: str) -> None:
        # A store that is asked whether anybody listens says nothing.
        if self._is_closed or text == "":
            return
        message = decode(text)
        if message == "wrong":
            what = f"a message is not well formed, and dropped: {text[:200]}"
            self._link.warn("shared-message", what)
        elif message == "version":
            what = "a process of another version shares the limit: it is not understood"
            self._link.warn("shared-version", what)
        elif isinstance(message, dict) and message["from"] != self.id:
            try:
                self._take(message)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                what = f"a message of {message['from']} makes no sense ({error}), and is dropped"
                self._link.warn("shared-message", what)

    def _take(self, message: Message) -> None:
        if message["from"] == self._gone_id and message["type"] != "resign":
            self._gone_id = None
        if message["type"] in TO_WRITER:
            if message["epoch"] == 0:
                self._soon(0)
            if self._writer is not None:
                self._writer.hear(message)
        else:
            self._on_writer(message)

    def _on_writer(self, message: Message) -> None:
        """A writer said something: this one, or an older or newer one."""
        epoch = message["epoch"]
        if epoch < self.member.epoch:
            return
        if self._writer is not None:
            # Two cannot be right: the newer one is.
            if epoch <= (0 if self._lease is None else self._lease.epoch):
                return
            self._step_down()
        now = self._scheduler.now()
        # Beats come oftener than that: this process slept, or the writer did. Where grants do not say when,
        # leave that lay unread is asked for anew.
        was_silent = self._transport.offset_ms is None and now - self._heard_at > self._transport.lease_ms
        self._heard_at = now
        self._writer_id = message["from"]
        self._is_connected()
        if was_silent:
            self.member.say_hello()
        if message["type"] == "resign":
            self._gone_id = message["from"]
            self.member.memory = Memory(message["state"], now)
            self._later(20)
        else:
            self.member.enter(epoch)
            self._on_member(message)

    def _on_member(self, message: Message) -> None:
        kind = message["type"]
        if kind == "grant":
            self.member.on_grant(message)
        elif kind == "tell":
            self._link.told(message)
        elif kind == "beat":
            # One that does not know this process has not heard of all.
            if self.id in message["members"]:
                self._size = len(message["members"])
            if message["hash"] != self._hash:
                what = "the process that decides has other options: those count"
                self._link.warn("shared-options", what)
            self.member.on_beat(message)

    def _deaf(self) -> None:
        what = "the connection that hears the group is open and carries nothing: it is made anew"
        self._link.warn("shared-deaf", what)

    def _is_broken(self, error: BaseException) -> None:
        if self._broken_at is None:
            self._broken_at = self._scheduler.now()
        self._broken_by = error

    def _is_connected(self) -> None:
        self._broken_at = None
        if not self._is_offline:
            return
        self._is_offline = False
        self._link.warn("shared-online", "the way to those that share the limit is open again")
        if self._alone is not None:
            self._alone.stop()
            self._alone = None
        self.member.retreat()

    def _go_offline(self) -> None:
        size, offline = self._size, self._offline
        if size is None and offline == "divide":
            # To go on alone at full speed is what all others would do, too.
            offline = "wait"
        if offline == "fail":
            error = SharedError()
            error.__cause__ = self._broken_by
            self._link.failed(error)
        if self._is_offline:
            return
        self._is_offline = True
        unknown = "waits, since it never heard of the others: `members` says how many there are"
        what = {
            "divide": f"goes on alone with one {size}th of every limit",
            "wait": "waits" if offline == self._offline else unknown,
            "fail": "fails",
        }
        way = f"the way to those that share the limit is broken ({self._broken_by})"
        self._link.warn("shared-offline", f"{way}: this process {what[offline]}")
        if offline != "divide" or size is None:
            return
        # Between two leases: the next writer's is larger.
        epoch = math.floor(self.member.epoch) + 0.5
        memory = self.member.memory
        self._alone = self._beginning(epoch, [] if memory is None else [memory], size)
        self.member.enter(epoch)

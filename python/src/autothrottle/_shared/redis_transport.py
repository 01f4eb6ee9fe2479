"""The way between processes through Redis: a lease in a key, messages by publish and subscribe.

1. ``compete`` first makes sure that this process hears, and knows the store's clock; then one script gives
   the lease with a new epoch, or says that another process has it.
2. What a writer says leaves once a turn, in one script that first compares the lease. A writer that slept is
   told so, and what it said did not leave.
3. A grant carries the instant at which it is to be used, on the store's clock: so the way there, which takes
   now 10 ms and then 40, does not shorten the gaps.

The trap is a command that waits for a connection and hangs: each answer has as long as a lease lasts. See
``js/shared/redis/transport.ts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .courier import Answer, Courier, Ears
from .scripts import COMPETE, RELEASE, RENEW, SEND, TIME
from .store_clock import KEPT, StoreClock
from .transport import Done, Lease, Leaving, Peer, Scheduler

LEASE_MS = 1500.0

SAMPLING_MS = LEASE_MS / 3
"""For so long the store's clock is asked at the beginning: on a slow way fewer answers have to do, or others
would find this process late."""


class RedisTransport:
    """One process's way through Redis."""

    lease_ms = LEASE_MS

    def __init__(self, courier: Courier, scheduler: Scheduler, name: str) -> None:
        self._courier = courier
        self._scheduler = scheduler
        # The braces keep the keys in one slot of a cluster.
        self._prefix = f"autothrottle:{{{name}}}:"
        self._keys = [self._prefix + key for key in ("lease", "epoch", "state")]
        self._writer = f"{self._prefix}writer"
        self._clock = StoreClock()
        self._peer: Peer | None = None
        self._ears: Ears | None = None
        self._opening: Ears | None = None
        self._writer_ears: Ears | None = None
        self._is_closed = self._is_sampling = False
        self._heard_at = 0.0
        self._deaf_since: float | None = None
        """When a message was heard last, and since when the store answers and none is."""
        self._is_competing = False
        """The store was asked for the lease and has not answered."""
        self._said: list[str] = []
        self._said_under: Lease | None = None

    @property
    def offset_ms(self) -> float | None:
        """See :class:`Transport`."""
        return self._clock.offset_ms

    @property
    def lead_ms(self) -> float:
        """See :class:`Transport`."""
        return self._clock.lead_ms

    def open(self, peer: Peer) -> None:
        """See :class:`Transport`."""
        self._peer = peer
        self._courier.open()

    def compete(self, epoch: int, done: Done) -> None:
        """See :class:`Transport`."""

        def hears(_: Any, error: BaseException | None) -> None:
            if error is not None or self._is_closed:
                done(None, error)
            else:
                self._ask(epoch, done)

        if self._ears is None:
            self._listen(hears)
        else:
            hears(None, None)

    def renew(self, lease: Lease, state: str | None, done: Done) -> None:
        """See :class:`Transport`."""
        claim = [*self._claim(lease), state or ""]

        def answered(answer: Any, error: BaseException | None) -> None:
            is_ours = answer == 1
            if is_ours and self._is_deaf():
                # Whoever hears nobody should not write.
                self._give_back()
                is_ours = False
            done(is_ours, error)

        self._run(RENEW, claim, answered)

    def release(self, lease: Lease, state: str) -> None:
        """See :class:`Transport`."""
        self._flush()
        if state:
            self._run(RENEW, [*self._claim(lease), state], _ignore)
        self._give_back()

    def to_writer(self, text: str) -> None:
        """See :class:`Transport`."""

        def told(heard: Any, error: BaseException | None) -> None:
            if error is None and heard == 0 and self._peer is not None:
                self._peer.vacant()

        self._courier.send(["PUBLISH", self._writer, text], self._in_time(told))

    def to_member(self, lease: Lease, member: str, text: str) -> None:
        """See :class:`Transport`."""
        self._say(lease, f"{self._prefix}to:{member}", text)

    def to_all(self, lease: Lease, text: str) -> None:
        """See :class:`Transport`."""
        self._say(lease, f"{self._prefix}all", text)

    def close(self) -> Leaving:
        """See :class:`Transport`."""
        self._is_closed = True
        if self._is_competing:
            # The answer may come when nobody hears it; what is asked in order is done in order.
            self._give_back()
        for ears in (self._ears, self._opening, self._writer_ears):
            if ears is not None:
                ears.close()
        self._ears = self._opening = self._writer_ears = None
        return self._courier.close()

    def _ask(self, epoch: int, done: Done) -> None:
        assert self._peer is not None

        def answered(answer: Any, error: BaseException | None) -> None:
            self._is_competing = False
            if error is not None:
                done(None, error)
            elif not answer or self._is_closed:
                self._deafen()
                if not self._is_closed:
                    self._is_deaf()
                done(None, None)
            else:
                won, state, age = (_text(each) for each in answer)
                lease = Lease(int(won), state or None, float(age))
                self._hear_as_writer(lambda _, wrong: done(None if wrong else lease, wrong))

        arguments = [self._peer.id, str(epoch), str(int(LEASE_MS)), self._writer]
        self._is_competing = True
        self._run(COMPETE, arguments, answered)

    def _listen(self, then: Done) -> None:
        """The connection that hears, and the store's clock; again after a failure."""
        assert self._peer is not None
        ears: Ears

        def ended(_: Any, error: BaseException | None) -> None:
            self._opening = None
            if error is not None or self._is_closed:
                ears.close()
            else:
                self._ears = ears
                self._heard_at = self._scheduler.now()
                if not self._is_sampling:
                    self._is_sampling = True
                    self._resample()
            then(None, error)

        def sampled(left: int, until: float, error: BaseException | None) -> None:
            is_enough = left == 0 or (left < KEPT and self._scheduler.now() > until)
            if error is not None or is_enough:
                ended(None, error)
            else:
                self._sample(lambda _, wrong: sampled(left - 1, until, wrong))

        def listened(_: Any, error: BaseException | None) -> None:
            sampled(KEPT, self._scheduler.now() + SAMPLING_MS, error)

        channels = [f"{self._prefix}all", f"{self._prefix}to:{self._peer.id}"]
        ears = self._opening = self._courier.listen(channels, self._hear, self._in_time(listened))

    def _hear(self, text: str) -> None:
        self._heard_at, self._deaf_since = self._scheduler.now(), None
        if self._peer is not None:
            self._peer.heard(text)

    def _is_deaf(self) -> bool:
        """Whether the connection that hears is open and carries nothing, as after a firewall forgot it.

        Somebody writes, and beats come three times a lease, this process's own as well. Asked when the store
        answers; for a lease from the first such answer a client may still be connecting. Then the connection
        is made anew.
        """
        now = self._scheduler.now()
        if now - self._heard_at < LEASE_MS:
            return False
        if self._deaf_since is None:
            self._deaf_since = now
        if now - self._deaf_since < LEASE_MS:
            return False
        self._deaf_since = None
        self._deafen()
        if self._ears is not None:
            self._ears.close()
            self._ears = None
        if self._peer is not None:
            self._peer.deaf()
        return True

    def _hear_as_writer(self, done: Done) -> None:
        assert self._peer is not None
        if self._is_closed or self._writer_ears is not None:
            done(None, None)
            return
        ears = self._writer_ears = self._courier.listen(
            [self._writer], self._peer.heard, self._in_time(lambda _, error: heard(error))
        )

        def heard(error: BaseException | None) -> None:
            if error is not None:
                ears.close()
                self._writer_ears = None
            done(None, error)

    def _deafen(self) -> None:
        """It no longer writes: what is said to the writer is not for it."""
        if self._writer_ears is not None:
            self._writer_ears.close()
            self._writer_ears = None

    def _say(self, lease: Lease, channel: str, text: str) -> None:
        """Whatever is said in one turn is one script."""
        if self._said_under not in (None, lease):
            self._flush()
        self._said += (channel, text)
        if self._said_under is None:
            self._said_under = lease
            self._scheduler.after_turn(self._flush)

    def _flush(self) -> None:
        lease, self._said_under = self._said_under, None
        said, self._said = self._said, []
        if lease is None:
            return

        def sent(answer: Any, error: BaseException | None) -> None:
            if error is None and answer == 0 and self._peer is not None:
                self._peer.fenced()

        self._run(SEND, [*self._claim(lease), *said], sent)

    def _resample(self) -> None:
        """Clocks drift, and are set: the store's is asked three times a lease."""

        def again() -> None:
            if not self._is_closed:
                self._sample(_ignore)
                self._resample()

        self._scheduler.call_later(LEASE_MS / 3, again)

    def _sample(self, then: Done) -> None:
        asked = self._scheduler.now()

        def answered(answer: Any, error: BaseException | None) -> None:
            if error is None:
                seconds, micros = float(_text(answer[0])), float(_text(answer[1]))
                self._clock.sample(asked, self._scheduler.now(), seconds * 1000 + micros / 1000)
            then(None, error)

        self._run(TIME, [""], answered)

    def _give_back(self) -> None:
        assert self._peer is not None
        self._run(RELEASE, [self._peer.id], _ignore)

    def _claim(self, lease: Lease) -> list[str]:
        return [self._holder(lease), str(lease.epoch), str(int(LEASE_MS))]

    def _holder(self, lease: Lease) -> str:
        assert self._peer is not None
        return f"{lease.epoch}:{self._peer.id}"

    def _run(self, script: str, arguments: Sequence[str], done: Done) -> None:
        command = ["EVAL", script, str(len(self._keys)), *self._keys, *arguments]
        self._courier.send(command, self._in_time(done))

    def _in_time(self, done: Done) -> Answer:
        """The same, called once: with an error if there is no answer within a lease."""
        answer = Answer(done)
        late = f"Redis has not answered within {LEASE_MS:.0f} ms"
        answer.timer = self._scheduler.call_later(LEASE_MS, lambda: answer(None, TimeoutError(late)))
        return answer


def _ignore(_: Any, __: BaseException | None) -> None:
    """What is lost is said again."""


def _text(value: Any) -> str:
    """Redis's answers are bytes, unless the client decodes them."""
    return value.decode() if isinstance(value, bytes) else str(value)

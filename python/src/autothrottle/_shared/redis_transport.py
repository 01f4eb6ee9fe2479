"""The way between processes through Redis: a lease in a key, frames by publish and subscribe.

1. ``compete`` first makes sure that this process hears; then one script gives the lease with a new epoch, or
   says that another process has it.
2. A leader's messages leave once a turn, in one script that first compares the lease. A leader that slept is
   told so, and what it sent did not leave.

In a cluster this process hears what goes to all nodes, and says so whenever it renews or asks the leader.

A command that waits for a connection may hang, so each answer has as long as a lease lasts. See
``js/shared/redis/transport.ts``.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from .._native import (
    COMPETE,
    NO_ANSWER,
    NO_ANSWER_BY_TLS,
    RELEASE,
    RENEW,
    SEND,
    TELL,
    is_for_good,
)
from ..errors import ConfigError, Problem
from .redis_io import LEASE_MS, Once, RedisIo, Subscription
from .transport import Done, EventLoop, Lease, Leaving, Peer


class RedisTransport:
    """A :class:`Transport`: one process's way through Redis."""

    lease_ms = LEASE_MS

    def __init__(
        self,
        io: RedisIo,
        event_loop: EventLoop,
        name: str,
        *,
        is_cluster: bool = False,
        is_secure: bool = False,
    ) -> None:
        self._io = io
        self._event_loop = event_loop
        # The braces keep the keys in one slot of a cluster.
        self._prefix = f"autothrottle:{{{name}}}:"
        keys = ("lease", "epoch", "snapshot", *(("plain",) if is_cluster else ()))
        self._keys = [self._prefix + key for key in keys]
        self._plain = "plain" if is_cluster else ""
        self._leader = f"{self._prefix}leader"
        self._late = NO_ANSWER_BY_TLS if is_secure else NO_ANSWER
        self._peer: Peer | None = None
        self._subscription: Subscription | None = None
        self._leader_subscription: Subscription | None = None
        self._is_closed = False
        self._is_competing = False
        """The store was asked for the lease and has not answered."""
        self._pending: list[str | bytes] = []
        self._pending_epoch: int | None = None

    def open(self, peer: Peer) -> None:
        self._peer = peer
        self._io.open()
        peer.opened()

    def compete(self, above: int, done: Done) -> None:
        if self._is_closed:
            done(None, None)
            return

        def hears(_: Any, error: BaseException | None) -> None:
            if error is not None or self._is_closed:
                done(None, error)
            else:
                self._ask(above, done)

        if self._subscription is None:
            self._listen(hears)
        else:
            hears(None, None)

    def renew(self, epoch: int, store: bytes | None, done: Done) -> None:
        text = "" if store is None else base64.b64encode(store).decode()
        self._run(
            RENEW, [*self._claim(epoch), text, self._plain], lambda answer, error: done(answer == 1, error)
        )

    def release(self, epoch: int, store: bytes | None, done: Done) -> None:
        self._flush()
        if store is not None:
            self.renew(epoch, store, _ignore)
        self._give_back(done)

    def to_leader(self, frame: bytes) -> None:
        def delivered(heard: Any, error: BaseException | None) -> None:
            if error is None and heard == 0 and self._peer is not None:
                self._peer.vacant()

        if self._plain:
            self._run(TELL, [self._leader, frame, self._plain], delivered)
        else:
            self._io.send(["PUBLISH", self._leader, frame], self._in_time(delivered))

    def to_member(self, epoch: int, member: str, frame: bytes) -> None:
        self._say(epoch, f"{self._prefix}to:{member}", frame)

    def to_all(self, epoch: int, frame: bytes) -> None:
        self._say(epoch, f"{self._prefix}all", frame)

    def reconnect(self, speaks: bool) -> None:
        if self._is_closed:
            return
        if speaks:
            self._io.reconnect()
            return
        is_leader = self._leader_subscription is not None
        self._deafen()

        def opened(_: Any, error: BaseException | None) -> None:
            if error is None and not self._is_closed and self._peer is not None:
                self._peer.opened()

        def hears(_: Any, error: BaseException | None) -> None:
            if error is None and is_leader and not self._is_closed:
                self._listen_as_leader(opened)
            else:
                opened(None, error)

        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._listen(hears)

    def close(self) -> Leaving:
        self._flush()
        self._is_closed = True
        if self._is_competing:
            # The answer may come when it is not wanted any more; what is asked in order is done in order.
            self._give_back(_ignore)
        self._deafen()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        return self._io.close()

    def _ask(self, above: int, done: Done) -> None:
        assert self._peer is not None

        def answered(answer: Any, error: BaseException | None) -> None:
            self._is_competing = False
            if error is not None or self._is_closed:
                done(None, error)
            elif not answer:
                # It no longer leads: what is sent to the leader is not for it.
                self._deafen()
                done(None, None)
            else:
                won, stored, age = (_text(each) for each in answer)
                lease = Lease(int(won), base64.b64decode(stored) if stored else None, float(age))
                self._listen_as_leader(lambda _, wrong: done(None if wrong else lease, wrong))

        self._is_competing = True
        self._run(COMPETE, [self._peer.id, str(above), str(int(LEASE_MS)), self._leader], answered)

    def _listen(self, then: Done) -> None:
        """The connection that hears; again after a failure."""
        assert self._peer is not None
        subscription: Subscription

        def listened(_: Any, error: BaseException | None) -> None:
            if error is not None or self._is_closed:
                subscription.close()
                if self._subscription is subscription:
                    self._subscription = None
            then(None, error)

        channels = [f"{self._prefix}all", f"{self._prefix}to:{self._peer.id}"]
        subscription = self._subscription = self._io.listen(channels, self._receive, self._in_time(listened))

    def _listen_as_leader(self, done: Done) -> None:
        if self._is_closed or self._leader_subscription is not None:
            done(None, None)
            return
        subscription: Subscription

        def listened(_: Any, error: BaseException | None) -> None:
            if error is not None:
                subscription.close()
                if self._leader_subscription is subscription:
                    self._leader_subscription = None
            done(None, error)

        subscription = self._leader_subscription = self._io.listen(
            [self._leader], self._receive, self._in_time(listened)
        )

    def _receive(self, frame: bytes) -> None:
        # A store that is asked whether there are listeners sends no message.
        if frame and not self._is_closed and self._peer is not None:
            self._peer.received(frame)

    def _deafen(self) -> None:
        if self._leader_subscription is not None:
            self._leader_subscription.close()
            self._leader_subscription = None

    def _say(self, epoch: int, channel: str, frame: bytes) -> None:
        """The messages of one turn are one script."""
        if self._pending_epoch not in (None, epoch):
            self._flush()
        self._pending += (channel, frame)
        if self._pending_epoch is None:
            self._pending_epoch = epoch
            self._event_loop.after_turn(self._flush)

    def _flush(self) -> None:
        epoch, self._pending_epoch = self._pending_epoch, None
        pending, self._pending = self._pending, []
        if epoch is None:
            return

        def sent(answer: Any, error: BaseException | None) -> None:
            if error is not None or self._peer is None:
                return
            if answer == 0:
                self._peer.fenced(epoch)
                return
            to = f"{self._prefix}to:"
            for place in answer:
                channel = str(pending[2 * place])
                if channel.startswith(to):
                    self._peer.unheard(channel[len(to) :], epoch)

        self._run(SEND, [*self._claim(epoch), *pending], sent)

    def _give_back(self, done: Done) -> None:
        assert self._peer is not None
        self._run(RELEASE, [self._peer.id], done)

    def _claim(self, epoch: int) -> list[str]:
        assert self._peer is not None
        return [f"{epoch}:{self._peer.id}", str(epoch), str(int(LEASE_MS))]

    def _run(self, script: str, arguments: Sequence[str | bytes], done: Done) -> None:
        command = ["EVAL", script, str(len(self._keys)), *self._keys, *arguments]
        self._io.send(command, self._in_time(done))

    def _in_time(self, done: Done) -> Once:
        """The same, called once: with an error if there is no answer within a lease. A failure that will not
        heal by itself is an error of the options.
        """

        def answered(result: Any, error: BaseException | None) -> None:
            if error is not None and is_for_good(str(error)):
                wanted = f"permission to use {self._prefix}*"
                error = ConfigError([Problem("shared.client", wanted, str(error))])
            done(result, error)

        answer = Once(answered)
        answer.timer = self._event_loop.call_later(LEASE_MS, lambda: answer(None, TimeoutError(self._late)))
        return answer


def _ignore(_: Any, __: BaseException | None) -> None:
    """Lost messages are sent again."""


def _text(value: Any) -> str:
    """Redis's answers are bytes, unless the client decodes them."""
    return value.decode() if isinstance(value, bytes) else str(value)

"""Commands and messages of Redis go on after an answer that makes no sense, and end when they are closed.

The store is played: no server, no time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from autothrottle._native import COMPETE
from autothrottle._shared.redis_io import LoopRedisIo, Once
from autothrottle._shared.redis_transport import RedisTransport
from autothrottle._shared.transport import Peer
from autothrottle.errors import ConfigError

from .world import Process, World

if TYPE_CHECKING:
    from typing_extensions import Self


def fails(*_: Any) -> None:
    raise KeyError("members")


class Client:
    """A client of asyncio whose store answers 1, and says ``texts`` to who hears."""

    def __init__(self, *texts: bytes) -> None:
        self.connection_pool = SimpleNamespace(connection_kwargs={})
        self.pubsubs = 0
        self._messages: list[dict[str, Any]] = [{"type": "subscribe"}]
        self._messages += [{"type": "message", "data": text} for text in texts]
        self._commands = 0

    def pipeline(self, **_: Any) -> Client:
        self._commands = 0
        return self

    def pubsub(self) -> Client:
        self.pubsubs += 1
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def execute_command(self, *_: str) -> None:
        self._commands += 1

    async def execute(self, **_: Any) -> list[int]:
        return [1] * self._commands

    async def subscribe(self, *_: str) -> None:
        pass

    async def get_message(self, **_: Any) -> dict[str, Any]:
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop(0)


def test_an_answer_that_cannot_be_used_ends_no_task(caplog: pytest.LogCaptureFixture) -> None:
    """A state in the store that no process can read, say: all later commands would wait for ever."""
    answers: list[Any] = []

    async def play() -> None:
        io = LoopRedisIo(Client())
        io.open()
        io.send(["ONE"], Once(fails))
        io.send(["TWO"], Once(lambda answer, _: answers.append(answer)))
        for _ in range(5):
            await asyncio.sleep(0)
        io.send(["THREE"], Once(lambda answer, _: answers.append(answer)))
        await io.close().wait()

    asyncio.run(play())
    assert answers == [1, 1]
    assert "a call of a shared throttle failed" in caplog.text


def test_a_message_that_cannot_be_used_does_not_break_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever is said until it is made anew would be lost."""
    heard: list[bytes] = []

    def hear(frame: bytes) -> None:
        heard.append(frame)
        if frame == b"bad":
            fails()

    async def play() -> None:
        client = Client(b"bad", b"good")
        subscription = LoopRedisIo(client).listen(["a"], hear, Once(lambda *_: None))
        for _ in range(5):
            await asyncio.sleep(0)
        subscription.close()
        assert client.pubsubs == 1

    asyncio.run(play())
    assert heard == [b"bad", b"good"]
    assert "a call of a shared throttle failed" in caplog.text


class Subscription:
    """A connection that hears."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class RedisIo:
    """Keeps what it is asked for; the test answers."""

    def __init__(self) -> None:
        self.sent: list[Once] = []
        self.subscriptions: list[Subscription] = []
        self.ready: list[Once] = []

    def open(self) -> None:
        pass

    def send(self, command: Sequence[str], answer: Once) -> None:
        self.sent.append(answer)

    def listen(self, channels: Sequence[str], heard: Callable[[bytes], None], ready: Once) -> Subscription:
        self.ready.append(ready)
        self.subscriptions.append(Subscription())
        return self.subscriptions[-1]

    def close(self) -> Any:
        return None


class Time:
    """Stands still."""

    def __init__(self) -> None:
        self._world = World(1)

    def now(self) -> float:
        return 0.0

    def call_later(self, ms: float, call: Callable[[], object]) -> Any:
        return self._world.after(ms, None, call)


def nothing(*_: Any) -> None:
    """Hears no message."""


def competing() -> tuple[RedisTransport, RedisIo]:
    io = RedisIo()
    transport = RedisTransport(io, Time(), "a")  # type: ignore[arg-type]
    transport.open(Peer("p", nothing, nothing, nothing, nothing, nothing))
    transport.compete(0, lambda *_: None)
    return transport, io


def test_closed_before_it_hears_it_leaves_no_connection() -> None:
    """Threads get no word any more then: no code would close it later."""
    transport, io = competing()
    transport.close()
    assert [subscription.is_closed for subscription in io.subscriptions] == [True]


def test_a_lease_that_comes_after_it_closed_makes_no_connection() -> None:
    transport, io = competing()
    io.ready[0](None, None)
    transport.close()
    io.sent[0]([b"1", b"", b"0"], None)
    assert [subscription.is_closed for subscription in io.subscriptions] == [True]


def test_a_process_that_has_closed_opens_no_connection_more() -> None:
    io = RedisIo()
    transport = RedisTransport(io, Time(), "a")  # type: ignore[arg-type]
    transport.open(Peer("p", nothing, nothing, nothing, nothing, nothing))
    transport.close()
    answers: list[Any] = []
    transport.compete(0, lambda lease, error: answers.append((lease, error)))
    transport.reconnect(False)
    assert answers == [(None, None)]
    assert io.subscriptions == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not tell that it was cancelled")
async def test_a_client_that_makes_an_error_of_a_cancellation_ends_all_the_same() -> None:
    class Stubborn(Client):
        async def subscribe(self, *_: str) -> None:
            await self.execute()

        async def execute(self, **_: Any) -> list[Any]:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ConnectionError from None
            raise AssertionError

    io = LoopRedisIo(Stubborn())
    io.open()
    io.listen(["a"], fails, Once(fails))
    io.send(["TIME"], Once(fails))
    for _ in range(5):
        await asyncio.sleep(0)
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("autothrottle-")]
    assert len(tasks) == 2
    for task in tasks:
        task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)


# The transport of Redis with a store whose connections break, and with one that never answers.


class _Store:
    """Commands whose store answers, and that counts connections."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened = self.closed = 0
        self.error: Exception | None = None

    def open(self) -> None:
        pass

    def send(self, command: Any, answer: Once) -> None:
        if self.error is not None:
            answer(None, self.error)
        else:
            answer([b"1", b"", b"0"] if command[1] == COMPETE else 1, None)

    def listen(self, channels: Any, heard: Any, ready: Once) -> Any:
        self.opened += 1
        self.world.after(0, None, lambda: ready(None, None))
        return self

    def reconnect(self) -> None:
        pass

    def close(self) -> Any:
        self.closed += 1


def test_a_connection_is_made_anew_and_the_leader_hears_as_one_again() -> None:
    world = World(1)
    io = _Store(world)
    transport = RedisTransport(io, Process(world, "p", {}), "x")
    opened: list[float] = []
    transport.open(Peer("p", lambda: opened.append(world.now), nothing, nothing, nothing, nothing))
    leases: list[Any] = []
    transport.compete(0, lambda lease, _: leases.append(lease))
    world.run(1)
    assert leases[0].epoch == 1
    assert (io.opened, io.closed, len(opened)) == (2, 0, 1)
    transport.reconnect(False)
    world.run(1)
    assert (io.opened, io.closed, len(opened)) == (4, 2, 2)


@pytest.mark.parametrize("text", ["NOPERM this user has no permissions", "WRONGTYPE Operation against a key"])
def test_a_store_that_never_will_is_a_config_error(text: str) -> None:
    world = World(1)
    io = _Store(world)
    io.error = RuntimeError(text)
    transport = RedisTransport(io, Process(world, "p", {}), "x")
    transport.open(Peer("p", nothing, nothing, nothing, nothing, nothing))
    errors: list[Any] = []
    transport.compete(0, lambda _, error: errors.append(error))
    world.run(1)
    assert isinstance(errors[0], ConfigError)
    assert text in str(errors[0])

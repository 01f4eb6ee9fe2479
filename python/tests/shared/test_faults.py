"""What a group does about faults that are no crash: odd messages, a store that was away, wrong options.

The trap is a fault that only its victim meets: each hears of it.
"""

from __future__ import annotations

from typing import Any

import pytest

from autothrottle._native import COMPETE
from autothrottle._shared.courier import Answer
from autothrottle._shared.redis_transport import RedisTransport
from autothrottle._shared.transport import Peer
from autothrottle.errors import ConfigError

from .test_group import Crowd
from .world import Process, World


def test_a_memory_that_cannot_be_read_is_as_none_and_told() -> None:
    crowd = Crowd(World(3), 3, latency=lambda: 50)
    crowd.begin("gap", 12)
    crowd.world.run(1000)
    store = crowd.world.store
    for text in (b"garbage", b"", b"\x00" * 5000):
        for process in crowd.processes:
            assert process.peer is not None
            process.peer.received(text)
        store.state, store.state_at, store.until = text, crowd.world.now, 0
        store.epoch += 1
        crowd.world.run(5000)
    assert "shared-message" in {code for process in crowd.processes for code in process.warnings}
    crowd.world.run(4000)
    assert crowd.unfinished == []
    alone = Crowd(World(4), 1, latency=lambda: 50)
    alone.world.store.state, alone.world.store.epoch = b"garbage", 3
    alone.begin("gap", 4)
    alone.world.run(8000)
    assert alone.processes[0].warnings == ["shared-memory"]
    assert alone.unfinished == []


def test_who_never_heard_of_the_others_waits_unless_it_is_told_how_many_there_are() -> None:
    for members in (None, 8):
        crowd = Crowd(World(5), 8, latency=lambda: 50, offline="divide", members=members)
        for process in crowd.processes:
            process.cut(30_000)
        crowd.begin("gap", 1000)
        crowd.world.run(10_000)
        sent = len(crowd.sends)
        crowd.world.run(15_000)
        during = len(crowd.sends) - sent
        assert {tuple(process.warnings) for process in crowd.processes} == {("shared-offline",)}
        if members is None:
            assert crowd.sends == []
        else:
            assert 90 < during <= 108, during
        crowd.world.run(6000)
        sent = len(crowd.sends)
        crowd.world.run(15_000)
        assert 90 < len(crowd.sends) - sent <= 101


class _Store:
    """A courier whose store answers, and that counts connections."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened = self.closed = 0
        self.error: Exception | None = None

    def open(self) -> None:
        pass

    def send(self, command: Any, answer: Answer) -> None:
        if self.error is not None:
            answer(None, self.error)
        else:
            answer([b"1", b"", b"0"] if command[1] == COMPETE else 1, None)

    def listen(self, channels: Any, heard: Any, ready: Answer) -> Any:
        self.opened += 1
        self.world.after(0, None, lambda: ready(None, None))
        return self

    def close(self) -> Any:
        self.closed += 1


def nothing(*_: Any) -> None:
    """Hears no message."""


def test_a_connection_is_made_anew_and_the_leader_hears_as_one_again() -> None:
    world = World(1)
    courier = _Store(world)
    transport = RedisTransport(courier, Process(world, "p", {}), "x")
    opened: list[float] = []
    transport.open(Peer("p", lambda: opened.append(world.now), nothing, nothing, nothing, nothing))
    leases: list[Any] = []
    transport.compete(0, lambda lease, _: leases.append(lease))
    world.run(1)
    assert leases[0].epoch == 1
    assert (courier.opened, courier.closed, len(opened)) == (2, 0, 1)
    transport.reconnect()
    world.run(1)
    assert (courier.opened, courier.closed, len(opened)) == (4, 2, 2)


@pytest.mark.parametrize("text", ["NOPERM this user has no permissions", "WRONGTYPE Operation against a key"])
def test_a_store_that_never_will_is_a_config_error(text: str) -> None:
    world = World(1)
    courier = _Store(world)
    courier.error = RuntimeError(text)
    transport = RedisTransport(courier, Process(world, "p", {}), "x")
    transport.open(Peer("p", nothing, nothing, nothing, nothing, nothing))
    errors: list[Any] = []
    transport.compete(0, lambda _, error: errors.append(error))
    world.run(1)
    assert isinstance(errors[0], ConfigError)
    assert text in str(errors[0])

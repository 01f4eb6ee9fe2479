"""What the transport of Redis makes of a store whose connections break, and of one that never will."""

from __future__ import annotations

from typing import Any

import pytest

from autothrottle._native import COMPETE
from autothrottle._shared.courier import Once
from autothrottle._shared.redis_transport import RedisTransport
from autothrottle._shared.transport import Peer
from autothrottle.errors import ConfigError

from .world import Process, World


class _Store:
    """A courier whose store answers, and that counts connections."""

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

"""What a group does about faults that are no crash: odd messages, a store that was away, wrong options.

The trap is a fault that is only met by whoever has it: each is told.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from autothrottle._shared.courier import Answer
from autothrottle._shared.redis_transport import RedisTransport
from autothrottle._shared.scripts import COMPETE, RENEW
from autothrottle._shared.transport import Peer

from .test_group import Crowd
from .world import Process, World


def test_a_message_that_is_odd_is_dropped_and_told_and_a_memory_that_is_none_is_as_none() -> None:
    crowd = Crowd(World(3), 3, latency=lambda: 50)
    crowd.begin("gap", 12)
    crowd.world.run(1000)
    head = {"v": 1, "from": "odd", "epoch": 1e6, "hello": 1, "hash": "", "watch": 0}
    odd: list[dict[str, Any]] = [
        {"type": "beat"},
        {"type": "hello"},
        {"type": "hello", "waiting": [None], "flying": [], "orders": []},
        {"type": "turn", "number": 1, "acts": [None]},
        {"type": "turn", "number": 1, "acts": [["order", 1, ["explode", "x"]]]},
        {"type": "grant", "number": 1, "ids": [1], "refused": []},
        {"type": "tell", "now": 1, "notices": [1]},
        {"type": "resign"},
    ]
    texts = [json.dumps({**head, **message}) for message in odd] + ["x", "[]", '{"v":1,"epoch":1e999}']
    for process in crowd.processes:
        assert process.peer is not None
        for text in texts:
            process.peer.heard(text)
        assert process.warnings == ["shared-message"] * len(texts)
    store = crowd.world.store
    for text in (
        "garbage",
        "{}",
        json.dumps({"snapshot": {"version": 9, "scopes": {}}, "settings": [], "members": []}),
    ):
        beat = {**head, "type": "beat", "epoch": store.epoch, "members": {}, "state": text, "seen": text}
        for process in crowd.processes:
            if process.id != store.holder and process.peer is not None:
                process.peer.heard(json.dumps(beat))
                assert process.host.stats(process.ns).in_flight == 0
                assert process.host.snapshot(process.ns)
        store.state, store.state_at, store.until = text, crowd.world.now, 0
        store.epoch += 1
        crowd.world.run(3500)
    assert any("shared-memory" in process.warnings for process in crowd.processes)
    crowd.world.run(4000)
    assert crowd.unfinished == []


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


def test_what_is_left_of_a_quota_is_divided() -> None:
    scopes = {"quota": {"quota": 80, "window": 60_000}}
    crowd = Crowd(World(7), 4, latency=lambda: 50, offline="divide", scopes=scopes)
    crowd.begin("quota", 40)
    crowd.world.run(6000)
    assert len(crowd.sends) == 40
    for process in crowd.processes:
        process.cut(60_000)
    # For the rest of its lease the writer may use all that is left.
    crowd.world.run(2000)
    crowd.begin("quota", 1000)
    crowd.world.run(40_000)
    assert 76 <= len(crowd.sends) <= 80, len(crowd.sends)


class _Silent:
    """A courier whose store answers, and whose connections carry nothing."""

    def __init__(self, world: World, won: list[Any]) -> None:
        self.world = world
        self.won = won
        self.open_ears: list[Any] = []
        self.closed = 0

    def open(self) -> None:
        pass

    def send(self, command: Any, answer: Answer) -> None:
        script = command[1]
        answer(self.won if script == COMPETE else 1 if script == RENEW else [b"1", b"0"], None)

    def listen(self, channels: Any, heard: Any, ready: Answer) -> Any:
        self.open_ears.append(heard)
        self.world.after(0, None, lambda: ready(None, None))
        return self

    def close(self) -> Any:
        self.closed += 1


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("is_writer", [False, True])
def test_a_connection_that_carries_nothing_is_made_anew(is_writer: bool, is_heard: bool) -> None:
    world = World(1)
    process = Process(world, "p", {})
    courier = _Silent(world, [b"1", b"", b"0"] if is_writer else [])
    transport = RedisTransport(courier, process, "x")
    deaf: list[float] = []
    transport.open(Peer("p", lambda _: None, lambda: None, lambda: None, lambda: deaf.append(world.now)))
    leases: list[Any] = []
    transport.compete(0, lambda lease, _: leases.append(lease))
    renewed: list[bool] = []
    world.run(1)
    for _ in range(7):
        if is_heard:
            courier.open_ears[0]("")
        if is_writer:
            transport.renew(leases[0], None, lambda is_ours, _: renewed.append(is_ours))
        else:
            transport.compete(0, lambda lease, _: leases.append(lease))
        world.run(500)
    assert len(deaf) == (0 if is_heard else 1)
    assert courier.closed == (0 if is_heard else 1 + is_writer)
    if is_writer:
        assert renewed == [True] * 6 + [is_heard]

"""What a group does about faults that are no crash: odd messages, a store that was away, wrong options.

The trap is a fault that is only met by whoever has it: each is told.
"""

from __future__ import annotations

import json
from typing import Any

from .test_group import Crowd
from .world import World


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

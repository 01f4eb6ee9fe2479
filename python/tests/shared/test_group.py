"""Groups of processes in virtual time, by this package's host: what it hands over, and what it gives back.

What holds whatever happens is the machine's, and is played in Rust (``shared/tests``): loss, kills, clocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from autothrottle._native import Engine
from autothrottle._shared.transport import Offline
from autothrottle.errors import (
    ConfigError,
    CostExceedsQuotaError,
    SharedError,
    SnapshotError,
)

from .world import Process, World

OPTIONS: dict[str, Any] = {
    "seed": 1,
    "defaults": {"delay": 0, "slotDelay": 0, "jitter": False, "concurrency": 100},
    "scopes": {
        "gap": {"delay": 150},
        "slots": {"concurrency": 3},
        "quota": {"quota": 12, "window": 3000, "strict": True},
    },
}


def good() -> dict[str, Any]:
    return {"status": 200, "latency": 50_000_000}


class Crowd:
    """Processes that have work for a scope, and what their server saw."""

    def __init__(
        self,
        world: World,
        count: int,
        *,
        latency: Callable[[], float],
        offline: Offline = "wait",
        members: int | None = None,
        **options: Any,
    ) -> None:
        self.world = world
        self.latency = latency
        self.sends: list[tuple[str, float, float, Process]] = []
        self.open: dict[tuple[str, int], str] = {}
        self.to_do = 0
        self.outcome: Callable[[], dict[str, Any]] = good
        self.processes = [
            Process(world, f"p{number}", {**OPTIONS, **options}, offline, members) for number in range(count)
        ]
        for process in self.processes:
            process.work = partial(self._sent, process)

    def begin(self, name: str, to_do: int) -> None:
        """Each process asks four times, and again when it was answered."""
        self.to_do = to_do
        for process in self.processes:
            for _ in range(4):
                self.world.after(self.world.dice.random() * 200, process, partial(self._ask, process, name))

    @property
    def unfinished(self) -> list[tuple[str, int]]:
        """Requests of living processes without an answer."""
        alive = {process.id for process in self.processes if not process.is_dead}
        return [key for key in self.open if key[0] in alive]

    def times(self, process: Process | None = None) -> list[float]:
        """When requests left."""
        return sorted(at for _, at, _, sender in self.sends if process in (None, sender))

    def _ask(self, process: Process, name: str) -> None:
        if self.to_do > 0:
            self.to_do -= 1
            self.open[process.id, process.submit(name)] = name

    def _sent(self, process: Process, ticket: int) -> None:
        name = self.open[process.id, ticket]
        latency = self.latency()
        self.sends.append((name, self.world.now, self.world.now + latency, process))

        def answered() -> None:
            settled = process.host.settle(process.ns, ticket, **self.outcome())
            assert settled.outcome in ("over", "again")
            if settled.outcome == "over":
                del self.open[process.id, ticket]
                self._ask(process, name)

        self.world.after(latency, process, answered)

    def most_at_once(self) -> int:
        """Requests that the server had at the same time. Those of the dead are cut off with them."""
        edges = sorted([(at, 1) for _, at, _, _ in self.sends] + [(end, -1) for _, _, end, _ in self.sends])
        most = now = 0
        for _, step in sorted(edges):
            now += step
            most = max(most, now)
        return most


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_breaks_a_gap_slots_or_a_quota(seed: int) -> None:
    for name in ("gap", "slots", "quota"):
        world = World(seed)
        world.faults.more = world.dice.random() * 20
        crowd = Crowd(world, 2 + seed % 5, latency=lambda w=world: 30 + w.dice.random() * 400)  # type: ignore[misc]
        crowd.begin(name, 40)
        world.run(30_000)
        assert crowd.unfinished == []
        assert len(crowd.sends) == 40
        times = crowd.times()
        if name == "gap":
            assert min(gaps(times)) >= 149 - world.way
        elif name == "slots":
            assert crowd.most_at_once() <= 3
        else:
            assert all(later - first > 2999 for first, later in zip(times, times[12:], strict=False))
        stats = world.writer.host.stats(world.writer.ns)
        assert (stats.waiting, stats.in_flight, stats.age) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_machine_that_slept_with_all_of_them_gives_no_slot_twice(seed: int) -> None:
    world = World(seed)
    # What is in flight when all are stopped is answered after they go on.
    scopes = {"slots": {"concurrency": 1}}
    crowd = Crowd(world, 3, latency=lambda: 400, scopes=scopes)
    crowd.begin("slots", 60)
    for sleep in range(3):
        world.run(3000 + 173 * seed + 61 * sleep)
        for process in crowd.processes:
            process.stop(4500)
        # What the server has, it has until they go on.
        now = world.now
        crowd.sends = [
            (name, at, max(end, now + 4500) if end > now else end, sender)
            for name, at, end, sender in crowd.sends
        ]
        world.run(4500)
    world.run(40_000)
    assert crowd.unfinished == []
    assert len(crowd.sends) == 60
    assert crowd.most_at_once() == 1


def pair(offline: Any = "wait", **options: Any) -> tuple[World, Process, Process]:
    """Two processes; the first writes."""
    world = World(1)
    first, second = (Process(world, name, {**OPTIONS, **options}, offline) for name in ("one", "two"))
    first.submit("gap")
    world.run(1000)
    second.submit("slots")
    world.run(1000)
    assert world.writer is first
    return world, first, second


def test_settings_and_holds_count_for_all() -> None:
    world, first, second = pair()
    second.host.configure(second.ns, second.host.intern("gap"), {"delay": 700})
    second.host.hold(second.ns, second.host.intern("slots"), 3_000_000_000)
    world.run(600)
    assert first.host.scope_stats(first.ns, first.host.intern("gap")).delay == 700_000_000
    left: list[float] = []
    first.work = lambda _: left.append(world.now)
    begin = world.now
    first.submit("slots")
    world.run(5000)
    assert 2300 < left[0] - begin < 2500
    # The next writer knows it as well.
    first.kill()
    world.run(4000)
    assert second.host.scope_stats(second.ns, second.host.intern("gap")).delay == 700_000_000
    with pytest.raises(ConfigError, match="delay"):
        second.host.configure(second.ns, second.host.intern("gap"), {"delay": "soon"})


def test_a_refusal_comes_back_to_whoever_asked() -> None:
    world, _, second = pair()
    ticket = second.submit("quota", cost=13)
    world.run(1000)
    assert [(each, type(error)) for each, error in second.failed] == [(ticket, CostExceedsQuotaError)]
    assert second.host.waiting == 0


def test_a_member_tells_what_the_writer_knows() -> None:
    world, first, second = pair()
    first.submit("gap")
    for _ in range(5):
        second.submit("gap")
    world.run(200)
    theirs, ours = second.host.stats(second.ns), first.host.stats(first.ns)
    assert ours.age == 0
    assert theirs.age is not None
    assert 0 <= theirs.age <= 600_000_000
    assert set(theirs.scopes) == set(ours.scopes)
    first.host.hold(first.ns, first.host.intern("gap"), 5_000_000_000)
    world.run(1000)
    peek = second.host.peek(second.ns, [second.host.intern("gap")])
    assert peek.reason == "hold"
    assert peek.at is not None
    assert 3_900_000_000 < peek.at - second.ns < 4_100_000_000
    assert set(second.host.snapshot(second.ns, 0)["scopes"]) <= set(ours.scopes)


def test_offline_divides_waits_or_fails() -> None:
    for offline in ("divide", "wait", "fail"):
        world, first, second = pair(offline)
        left: list[float] = []
        second.work = lambda _: left.append(world.now)  # noqa: B023
        first.kill()
        second.cut(20_000)
        begin = world.now
        for _ in range(4):
            second.submit("gap")
        world.run(12_000)
        assert second.warnings == ["shared-offline"], offline
        if offline == "divide":
            # Two there were: half the pace.
            assert len(left) == 4
            assert min(gaps(left)) >= 299
        else:
            assert left == []
        assert [type(error) for _, error in second.failed] == ([SharedError] * 4 if offline == "fail" else [])
        if offline == "wait":
            world.run(13_000)
            assert len(left) == 4
            assert left[0] - begin > 20_000
            assert second.warnings == ["shared-offline", "shared-online"]


def test_other_options_are_told_and_the_writers_count() -> None:
    world = World(1)
    first = Process(world, "one", OPTIONS)
    second = Process(world, "two", {**OPTIONS, "concurrency": 7})
    first.submit("gap")
    world.run(500)
    second.submit("gap")
    world.run(1000)
    assert "shared-options" in second.warnings


def test_a_process_that_leaves_is_followed_at_once() -> None:
    world, first, second = pair()
    left: list[float] = []
    second.work = lambda _: left.append(world.now)
    first.host.leave()
    begin = world.now
    second.submit("gap")
    world.run(3000)
    assert world.writer is second
    assert left[0] - begin < 500


def test_answers_are_told_to_whoever_asked_and_changes_to_all() -> None:
    world, first, second = pair(defaults={**OPTIONS["defaults"], "backoff": {"jitter": False}})
    for process in (first, second):
        process.host.watch("answers")
        process.host.take_notices()
    world.run(100)
    ticket = second.submit("told")
    world.run(300)
    second.host.settle(second.ns, ticket, status=503, latency=50_000_000)
    world.run(300)
    theirs, ours = first.host.take_notices(), second.host.take_notices()
    assert {notice.kind for notice in theirs} == {"backoff", "delay"}
    assert {notice.kind for notice in ours} == {"backoff", "delay", "answer"}
    answer = next(notice for notice in ours if notice.kind == "answer")
    assert (answer.scope, answer.is_bad, answer.latency) == ("told", True, 50_000_000)


def test_a_hold_is_told_in_each_ones_own_time() -> None:
    world, first, second = pair()
    for process in (first, second):
        process.host.watch("changes")
        process.host.take_notices()
    world.run(100)
    ticket = second.submit("told")
    world.run(300)
    second.host.settle(second.ns, ticket, status=429, headers={"Retry-After": "4"})
    world.run(300)
    for process in (first, second):
        hold = next(notice for notice in process.host.take_notices() if notice.kind == "hold")
        assert hold.hold_until is not None
        # Whole seconds: the engine adds one, for many servers cut the rest off.
        assert 4_600_000_000 < hold.hold_until - process.ns < 4_800_000_000
        stats = process.host.scope_stats(process.ns, process.host.intern("told"))
        assert stats.hold_until is not None
        assert 4_600_000_000 < stats.hold_until - process.ns < 4_800_000_000


def test_a_snapshot_is_what_the_first_writer_goes_on_from() -> None:
    engine = Engine(OPTIONS)
    engine.hold(0, engine.scope("gap"), 60_000_000_000)
    world = World(1)
    process = Process(world, "one", OPTIONS)
    wall = round(process.wall() * 1e6)
    process.host.restore(engine.snapshot(0, wall - 20_000_000_000), process.ns, wall)
    left: list[float] = []
    process.work = lambda _: left.append(world.now)
    process.submit("gap")
    world.run(60_000)
    assert 38_000 < left[0] < 42_000
    with pytest.raises(SnapshotError):
        process.host.restore({"version": 99}, process.ns)


def test_names_that_nobody_holds_are_forgotten() -> None:
    world, first, _ = pair()
    held = first.host.scope("held")
    for number in range(20_100):
        first.host.intern(f"host {number}")
    assert first.host.scopes <= 20_001
    assert first.host.name(held) == "held"
    assert first.host.find("held") == held
    assert not first.host.keep_alive(first.host.intern("host 5") + 10**6)
    first.host.release(held)
    left: list[float] = []
    first.work = lambda _: left.append(world.now)
    first.submit("host 20099")
    world.run(1000)
    assert len(left) == 1
    with pytest.raises(ValueError, match="no scope"):
        first.host.submit(first.ns, [10**9])
    with pytest.raises(ValueError, match="finite"):
        first.host.submit(first.ns, [first.host.intern("a")], cost=float("nan"))


def test_what_is_no_frame_is_dropped_and_told() -> None:
    world, first, second = pair()
    assert second.peer is not None
    for frame in (b"", b"{", b"[]" * 1000, bytes(range(256))):
        second.peer.received(frame)
    world.run(1000)
    assert set(second.warnings) <= {"shared-message", "shared-version"}
    assert second.warnings
    left: list[float] = []
    second.work = lambda _: left.append(world.now)
    second.submit("gap")
    world.run(1000)
    assert len(left) == 1
    assert world.writer is first


def test_stats_say_who_decides() -> None:
    world, first, second = pair()
    world.run(2000)
    ours, theirs = (process.host.stats(process.ns).shared for process in (first, second))
    assert ours is not None
    assert theirs is not None
    assert (ours.is_writer, theirs.is_writer) == (True, False)
    assert ours.writer == theirs.writer == first.id
    assert (ours.epoch, ours.members, theirs.members) == (1, 2, 2)
    assert theirs.round_trip is not None
    assert theirs.last_heard_at is not None
    first.kill()
    second.cut(20_000)
    world.run(12_000)
    offline = second.host.stats(second.ns).shared
    assert offline is not None
    assert offline.offline_since is not None

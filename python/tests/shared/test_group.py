"""Groups of processes in virtual time, by this package's host: what it hands over, and what it gives back.

Promises that hold under any fault are the machine's, and are played in Rust (``crates/shared/tests``): loss,
kills, clocks.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from autothrottle import Throttle
from autothrottle._native import Engine
from autothrottle.errors import (
    ConfigError,
    CostExceedsQuotaError,
    ScopeDownError,
    SharedError,
    SnapshotError,
)
from autothrottle.testing import settled

from .world import Event, Process, World

OPTIONS: dict[str, Any] = {
    "seed": 1,
    "defaults": {"delay": 0, "slotDelay": 0, "jitter": False, "concurrency": 100},
    "scopes": {
        "gap": {"delay": 150},
        "slots": {"concurrency": 3},
        "quota": {"quota": 12, "window": 3000, "strict": True},
    },
}


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


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
    scopes = {**OPTIONS["scopes"], "budget": {"quota": 12, "window": 3000}}
    for offline in (None, "divide", "wait", "fail"):
        world, first, second = pair(offline, scopes=scopes)
        left: list[float] = []
        second.work = lambda _: left.append(world.now)  # noqa: B023
        first.kill()
        second.cut(20_000)
        begin = world.now
        for _ in range(4):
            second.submit("gap")
        world.run(12_000)
        assert second.warnings == ["group-offline"], offline
        if offline in (None, "divide"):
            # Two there were: half the pace.
            assert len(left) == 4
            assert min(gaps(left)) >= 299
            # By default a quota is not divided.
            second.submit("budget")
            world.run(1000)
            assert len(left) == (4 if offline is None else 5)
        else:
            assert left == []
        assert [type(error) for _, error in second.failed] == ([SharedError] * 4 if offline == "fail" else [])
        if offline == "wait":
            world.run(13_000)
            assert len(left) == 4
            assert left[0] - begin > 20_000
            assert second.warnings == ["group-offline", "group-online"]


def test_a_process_that_is_told_how_many_there_are_goes_on_alone() -> None:
    for members in (None, 2):
        world = World(5)
        process = Process(world, "one", OPTIONS, "divide", members)
        process.cut(30_000)
        left: list[float] = []
        process.work = lambda _: left.append(world.now)  # noqa: B023
        for _ in range(4):
            process.submit("gap")
        world.run(10_000)
        assert process.warnings == ["group-offline"]
        assert len(left) == (0 if members is None else 4)


def test_other_options_are_told_and_the_writers_count() -> None:
    world = World(1)
    first = Process(world, "one", OPTIONS)
    second = Process(world, "two", {**OPTIONS, "maxInFlight": 7})
    first.submit("gap")
    world.run(500)
    second.submit("gap")
    world.run(1000)
    assert "group-options" in second.warnings


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


def test_bytes_that_are_no_frame_are_dropped_and_told() -> None:
    world, first, second = pair()
    assert second.peer is not None
    for frame in (b"", b"{", b"[]" * 1000, bytes(range(256))):
        second.peer.received(frame)
    world.run(1000)
    assert set(second.warnings) <= {"group-bad-message", "group-version"}
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


# A scope of a group that is down: each process hears so by the error that a throttle of its own raises.


def test_a_scope_that_is_down_is_an_error_of_its_type() -> None:
    world, _, second = pair(downAfter=2000)

    def fails(ticket: int) -> None:
        second.host.settle(second.ns, ticket, failure="connection")

    second.work = fails
    for _ in range(10):
        second.submit("dead")
        second.submit("dead")  # one is a probe, the other one cannot leave
        world.run(70_000)
    assert {type(error) for _, error in second.failed} == {ScopeDownError}


def test_a_cut_hold_and_a_stall_are_told_to_the_processes() -> None:
    world, first, second = pair(stallAfter=5000)

    def refused(ticket: int) -> None:
        second.host.settle(second.ns, ticket, status=429, headers={"retry-after": "100000"}, wall=0)

    second.work = refused
    second.submit("slots")
    world.run(2000)
    told = [(each.kind, each.scope) for each in second.host.take_notices() + first.host.take_notices()]
    assert ("wait-capped", "slots") in told

    def fails(ticket: int) -> None:
        second.host.settle(second.ns, ticket, status=503)

    second.work = fails
    for _ in range(6):
        second.submit("gap")
        world.run(40_000)
    notices = second.host.take_notices() + first.host.take_notices()
    assert ("stall", "gap") in {(each.kind, each.scope) for each in notices}


# A request that leaves later than it was granted, in a group: the next one waits its gap from there.


@pytest.mark.parametrize("is_writer", [False, True], ids=["a member", "the writer"])
def test_a_request_that_leaves_late_makes_the_next_one_wait_its_gap_from_there(is_writer: bool) -> None:
    world, *both = pair()
    late, other = both if is_writer else reversed(both)
    left: list[float] = []

    def slowly(ticket: int) -> None:
        """Its first connection: the request is on its way only then."""

        def leave() -> None:
            assert late.host.is_awaited
            late.host.sent_at(late.ns, ticket)
            left.append(world.now)

        world.after(40, late, leave)

    late.work = slowly
    other.work = lambda _: left.append(world.now)
    for process, ms in ((other, 0), (late, 10), (other, 20), (other, 30)):
        world.after(ms, process, partial(process.submit, "gap"))
    world.run(1000)
    assert gaps(left) == [pytest.approx(gap, abs=3) for gap in (190, 150, 150)]


class ClockOf:
    """The clock of a process, as a throttle has it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def now(self) -> int:
        return self._process.ns

    def wall(self) -> int:
        return round(self._process.wall() * 1e6)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Event:
        return self._process.call_later(seconds * 1000, callback)

    def wait(self, condition: Any, seconds: float | None) -> None:
        raise NotImplementedError


async def test_a_throttle_whose_function_begins_late_tells_its_group() -> None:
    world, writer, member = pair()
    left: list[float] = []
    shared: Any = SimpleNamespace(open_host=lambda *_: member.host)
    throttle = Throttle(clock=ClockOf(member), shared=shared)

    async def connects() -> None:
        world.now += 40
        left.append(world.now)
        await asyncio.sleep(0)

    writer.work = lambda _: left.append(world.now)
    writer.submit("gap")
    task = asyncio.ensure_future(throttle.run(None, connects, scopes="gap"))
    await settled()
    for ms in (20, 30):
        world.after(ms, writer, partial(writer.submit, "gap"))
    for _ in range(800):
        world.run(1)
        await settled()
    await task
    assert gaps(left) == [pytest.approx(gap, abs=3) for gap in (190, 150, 150)]


def test_a_budget_that_is_used_up_holds_no_other_in_any_process() -> None:
    world, first, second = pair()

    def ends(process: Process, path: str, name: str, left: int) -> Callable[[int], None]:
        fields = {"x-ratelimit-remaining": str(left), "x-ratelimit-reset": "60", "x-ratelimit-resource": name}

        def work(ticket: int) -> None:
            sent.append(path)
            process.host.route(process.ns, ticket, "GET", f"https://site{path}")
            process.host.settle(process.ns, ticket, status=200, headers=fields)

        return work

    def asks(process: Process, path: str, name: str, left: int) -> None:
        process.work = ends(process, path, name, left)
        ticket = process.submit("site")
        process.host.route(process.ns, ticket, "GET", f"https://site{path}")
        world.run(1000)

    sent: list[str] = []
    asks(first, "/user", "core", 4000)
    asks(second, "/search/code", "search", 0)
    for process in (first, second):
        asks(process, "/user", "core", 3000)
    assert sent == ["/user", "/search/code", "/user", "/user"]
    for process in (first, second):
        asks(process, "/search/code", "search", 9)
    assert len(sent) == 4, "search waits in each"
    world.run(62_000)
    assert len(sent) == 6

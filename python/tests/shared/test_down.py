"""A scope of a group that is down: each process hears so by the error that a throttle of its own raises."""

from __future__ import annotations

from autothrottle.errors import ScopeDownError

from .test_group import pair


def test_a_scope_that_is_down_is_an_error_of_its_type() -> None:
    world, _, second = pair(downAfter=2000)

    def fails(ticket: int) -> None:
        second.host.settle(second.ns, ticket, failure="connection")

    second.work = fails
    for _ in range(10):
        second.submit("dead")
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
    assert ("hold-cut", "slots") in told

    def fails(ticket: int) -> None:
        second.host.settle(second.ns, ticket, status=503)

    second.work = fails
    for _ in range(6):
        second.submit("gap")
        world.run(40_000)
    notices = second.host.take_notices() + first.host.take_notices()
    assert ("stall", "gap") in {(each.kind, each.scope) for each in notices}

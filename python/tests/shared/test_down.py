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

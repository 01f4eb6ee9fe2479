"""``down_after`` of a scope: a host that is away keeps no request of a crawl waiting."""

from __future__ import annotations

from harness import Bench, virtual

from autothrottle.errors import ScopeDownError


@virtual
async def test_what_waits_fails_when_the_host_is_down() -> None:
    defaults = {"down_after": 10, "concurrency": 1, "delay": 1, "slot_delay": 0, "jitter": False}
    bench = Bench({"THROTTLING_DEFAULTS": defaults, "THROTTLING_SCOPES": {"well.example": {"delay": 60}}})
    answer = bench.server.answer
    bench.server.answer = lambda request: (
        ConnectionRefusedError("away") if "api.example" in request.url else answer(request)
    )
    away = [bench.get(f"https://api.example/{page}") for page in range(30)]
    well = [bench.get(f"https://well.example/{page}") for page in range(3)]
    await bench.clock.advance(60)
    errors = [type(each.exception()) if each.done() else None for each in away]
    sent = errors.index(ScopeDownError)
    assert 3 <= sent <= 6
    assert errors == [ConnectionRefusedError] * sent + [ScopeDownError] * (30 - sent)
    # The others wait for their turn as before.
    assert [each.done() for each in well] == [True, True, False]

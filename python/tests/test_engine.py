"""The engine in Python: every call once, every error."""

from __future__ import annotations

import math
import pickle
import re
import threading
from typing import Any

import pytest

from autothrottle._native import Engine, check_driver_options, nearest_name, parse_hints, parse_robots
from autothrottle._state import Hints
from autothrottle.errors import ConfigError, CostExceedsQuotaError, QueueFullError

S = 1_000_000_000
MS = 1_000_000
PLAIN = {"defaults": {"delay": 1000, "jitter": False}}


def test_one_request_after_the_other() -> None:
    engine = Engine(PLAIN)
    scope = engine.scope("example.com")
    first, second = engine.submit(0, [scope]), engine.submit(0, [scope])
    decision = engine.poll(0)
    assert decision.send == [first]
    assert decision.wake is None
    assert decision.reason == "concurrency"
    assert decision.scope == scope
    assert engine.settle(S // 10, first, status=200, latency=S // 10) == ("over", None)
    assert engine.poll(S // 10) == ([], S, "delay", scope)
    assert engine.poll(S) == ([second], None, None, None)
    assert (engine.waiting, engine.in_flight, engine.scopes) == (0, 1, 1)


def test_all_problems_at_once_with_their_paths() -> None:
    with pytest.raises(ConfigError) as caught:
        Engine(
            {"defaults": {"delay": -1, "jitter": math.inf, "backoff": print}, "scopes": {"a": {"dely": 1}}}
        )
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["defaults.delay", "defaults.jitter", "defaults.backoff", "scopes.a.dely"]
    assert caught.value.problems[1].got == "Infinity"
    assert caught.value.problems[2].got == "a function"
    assert caught.value.path == "defaults.delay"
    assert "delay" in caught.value.problems[3].want
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    circle: dict[str, object] = {}
    circle["defaults"] = circle
    with pytest.raises(ConfigError):
        Engine(circle)


def test_hints_are_heard_and_fields_cannot_be_forged() -> None:
    engine = Engine(PLAIN)
    scope = engine.scope("a")
    ticket = engine.submit(0, [scope])
    engine.poll(0)
    headers = {"X-Any": "1\r\nRetry-After: 9000", "Retry-After": "60"}
    assert engine.settle(0, ticket, status=429, headers=headers).asked == 60 * S
    forged = [(b"retry-after: 9000\nx", b"1")]
    assert parse_hints(forged).delay is None


def test_quotas_and_what_is_refused() -> None:
    engine = Engine({"maxWaiting": 1, "scopes": {"a": {"quota": {"limit": 10, "window": 60000}}}})
    scope = engine.scope("a")
    with pytest.raises(CostExceedsQuotaError) as caught:
        engine.submit(0, [scope], cost=11)
    assert (caught.value.scope, caught.value.path) == ("a", "scopes.a.quota")
    engine.submit(0, [scope], cost=[3])
    with pytest.raises(QueueFullError):
        engine.submit(0, [scope])
    assert engine.poll(0).send
    assert engine.scope_stats(0, scope).quota_left == 7
    for wrong in (math.nan, -1, math.inf):
        with pytest.raises(ValueError, match="finite"):
            engine.submit(0, [scope], cost=wrong)
    with pytest.raises(ValueError, match="no scope"):
        engine.submit(0, [])
    with pytest.raises(ValueError, match="no scope"):
        engine.peek(0, [])
    with pytest.raises(ValueError, match="no scope"):
        engine.scope_stats(0, 99)
    with pytest.raises(TypeError):
        engine.submit(0.5, [scope])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="from 0"):
        engine.poll(-1)
    with pytest.raises(ValueError, match="from 0"):
        engine.poll(2**64)


def test_handles() -> None:
    engine = Engine()
    scope = engine.intern("a")
    assert (engine.find("a"), engine.find("b"), engine.name(scope), engine.name(2**63)) == (
        scope,
        None,
        "a",
        None,
    )
    assert engine.keep_alive(scope)
    assert not engine.keep_alive(2**52)
    engine.release(engine.scope("a"))
    assert engine.name(engine.scope("a\nb\u2028ü\ud800")) == "a\nb\u2028ü?"


def test_notices() -> None:
    engine = Engine({**PLAIN, "defaults": {**PLAIN["defaults"], "backoff": {}}})
    engine.watch("answers")
    scope = engine.scope("a")
    ticket = engine.submit(0, [scope])
    engine.poll(0)
    before = engine.has_notices
    engine.settle(0, ticket, status=503)
    assert (before, engine.has_notices) == (False, True)
    notices = engine.take_notices()
    assert [notice.kind for notice in notices] == ["backoff", "delay", "answer"]
    assert notices[2].is_bad
    assert notices[2].delay_before == S
    assert notices[0].step == 1
    assert engine.take_notices() == []
    with pytest.raises(ValueError, match="level"):
        engine.watch("much")  # type: ignore[arg-type]


def test_reading() -> None:
    hints = parse_hints({"RateLimit-Limit": "100", "ratelimit-remaining": "0", "ratelimit-reset": "7"})
    assert (hints.delay, hints.quotas[0].limit, hints.quotas[0].remaining) == (7 * S, 100, 0)
    own = parse_hints({"x-wait": "250"}, header_map={"retryAfter": "X-Wait", "retryAfterUnit": "ms"})
    assert own.delay == S // 4
    assert parse_robots("User-agent: *\nCrawl-delay: 2.5", "me/1.0") == 5 * S // 2
    assert parse_robots(b"", "me") is None
    assert nearest_name("dellay", ["rate", "delay"]) == "delay"
    assert nearest_name("zebra", ["rate", "delay"]) is None
    with pytest.raises(ConfigError):
        check_driver_options({"requestTimeout": "x"})
    check_driver_options({"onEvent": print} if False else {})


def test_closed() -> None:
    with Engine() as engine:
        engine.scope("a")
    with pytest.raises(ValueError, match="closed"):
        engine.scope("a")
    with pytest.raises(ValueError, match="closed"):
        engine.poll(0)
    engine.close()


def test_an_outcome_may_be_read_by_another_engine() -> None:
    """Options that both have; what one reads the other takes, and does as if it had read it itself."""
    options = {"defaults": {"delay": 100, "slotDelay": 0, "jitter": False, "backoff": {"jitter": False}}}
    outcomes: list[dict[str, Any]] = [
        {"status": 200, "latency": 50 * MS},
        {"status": 503, "latency": 50 * MS, "retry": True},
        {"status": 429, "headers": {"Retry-After": "7"}},
        {"status": 429, "headers": {"Retry-After": "2"}, "retry": True},
        {"failure": "timeout", "retry_delay": 300 * MS},
        {"status": 200, "hints": Hints(remaining=1, reset=5000 * MS)},
        {},
    ]
    for outcome in outcomes:
        here, there, reader = Engine(options), Engine(options), Engine(options)
        tickets = [engine.submit(0, [engine.scope("a")]) for engine in (here, there)]
        assert [engine.poll(0).send for engine in (here, there)] == [[tickets[0]], [tickets[1]]]
        settled = here.settle(60 * MS, tickets[0], **outcome)
        digested, told = reader.digest(**outcome)
        assert digested == settled
        assert there.settle_digest(60 * MS, tickets[1], told) == settled.outcome
        assert there.stats(60 * MS) == here.stats(60 * MS)
        assert there.poll(60 * MS) == here.poll(60 * MS)
        assert there.settle_digest(70 * MS, 99, told) == "unknown"
        assert there.settle_digest(70 * MS, tickets[1], []) == "unknown"


def test_threads_may_share_one() -> None:
    engine = Engine({"defaults": {"concurrency": 8, "delay": 0, "slotDelay": 0}, "maxInFlight": 8})
    scope = engine.scope("a")

    def work() -> None:
        for _ in range(500):
            ticket = engine.send_at_once(0, [scope])
            assert ticket is not None
            engine.settle(0, ticket, status=200, headers={"RateLimit-Remaining": "5"})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = engine.stats(0)
    assert (stats.sent, stats.settled, stats.in_flight) == (2000, 2000, 0)


def test_a_wrong_argument_is_told_with_its_name() -> None:
    engine = Engine()
    scope = engine.scope("a")
    for wrong, message in (
        ({"status": "x"}, "status: want a whole number; got 'x'"),
        ({"latency": -1}, "latency: want a whole number from 0; got -1"),
        ({"failure": "x"}, "failure: want 'connection' or 'timeout'; got 'x'"),
        ({"cost": True}, "cost: want a number; got True"),
        ({"headers": [("a",)]}, "headers: want (name, value); got ('a',)"),
        ({"headers": {"retry-after": object}}, "headers: want text; got <class 'object'>"),
        ({"hints": Hints(remaining="x")}, "remaining: want a number; got 'x'"),  # type: ignore[arg-type]
        ({"stats": 200}, "settle: no argument has the name stats"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            engine.settle(0, 0, **wrong)
    with pytest.raises(TypeError, match="cost: want a number; got 'x'"):
        engine.submit(0, [scope], cost="x")  # type: ignore[arg-type]
    assert engine.stats(0).settled == 0

"""AUTOTHROTTLE_* in place of Scrapy's extension: steps of its own code, and what its own tests ask."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from harness import Bench, settle, virtual
from scrapy import Request, signals
from scrapy.http import Response

from autothrottle._native import Engine
from autothrottle.scrapy._options import read_options

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "autothrottle_vectors.jsonl"
ON = {"AUTOTHROTTLE_ENABLED": True, "RANDOMIZE_DOWNLOAD_DELAY": False}


def test_scrapys_own_steps() -> None:
    from scrapy.settings import Settings

    steps = 0
    for line in VECTORS.read_text().splitlines()[1:]:
        vector = json.loads(line)
        # A tenth through Python's border, which is slow; all of them natively and in TypeScript.
        if vector["id"] % 10:
            continue
        made = Settings()
        made.update({**ON, "BACKOFF_HTTP_CODES": [], **vector["settings"]}, "project")
        slot = vector.get("slot") or {}
        if "delay" in slot:
            made.set("DOWNLOAD_SLOTS", {"x": {"delay": slot["delay"]}}, "project")
        engine = Engine(read_options(made).engine, seed=1)
        scope = engine.scope("x")
        now = 0
        if "delay" not in slot:
            assert engine.scope_stats(now, scope).delay / 1e9 == pytest.approx(vector["start"], rel=1e-6)
        elif engine.scope_stats(now, scope).delay / 1e9 != pytest.approx(vector["start"], rel=1e-6):
            continue  # A slot cannot begin below DOWNLOAD_DELAY here: the least holds from the beginning.
        for (latency, status, dont_adjust), delay in zip(vector["steps"], vector["delays"], strict=True):
            ticket = engine.submit(now, [scope])
            decision = engine.poll(now)
            if not decision.send:
                assert decision.wake is not None
                now = decision.wake
                decision = engine.poll(now)
            assert decision.send == [ticket]
            engine.settle(
                now,
                ticket,
                status=status,
                latency=None if latency is None else round(latency * 1e9),
                adjust_delay=dont_adjust is not True,
            )
            # Nanoseconds on the way in and microseconds inside: a millionth, or two of the least.
            assert engine.scope_stats(now, scope).delay / 1e9 == pytest.approx(delay, rel=1e-6, abs=2e-6)
            steps += 1
    assert steps >= 1000


@pytest.mark.parametrize(("dont", "expected"), [(True, 1.0), (False, 2.0)])
@virtual
async def test_a_request_that_must_not_adjust_it(dont: bool, expected: float) -> None:
    bench = Bench({**ON, "DOWNLOAD_SLOTS": {"a.example": {"delay": 1.0}}})
    bench.server.latency = 2.0
    bench.get("https://a.example/", meta={"autothrottle_dont_adjust_delay": dont})
    await bench.clock.advance(2)
    assert bench.slot("a.example").delay == expected


@pytest.mark.parametrize(
    ("least", "start", "expected"),
    [
        (None, None, 5.0),
        (4.0, None, 5.0),
        (6.0, None, 6.0),
        (None, 4.0, 4.0),
        (7.0, 6.0, 7.0),
        (6.0, 7.0, 7.0),
    ],
)
@virtual
async def test_where_a_slot_begins(least: float | None, start: float | None, expected: float) -> None:
    settings = {"DOWNLOAD_DELAY": least, "AUTOTHROTTLE_START_DELAY": start}
    bench = Bench(ON | {name: value for name, value in settings.items() if value is not None})
    assert bench.downloader._get_slot(Request("https://a.example/"))[1].delay == expected


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_target_that_makes_no_sense(value: float) -> None:
    with pytest.raises(ValueError, match="AUTOTHROTTLE_TARGET_CONCURRENCY: want a number above 0; got"):
        Bench({**ON, "AUTOTHROTTLE_TARGET_CONCURRENCY": value})


@virtual
async def test_debug_prints_autothrottles_line(caplog: Any) -> None:
    settings = {"AUTOTHROTTLE_DEBUG": True, "DOWNLOAD_SLOTS": {"foo": {"delay": 2.0}}}
    bench = Bench(ON | settings)
    bench.server.latency = 1.0
    bench.server.answer = lambda request: Response(request.url, body=b"foo", request=request)
    with caplog.at_level(logging.INFO):
        bench.get("https://a.example/", meta={"download_slot": "foo"})
        await bench.clock.advance(1)
    lines = [each.getMessage() for each in caplog.records if each.name == "autothrottle.scrapy"]
    assert lines == ["slot: foo | conc: 1 | delay: 1500 ms (-500) | latency: 1000 ms | size:     3 bytes"]


@virtual
async def test_scrapys_extension_does_not_run_beside_it() -> None:
    extension = {"EXTENSIONS": {"scrapy.extensions.throttle.AutoThrottle": 0}}
    bench = Bench(ON | extension | {"AUTOTHROTTLE_START_DELAY": 0})
    hears = bench.crawler.signals.send_catch_log(signals.spider_opened, spider=bench.crawler.spider)
    assert not [each for each, _ in hears if "AutoThrottle" in repr(each)]
    bench.server.latency = 1.0
    bench.get("https://a.example/")
    await bench.clock.advance(1)
    assert bench.slot("a.example").delay == 1
    await settle()

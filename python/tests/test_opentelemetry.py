"""The metrics and spans of OpenTelemetry: waits by reason and scope, requests by status, spans under the
caller's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from autothrottle import ThreadThrottle, Throttle
from autothrottle.errors import ThrottleTimeoutError
from autothrottle.testing import FakeClock

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric, Sum
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from autothrottle.opentelemetry import instrument


class Exported:
    """Providers that keep what they get."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.meter = MeterProvider(metric_readers=[self.reader]).get_meter("test")
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = provider.get_tracer("test")

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """Attributes and sums of an instrument."""
        data = self.reader.get_metrics_data()
        found = []
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        for point in metric.data.data_points:
                            value = point.sum if hasattr(point, "sum") else point.value
                            found.append((dict(point.attributes or {}), value))
        return found


async def _ask(throttle: Throttle, status: int = 200) -> None:
    async with throttle.acquire("https://api.example/") as permit:
        permit.settle(status=status)


async def test_waits_are_told_by_scope_and_reason() -> None:
    exported, clock = Exported(), FakeClock()
    throttle = Throttle(clock=clock, jitter=False, delay=2)
    end = instrument(throttle, meter=exported.meter, tracer=exported.tracer, attributes={"app": "a"})
    with exported.tracer.start_as_current_span("caller"):
        tasks = [asyncio.create_task(_ask(throttle)) for _ in range(3)]
        await clock.advance(10)
    await asyncio.gather(*tasks)
    own = {"app": "a", "autothrottle.scope": "api.example"}
    waits = exported.points("autothrottle.wait.duration")
    assert sum(seconds for _, seconds in waits) == 6
    assert {**own, "autothrottle.reason": "delay"} in [attributes for attributes, _ in waits]
    assert exported.points("autothrottle.requests") == [({**own, "http.response.status_code": 200}, 3)]
    assert exported.points("autothrottle.delay") == [(own, 2.0)]
    assert exported.points("autothrottle.waiting") == [(own, 0)]
    spans = exported.spans.get_finished_spans()
    caller = next(span for span in spans if span.name == "caller")
    waited = [span for span in spans if span.name == "throttle.wait"]
    took = [((span.end_time or 0) - (span.start_time or 0)) / 1e9 for span in waited]
    assert [round(seconds) for seconds in took] == [2, 4]
    assert [span.parent for span in waited] == [caller.context, caller.context]
    end()
    await _ask(throttle)
    assert len(exported.spans.get_finished_spans()) == 3


async def test_a_caller_that_gives_up_ends_its_span() -> None:
    exported, clock = Exported(), FakeClock()
    throttle = Throttle(clock=clock, jitter=False, delay=60)
    instrument(throttle, meter=False, tracer=exported.tracer)
    await _ask(throttle)
    late = asyncio.create_task(throttle.acquire("https://api.example/", max_wait=5).__aenter__())
    await clock.advance(6)
    with pytest.raises(ThrottleTimeoutError):
        await late
    [span] = exported.spans.get_finished_spans()
    assert (span.name, span.status.is_ok) == ("throttle.wait", False)


async def test_waits_by_reason_and_time_at_the_server_are_the_time_of_the_calls() -> None:
    exported, clock = Exported(), FakeClock()
    defaults: Any = {"delay": 0.5, "slot_delay": 0, "concurrency": 2, "quota": {"limit": 10, "window": 60}}
    throttle = Throttle(clock=clock, defaults=defaults, backoff={})
    instrument(throttle, meter=exported.meter, tracer=False)
    wall = away = 0.0
    asked = 0

    async def server() -> httpx.Response:
        nonlocal away, asked
        asked += 1
        status, headers = (429, {"retry-after": "7"}) if asked % 8 == 0 else (200, {})
        sent = clock.seconds
        answered = asyncio.get_running_loop().create_future()
        clock.call_later(0.3 + asked % 5, lambda: answered.set_result(None))
        await answered
        away += clock.seconds - sent
        return httpx.Response(status, headers=headers)

    async def call() -> None:
        nonlocal wall
        since = clock.seconds
        answer = await throttle.run("https://api.example/", server, retry={"limit": 9})
        assert answer.status_code == 200
        wall += clock.seconds - since

    tasks = [asyncio.create_task(call()) for _ in range(60)]
    await clock.advance(3600)
    await asyncio.gather(*tasks)
    waits = exported.points("autothrottle.wait.duration")
    reasons = {attributes["autothrottle.reason"] for attributes, _ in waits}
    assert len(reasons) >= 3, reasons
    assert "unknown" not in reasons
    assert wall - away == pytest.approx(sum(seconds for _, seconds in waits), rel=0.01)


def test_no_throttle_is_an_error() -> None:
    with pytest.raises(TypeError, match="instrument wants a throttle; got 5"):
        instrument(5)  # type: ignore[arg-type]


def test_threads_are_told_of_too() -> None:
    exported = Exported()
    throttle = ThreadThrottle(delay=0)
    instrument(throttle, meter=exported.meter, tracer=False)
    with throttle.acquire("https://api.example/") as permit:
        permit.settle(status=503)
    assert exported.points("autothrottle.requests")[0][0]["http.response.status_code"] == 503


BOARD = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "autothrottle.json"


def _series(metric: Metric) -> Iterator[tuple[str, set[str]]]:
    """The series that Prometheus has of an instrument, by OpenTelemetry's rules, with their labels."""
    name = metric.name.replace(".", "_") + ("_seconds" if metric.unit == "s" else "")
    labels = {key.replace(".", "_") for point in metric.data.data_points for key in point.attributes or {}}
    if isinstance(metric.data, Histogram):
        yield from ((f"{name}{suffix}", labels | {"le"}) for suffix in ("_bucket", "_sum", "_count"))
    else:
        yield name + ("_total" if isinstance(metric.data, Sum) else ""), labels


async def test_each_query_of_the_board_reads_what_is_exported() -> None:
    exported, clock = Exported(), FakeClock()
    throttle = Throttle(clock=clock, jitter=False, delay=2)
    instrument(throttle, meter=exported.meter, tracer=False)
    tasks = [asyncio.create_task(_ask(throttle)) for _ in range(2)]
    await clock.advance(10)
    await asyncio.gather(*tasks)
    async with throttle.acquire("https://api.example/") as permit:
        permit.settle(error=OSError("gone"))
    data = exported.reader.get_metrics_data()
    assert data is not None
    scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics]
    metrics = [metric for scope in scopes for metric in scope.metrics]
    series = dict(line for metric in metrics for line in _series(metric))
    board = json.loads(BOARD.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    queries += [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    assert len(queries) >= 9
    read: set[str] = set()
    for query in queries:
        names = re.findall(r"\bautothrottle_\w+(?=[{,])", query)
        assert names, query
        for name in names:
            assert name in series, f"{name} is not exported: {query}"
            labels = re.findall(r"(\w+)=~?\"", query) + re.findall(r"by \(([\w, ]+)\)", query)
            wanted = {label.strip() for each in labels for label in each.split(",")}
            wanted |= set(re.findall(r"label_values\(\w+, (\w+)\)", query))
            assert wanted <= series[name], (wanted - series[name], query)
        read.update(name.removesuffix("_bucket").removesuffix("_sum") for name in names)
    assert read == {name.removesuffix("_bucket") for name in series if not name.endswith(("_sum", "_count"))}

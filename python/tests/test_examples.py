"""The examples run, against a server on this machine or a transport that answers by itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from autothrottle import ThreadThrottle
from autothrottle.testing import FakeClock
from helpers import server


def example(name: str) -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_crawl(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/gone":
            raise httpx.ConnectError("gone")
        return httpx.Response(429 if request.url.host == "c.example" else 200)

    urls = [f"https://{name}.example/{path}" for name, path in (("a", ""), ("b", "gone"), ("c", ""))]
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        assert sorted(await example("crawl").crawl(urls, client)) == [0, 200, 429]
    assert "c.example: every" in capsys.readouterr().out


async def test_api_client(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    module = example("api_client")
    for used in (51, 102):
        assert await module.ask("https://api.example/v1/", state, transport) == [200] * 3
        left = module.throttle_of(state).scope("api.example").stats.quota_left
        assert left == 1000 - used


def test_threads(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock, rate=5, concurrency=8)
    with server() as told:
        assert example("threads").fetch_all([told.url] * 6, throttle) == [200] * 6
    assert throttle.stats().settled == 6

"""THROTTLING_MANAGER and THROTTLING_SCOPE_MANAGER: the draft's examples, and what fails."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Bench, settle, virtual
from scrapy import Request
from scrapy.http import Response

from autothrottle.errors import ManagerError
from autothrottle.scrapy import (
    ThrottlingManager,
    ThrottlingScopeManager,
    add_scope,
    scope_cache,
    update_scope_backoff,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "scrapy"))

FREE = {
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "BACKOFF_JITTER": 0,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_DELAY_PER_SLOT": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "CONCURRENT_REQUESTS": 100,
}


def keys(manager: Any, *urls: str) -> list[str]:
    bench = Bench({**FREE, "THROTTLING_MANAGER": manager})
    return [bench.downloader.get_slot_key(Request(url)) for url in urls]


@virtual
async def test_alternative_domain_throttling() -> None:
    books, top, address = "https://books.toscrape.com", "https://toscrape.com", "https://127.0.0.1:8000/"
    assert keys("polite.throttling.RegistrableDomain", books, top, address) == [
        "toscrape.com",
        "toscrape.com",
        "127.0.0.1:8000",
    ]
    assert keys("polite.throttling.DomainHierarchy", books, top) == [
        "books.toscrape.com+toscrape.com",
        "toscrape.com",
    ]


@virtual
async def test_concurrency_of_a_domain_and_of_its_subdomains() -> None:
    scopes = {
        "toscrape.com": {"concurrency": 32},
        "books.toscrape.com": {"concurrency": 24},
        "quotes.toscrape.com": {"concurrency": 16},
    }
    manager = "polite.throttling.DomainHierarchy"
    bench = Bench({**FREE, "THROTTLING_MANAGER": manager, "THROTTLING_SCOPES": scopes})
    bench.server.latency = 10
    for index in range(30):
        bench.get(f"https://books.toscrape.com/{index}")
        bench.get(f"https://quotes.toscrape.com/{index}")
    await bench.clock.advance(1)
    sent = [url for _, url in bench.server.sent]
    assert len(sent) == 32
    assert sum("books" in url for url in sent) <= 24
    assert sum("quotes" in url for url in sent) <= 16


@virtual
async def test_endpoints() -> None:
    fast, other = "https://api.toscrape.com/fast-endpoint?1", "https://a.example/x"
    assert keys("polite.throttling.Endpoints", fast, other) == ["api.toscrape.com/fast-endpoint", "a.example"]


def steps(bench: Bench) -> dict[str, int]:
    permits: Any = bench.downloader._permits
    stats = permits.engine.stats(bench.clock.now())
    return {name: scope.backoff_step for name, scope in stats.scopes.items()}


@virtual
async def test_a_scraping_api_and_its_target() -> None:
    url = "https://api.toscrape.com/?url=https://example.com"
    of_target, of_api = (200, "503"), (429, "200")
    for manager, (status, upstream), api, target in (
        ("ScrapingApi", of_target, 1, 1),
        ("ScrapingApi", of_api, 1, 1),
        ("PatientApi", of_target, 0, 1),
        ("PatientApi", of_api, 1, 0),
    ):
        bench = Bench({**FREE, "THROTTLING_MANAGER": f"polite.throttling.{manager}"})

        def refusal(request: Request, status: int = status, upstream: str = upstream) -> Response:
            headers = {"X-Upstream-Status-Code": upstream}
            return Response(request.url, status=status, headers=headers, request=request)

        bench.server.answer = refusal
        fetched = bench.get(url)
        await settle()
        assert fetched.result().status == status
        assert steps(bench) == {"api.toscrape.com": api, "example.com": target}
        bench.server.answer = lambda request: Response(request.url, request=request)
        bench.get("https://api.toscrape.com/?url=https://a.example")
        await bench.clock.advance(5)
        assert steps(bench)["a.example"] == 0


@virtual
async def test_the_spent_cost_is_bounded_by_the_costs_that_the_api_tells() -> None:
    settings = {
        "THROTTLING_MANAGER": "polite.throttling.CostCapped",
        "THROTTLING_SCOPES": {"cost": {"quota": 10.0}},
    }
    bench = Bench({**FREE, **settings})
    bench.server.answer = lambda request: Response(
        request.url, headers={"X-Actual-Cost": "4"}, request=request
    )
    for index in range(4):
        bench.get(f"https://api.toscrape.com/?{index}")
        await settle()
    await bench.clock.advance(59)
    assert len(bench.server.sent) == 3, "4 + 4 are spent, the third was expected to cost 1 and cost 4"
    await bench.clock.advance(2)
    assert len(bench.server.sent) == 4


@virtual
async def test_a_manager_that_waits() -> None:
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asked = []

    class Slow(ThrottlingManager):
        @scope_cache
        async def get_scopes(self, request: Request) -> Any:
            asked.append(request)
            await asyncio.shield(gate)
            return {"all"}

    bench = Bench({**FREE, "THROTTLING_MANAGER": Slow})
    request = Request("https://a.example/")
    assert bench.downloader.get_slot_key(request) == "a.example", "the queue cannot wait"
    fetched = bench.fetch(request)
    await settle()
    assert not fetched.done()
    gate.set_result(None)
    await settle()
    assert fetched.result().status == 200
    assert bench.slot("a.example").names == ("all",)


class Failing(ThrottlingManager):
    async def get_scopes(self, request: Request) -> Any:
        if "scopes" in request.url:
            raise KeyError("x")
        return 7 if "seven" in request.url else await super().get_scopes(request)

    async def get_response_backoff(self, response: Response) -> Any:
        if "hook" in response.url:
            raise KeyError("x")
        return {"b.example": {}} if "other" in response.url else {"a.example": {"dealy": 1}}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("scopes", r"get_scopes.*failed for https://a.example/scopes: KeyError\('x'\)"),
        ("seven", "want a name, names, or a dict of costs; got 7"),
        ("hook", r"get_response_backoff.*failed for https://a.example/hook: KeyError"),
        ("other", "named 'b.example', which is no scope of the request"),
        ("typo", "gave dealy: 1 for a.example; want one of delay, consumed_quota"),
    ],
)
@virtual
async def test_an_exception_of_a_manager_fails_its_request_alone(path: str, message: str) -> None:
    bench = Bench({**FREE, "THROTTLING_MANAGER": Failing})
    fetched = bench.get(f"https://a.example/{path}")
    await settle()
    with pytest.raises(ManagerError, match=message):
        fetched.result()
    assert not bench.downloader.active
    permits: Any = bench.downloader._permits
    assert (permits.flying, permits.waiting, permits.engine.stats(bench.clock.now()).in_flight) == (0, 0, 0)


@virtual
async def test_a_delay_that_the_manager_reads() -> None:
    class InBody(ThrottlingManager):
        def get_response_delay(self, response: Response) -> float | None:
            return float(response.body) if response.status == 429 else None

    bench = Bench({**FREE, "THROTTLING_MANAGER": InBody})
    bench.server.answer = lambda request: Response(request.url, status=429, body=b"40", request=request)
    bench.get("https://a.example/1")
    await settle()
    bench.get("https://a.example/2")
    await bench.clock.advance(39)
    assert len(bench.server.sent) == 1
    await bench.clock.advance(2)
    assert len(bench.server.sent) == 2


@virtual
async def test_a_delay_that_is_none() -> None:
    class Wrong(ThrottlingManager):
        def get_response_delay(self, response: Response) -> Any:
            return "soon"

    bench = Bench({**FREE, "THROTTLING_MANAGER": Wrong})
    fetched = bench.get("https://a.example/")
    await settle()
    with pytest.raises(ManagerError, match="gave 'soon'; want seconds from 0, or None"):
        fetched.result()


@virtual
async def test_a_refusal_is_no_news_for_the_scopes_that_are_not_named() -> None:
    class Blames(ThrottlingManager):
        async def get_response_backoff(self, response: Response) -> Any:
            return "one"

    bench = Bench({**FREE, "THROTTLING_MANAGER": Blames})
    bench.server.answer = lambda request: Response(request.url, status=503, request=request)
    bench.get("https://a.example/", meta={"throttling_scopes": {"one", "two"}})
    await settle()
    assert steps(bench) == {"one": 1, "two": 0}


@virtual
async def test_a_manager_that_blames_one_scope_for_an_exception() -> None:
    class Blames(ThrottlingManager):
        async def get_exception_backoff(self, request: Request, exception: Exception) -> Any:
            return (
                "one"
                if isinstance(exception, KeyError)
                else await super().get_exception_backoff(request, exception)
            )

    bench = Bench({**FREE, "THROTTLING_MANAGER": Blames})
    meta = {"throttling_scopes": {"one", "two"}}
    bench.server.answer = lambda request: KeyError("x")
    bench.get("https://a.example/1", meta=meta)
    await settle()
    assert steps(bench) == {"one": 1, "two": 0}
    bench.server.answer = lambda request: TimeoutError()
    bench.get("https://a.example/1", meta=meta)
    await bench.clock.advance(5)
    assert steps(bench) == {"one": 2, "two": 1}


@virtual
async def test_a_scope_manager_of_ones_own() -> None:
    scopes = {"a.example": {"manager": "polite.throttling.Patient"}}
    bench = Bench({**FREE, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "THROTTLING_SCOPES": scopes})
    bench.server.answer = lambda request: Response(
        request.url, status=429 if "bad" in request.url else 200, request=request
    )
    for path in ("1", "bad", "2", "3"):
        bench.get(f"https://a.example/{path}")
    await bench.clock.advance(60)
    assert bench.server.times == [0, 0, 30, 30]


@virtual
async def test_a_scope_manager_for_every_scope_and_its_failure() -> None:
    made = []

    class Counting(ThrottlingScopeManager):
        def __init__(self, crawler: Any, config: Any) -> None:
            super().__init__(crawler, config)
            made.append(config)

        def on_good(self, answer: Any) -> None:
            raise KeyError("x")

    scopes = {"a.example": {"delay": 3.0}}
    bench = Bench({**FREE, "THROTTLING_SCOPE_MANAGER": Counting, "THROTTLING_SCOPES": scopes})
    fetched = [bench.get("https://a.example/"), bench.get("https://b.example/")]
    await settle()
    assert made == [{"id": "a.example", "delay": 3.0}, {"id": "b.example"}]
    for each in fetched:
        with pytest.raises(ManagerError, match=r"on_good.*failed: KeyError"):
            each.result()
    assert not bench.downloader.active


@virtual
async def test_a_failed_request_leaves_no_slot_behind_and_takes_nothing_back() -> None:
    class Failing(ThrottlingScopeManager):
        def on_send(self) -> None:
            raise KeyError("x")

    bench = Bench({**FREE, "THROTTLING_SCOPES": {"a.example": {"manager": Failing}}})
    fetched = bench.get("https://a.example/")
    await settle()
    with pytest.raises(ManagerError, match="on_send"):
        fetched.result()
    assert bench.slot("a.example").stats()[0].in_flight == 0

    class Hook(ThrottlingManager):
        async def get_response_backoff(self, response: Response) -> Any:
            raise KeyError("x")

    other = Bench({**FREE, "THROTTLING_MANAGER": Hook})
    other.server.answer = lambda request: Response(
        request.url, status=429, headers={"Retry-After": "40"}, request=request
    )
    other.get("https://a.example/")
    await settle()
    assert other.slot("a.example").stats()[0].hold_until == other.clock.now() + 41 * 10**9


@virtual
async def test_a_caller_that_gives_up_waiting_gives_its_place_back() -> None:
    bench = Bench({"THROTTLING_SCOPES": {"a.example": {"delay": 5.0, "jitter": False}}})
    bench.get("https://a.example/1")
    await settle()
    entered = asyncio.ensure_future(bench.downloader._enqueue_request(Request("https://a.example/2")))
    await settle()
    entered.cancel()
    await settle()
    assert entered.cancelled()
    stats = bench.slot("a.example").stats()[0]
    assert (stats.waiting, stats.in_flight) == (0, 0)
    bench.get("https://a.example/3")
    await bench.clock.advance(6)
    assert bench.server.times == [0, 5]


def test_helpers() -> None:
    assert add_scope(None, "a") == {"a": None}
    assert add_scope({"b", "a"}, "c", 2.0) == {"a": None, "b": None, "c": 2.0}
    assert add_scope({"a": 1.0}, "a") == {"a": 1.0}
    with pytest.raises(TypeError, match="a has a cost already"):
        add_scope({"a": 1.0}, "a", 2.0)
    assert update_scope_backoff("a", "b", delay=3.0) == {"a": {}, "b": {"delay": 3.0}}
    assert update_scope_backoff({"a": {"delay": 1.0}}, "a", consumed_quota=2.0) == {
        "a": {"delay": 1.0, "consumed_quota": 2.0}
    }
    assert update_scope_backoff(None, "a") == {"a": {}}


@virtual
async def test_a_proxy_is_a_scope_where_a_setting_says_so() -> None:
    proxy = {"proxy": "http://name:secret@Proxy.example:8000"}
    proxies = {"proxy:proxy.example:8000": {"delay": 2}}
    bench = Bench({**FREE, "THROTTLING_PROXY_SCOPES": True, "THROTTLING_SCOPES": proxies})
    bench.get("https://a.example/", meta=dict(proxy))
    bench.get("https://b.example/", meta=dict(proxy))
    bench.get("https://b.example/direct")
    await bench.clock.advance(3)
    assert bench.server.sent == [
        (0, "https://a.example/"),
        (0, "https://b.example/direct"),
        (2, "https://b.example/"),
    ]
    key = bench.downloader.get_slot_key(Request("https://a.example/", meta=dict(proxy)))
    assert key == "a.example+proxy:proxy.example:8000", "and no password"


@virtual
async def test_without_the_setting_a_proxy_is_no_scope() -> None:
    bench = Bench(FREE)
    request = Request("https://a.example/", meta={"proxy": "http://proxy.example:8000"})
    assert bench.downloader.get_slot_key(request) == "a.example"

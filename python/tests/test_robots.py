"""The option ``robots``: each host's robots.txt is asked for once, through the throttle."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from autothrottle import ConfigError, DisallowedError, RobotsOptions, ThreadThrottle, Throttle
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.robots import rules
from autothrottle.testing import FakeClock

PAGE = "https://a.example/page"
ROBOTS: RobotsOptions = {"user_agent": "foobot"}
TEXT = "User-agent: foobot\nCrawl-delay: 2\nDisallow: /private\n"


class Site:
    """Hosts whose robots.txt are answers in turn, the last one for ever."""

    def __init__(self, clock: FakeClock, *answers: httpx.Response | Exception) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.asked: list[tuple[float, str]] = []
        self.agents: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((self.clock.seconds, str(request.url)))
        if request.url.path != "/robots.txt":
            return httpx.Response(200)
        self.agents.append(request.headers["User-Agent"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def files(self) -> list[str]:
        return [url for _, url in self.asked if "robots" in url]


def client_of(clock: FakeClock, site: Site, robots: Any = ROBOTS) -> httpx.AsyncClient:
    throttle = Throttle(clock=clock, jitter=False, backoff=False, robots=robots)
    return httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, httpx.MockTransport(site)))


async def over(clock: FakeClock, *work: Any, seconds: float = 100) -> list[Any]:
    tasks = asyncio.gather(*work, return_exceptions=True)
    await clock.advance(seconds)
    return await tasks


async def test_a_host_is_asked_once_and_its_pace_is_kept(clock: FakeClock) -> None:
    site = Site(clock, httpx.Response(200, text=TEXT))
    client = client_of(clock, site)
    await over(clock, *(client.get(PAGE) for _ in range(4)))
    assert site.files == ["https://a.example/robots.txt"]
    assert site.agents == ["foobot"]
    pages = [at for at, url in site.asked if url == PAGE]
    gaps = [later - earlier for earlier, later in itertools.pairwise(pages)]
    assert gaps == [2, 2, 2], "Crawl-delay in place of the second of the default"
    await over(clock, client.get("https://b.example/"))
    assert site.files[1:] == ["https://b.example/robots.txt"]


async def test_rules_decide_which_pages(clock: FakeClock) -> None:
    site = Site(clock, httpx.Response(200, text=TEXT))
    client = client_of(clock, site, {**ROBOTS, "rules": rules})
    (refused, allowed) = await over(
        clock, client.get("https://a.example/private/1"), client.get("https://a.example/open")
    )
    assert isinstance(refused, DisallowedError)
    assert not refused.is_unavailable
    assert allowed.status_code == 200
    assert "https://a.example/private/1" not in [url for _, url in site.asked]


async def test_a_file_that_cannot_be_had_allows_no_url_for_a_minute(clock: FakeClock) -> None:
    for failure in (httpx.Response(503), httpx.ConnectError("refused")):
        site = Site(clock, failure, httpx.Response(200, text=""))
        client = client_of(clock, site)
        (refused,) = await over(clock, client.get(PAGE), seconds=30)
        assert isinstance(refused, DisallowedError)
        assert refused.is_unavailable
        assert refused.__cause__ is not None
        (again,) = await over(clock, client.get(PAGE), seconds=1)
        assert isinstance(again, DisallowedError), "and the host is not asked again"
        assert len(site.files) == 1
        (answer,) = await over(clock, client.get(PAGE), seconds=60)
        assert isinstance(answer, DisallowedError)
        (answer,) = await over(clock, client.get(PAGE), seconds=10)
        assert answer.status_code == 200


async def test_a_429_or_5xx_is_no_file_without_rules_and_the_one_before_counts(clock: FakeClock) -> None:
    for status in (429, 500, 503):
        file = httpx.Response(200, text="User-agent: *\nDisallow: /no\n")
        site = Site(clock, httpx.Response(status), file, httpx.Response(status), httpx.Response(status), file)
        client = client_of(clock, site, {**ROBOTS, "rules": rules})

        async def tries(path: str, client: httpx.AsyncClient = client) -> Any:
            (answer,) = await over(clock, client.get(f"https://a.example{path}"), seconds=120)
            return answer.is_unavailable if isinstance(answer, DisallowedError) else answer.status_code

        assert (await tries("/"), len(site.files)) == (True, 1), "nothing is known"
        assert (await tries("/"), len(site.files)) == (200, 2)
        await clock.advance(86_400)
        assert (await tries("/"), await tries("/no"), len(site.files)) == (200, False, 4)
        assert (await tries("/"), await tries("/no"), len(site.files)) == (200, False, 5)


async def test_without_a_file_there_are_no_rules_and_redirects_are_followed(clock: FakeClock) -> None:
    (answer,) = await over(clock, client_of(clock, Site(clock, httpx.Response(404, text=TEXT))).get(PAGE))
    assert answer.status_code == 200
    moved = httpx.Response(301, headers={"Location": "https://www.a.example/robots.txt"})
    site = Site(clock, moved, httpx.Response(200, text=TEXT))
    client = client_of(clock, site, {**ROBOTS, "rules": rules})
    (refused,) = await over(clock, client.get("https://a.example/private"))
    assert isinstance(refused, DisallowedError)
    assert site.files == ["https://a.example/robots.txt", "https://www.a.example/robots.txt"]
    endless = Site(clock, httpx.Response(302, headers={"Location": "https://a.example/robots.txt"}))
    (answer,) = await over(clock, client_of(clock, endless).get(PAGE))
    assert answer.status_code == 200
    assert len(endless.files) == 6


async def test_a_caller_that_gives_up_leaves_the_question_to_the_next(clock: FakeClock) -> None:
    site = Site(clock, httpx.Response(200, text=TEXT))
    client = client_of(clock, site)
    first, second = (asyncio.ensure_future(client.get(PAGE)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await clock.advance(10)
    assert (await second).status_code == 200


def test_threads_have_the_same(clock: FakeClock) -> None:
    site = Site(clock, httpx.Response(200, text=TEXT))
    throttle = ThreadThrottle(clock=clock, jitter=False, robots={**ROBOTS, "rules": rules})
    with httpx.Client(transport=ThrottleTransport(throttle, httpx.MockTransport(site))) as client:
        assert client.get(PAGE).status_code == 200
        assert client.get(PAGE).status_code == 200
        with pytest.raises(DisallowedError):
            client.get("https://a.example/private")
    assert len(site.files) == 1


async def test_a_mistyped_option_is_told(clock: FakeClock) -> None:
    wrong: Any = {"rules": 3, "agent": "x", "max_delay": -1}
    with pytest.raises(ConfigError) as failed:
        Throttle(robots=wrong)
    paths = sorted(problem.path for problem in failed.value.problems)
    assert paths == ["robots.agent", "robots.max_delay", "robots.rules", "robots.user_agent"]
    site = Site(clock, httpx.Response(200, text=TEXT))
    await over(clock, client_of(clock, site, {**ROBOTS, "obey": False}).get(PAGE))
    assert site.files == []


def test_rules_of_all_vectors() -> None:
    file = Path(__file__).parents[2] / "tests" / "vectors" / "robots-rules.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        is_allowed = rules("https://a.example/robots.txt", case["text"], case["ua"])
        for path in case["allowed"]:
            assert is_allowed(f"https://a.example{path}"), f"{case['name']}: {path}"
        for path in case["refused"]:
            assert not is_allowed(f"https://a.example{path}"), f"{case['name']}: {path}"


VECTORS = Path(__file__).parents[2] / "tests" / "vectors" / "robots-answers.jsonl"
ANSWERS = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines() if line]


class Text(httpx.AsyncByteStream):
    """A body, which may break off."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.text = told.get("text", "")
        if "pad" in told:
            self.text += "#" + "x" * (told["pad"] - len(self.text) - 1) + told["after"]
        self.breaks = told.get("breaks", False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.text.encode()
        if self.breaks:
            raise httpx.ReadError("cut")


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case["name"])
async def test_an_answer_of_a_host_decides(case: dict[str, Any], clock: FakeClock) -> None:
    """JavaScript and Rust play the same cases (tests/js/robots-answers.test.ts, tower/tests/robots.rs)."""
    left: dict[str, float] = {}
    files = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal files
        if request.url.path != "/robots.txt":
            left[request.url.path] = round(clock.seconds * 1000)
            return httpx.Response(200)
        told = case["robots"][min(files, len(case["robots"]) - 1)]
        files += 1
        headers = {"location": told["location"]} if "location" in told else {}
        return httpx.Response(told.get("status", 200), headers=headers, stream=Text(told))

    scopes = case.get("scopes")
    options: dict[str, Any] = {"defaults": {"delay": 1, "jitter": False, "backoff": False}}
    if "retry" in case:
        methods = {"methods": case["methods"]} if "methods" in case else {}
        options["retry"] = {"limit": case["retry"], **methods}
    if scopes is not None:
        options["get_scopes"] = lambda _: scopes
        options["scopes"] = {scopes: {"delay": 0, "concurrency": 9}}
    throttle = Throttle(clock=clock, robots={"user_agent": "bot", "rules": rules}, **options)
    client = httpx.AsyncClient(transport=AsyncThrottleTransport(throttle, httpx.MockTransport(answer)))
    ended = []
    for ask in case["asks"]:
        await clock.advance(ask["at"] / 1000 - clock.seconds)
        left.pop(ask["path"], None)
        ended.append(asyncio.ensure_future(client.get(f"https://a.example{ask['path']}")))
        if "gap" not in case:
            await clock.advance(20)
            assert (ask["path"] in left) is (ask["leaves"] is not None), ask
    await clock.advance(20)
    for ask, end in zip(case["asks"], await asyncio.gather(*ended, return_exceptions=True), strict=True):
        assert isinstance(end, DisallowedError) is (ask["leaves"] is None), ask
    times = [left[ask["path"]] for ask in case["asks"] if ask["path"] in left]
    if "gap" in case:
        assert {after - before for before, after in itertools.pairwise(times)} == {case["gap"]}
    assert files == case["asked"]

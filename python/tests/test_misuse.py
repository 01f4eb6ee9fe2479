"""Mistakes in options and calls, and the messages about them: no mistake passes in silence."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import requests

from autothrottle import (
    ConfigError,
    ManagerError,
    Permit,
    ThreadThrottle,
    Throttle,
    ThrottleWarning,
    by_endpoint,
)
from autothrottle._permit import Wait
from autothrottle._scopes import host_of
from autothrottle.aiohttp import ThrottleMiddleware
from autothrottle.httpx import AsyncThrottleTransport, ThrottleTransport
from autothrottle.requests import ThrottleAdapter
from autothrottle.testing import FakeClock
from helpers import URL, warned

HOSTS = json.loads((Path(__file__).parents[2] / "tests/vectors/hosts.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("make", "throttle", "remedy"),
    [
        (
            AsyncThrottleTransport,
            ThreadThrottle,
            "a ThreadThrottle belongs to ThrottleTransport and httpx.Client",
        ),
        (ThrottleTransport, Throttle, "a Throttle belongs to AsyncThrottleTransport and httpx.AsyncClient"),
        (ThrottleMiddleware, ThreadThrottle, "a ThreadThrottle belongs to requests or httpx.Client"),
        (ThrottleAdapter, Throttle, "a Throttle belongs to AsyncThrottleTransport of httpx or"),
        (ThrottleAdapter, dict, "ThrottleAdapter: want a ThreadThrottle; got a dict"),
    ],
)
def test_a_throttle_of_the_other_kind_is_refused(make: Any, throttle: Callable[[], Any], remedy: str) -> None:
    with pytest.raises(TypeError, match=remedy):
        make(throttle())


async def test_a_proxy_beside_a_throttled_transport_is_an_error(clock: FakeClock) -> None:
    transport = AsyncThrottleTransport(Throttle(clock=clock))
    async with httpx.AsyncClient(transport=transport, proxy="http://127.0.0.1:1") as client:
        with pytest.raises(
            ConfigError, match=r"proxy: want AsyncThrottleTransport\(throttle, httpx.AsyncHTTPTr"
        ):
            await client.get(URL)


def test_threads_get_it_as_well(clock: FakeClock) -> None:
    transport = ThrottleTransport(ThreadThrottle(clock=clock))
    with (
        httpx.Client(transport=transport, proxy="http://127.0.0.1:1") as client,
        pytest.raises(ConfigError, match=r"proxy: want ThrottleTransport\(throttle, httpx.HTTPTransport"),
    ):
        client.get(URL)


async def test_a_mounted_proxy_is_told_once_and_a_throttled_one_is_not(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock)
    told = warned(throttle)
    proxied = httpx.AsyncHTTPTransport(proxy="http://127.0.0.1:1")
    mounts = {
        "http://": proxied,
        "https://": AsyncThrottleTransport(throttle, httpx.MockTransport(lambda _: httpx.Response(200))),
        "all://plain.example": httpx.MockTransport(lambda _: httpx.Response(200)),
    }
    async with httpx.AsyncClient(transport=AsyncThrottleTransport(throttle), mounts=mounts) as client:
        await client.get(URL)
        await client.get("https://plain.example/")
        assert told == []
        for _ in range(2):
            with pytest.raises(httpx.ConnectError):
                await client.get("http://example.com/")
    ((code, message),) = told
    assert code == "bypassed"
    assert message.startswith("requests to http://example.com leave through a proxy")


def test_a_scheme_that_is_not_mounted_is_told(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock)
    told = warned(throttle)
    with requests.Session() as session:
        session.mount("https://", ThrottleAdapter(throttle))
        for _ in range(2):
            session.get_adapter("http://example.com/")
        ((code, message),) = told
        assert code == "bypassed"
        assert message.endswith('mounted for https:// alone: session.mount("http://", adapter), too')
    with requests.Session() as session:
        session.mount("https://api.example", ThrottleAdapter(ThreadThrottle(clock=clock)))
        session.get_adapter("http://other.example/")
    assert len(told) == 1


def test_retries_of_urllib3_are_told(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock)
    told = warned(throttle)
    ThrottleAdapter(throttle, max_retries=0)
    assert told == []
    ThrottleAdapter(throttle, max_retries=3)
    ((code, message),) = told
    assert code == "bypassed"
    assert message.endswith('sends again past the throttle: use ThreadThrottle(retry={"limit": …})')


def test_without_listener_and_log_a_warning_is_a_warning_of_pythons(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger("autothrottle"), "propagate", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ThrottleAdapter(ThreadThrottle(clock=clock), max_retries=3)
    ours = [str(each.message) for each in caught if each.category is ThrottleWarning]
    assert ["max_retries of ThrottleAdapter" in each for each in ours] == [True]
    # `-W error` of these tests: it is a line, not the end of a request.
    ThrottleAdapter(ThreadThrottle(clock=clock), max_retries=3)
    assert "max_retries of ThrottleAdapter" in capsys.readouterr().err
    throttle = ThreadThrottle(clock=clock)
    told = warned(throttle)
    ThrottleAdapter(throttle, max_retries=3)
    assert (len(told), capsys.readouterr().err) == (1, "")


def test_outside_of_asyncio_the_right_throttle_is_named(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin() -> None:
        Throttle(clock=clock).acquire(URL).__await__().send(None)

    with pytest.raises(
        RuntimeError, match="no event loop of asyncio runs here: for threads there is ThreadThr"
    ):
        begin()
    monkeypatch.setitem(sys.modules, "trio", SimpleNamespace(lowlevel=SimpleNamespace(current_task=object)))
    with pytest.raises(
        RuntimeError, match="this is trio, and a Throttle needs asyncio: use a ThreadThrottle"
    ):
        begin()


def test_an_asynchronous_listener_is_refused(clock: FakeClock) -> None:
    async def heard(event: object) -> None: ...

    with pytest.raises(TypeError, match="on: want a plain function; got an async one"):
        Throttle(clock=clock).on("send", heard)
    with pytest.raises(TypeError, match="on: want a function; got 'send'"):
        Throttle(clock=clock).on("send")("send")  # type: ignore[type-var]


def test_a_permit_that_is_not_awaited_is_told(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock)
    with pytest.warns(RuntimeWarning, match=r"throttle\.acquire\(…\) was never awaited"):
        throttle.acquire(URL)  # type: ignore[unused-awaitable, unused-ignore]


async def test_wrap_on_a_method_says_how(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, delay=0)

    class Client:
        @throttle.wrap
        async def wrong(self, url: str) -> str:
            return url

        @throttle.wrap(target=lambda _, url: url)
        async def right(self, url: str) -> str:
            return url

    with pytest.raises(TypeError, match=r"want @throttle\.wrap\(target=lambda self, url: url\)"):
        await Client().wrong(URL)
    assert await Client().right(URL) == URL
    assert await Client.right.__wrapped__(Client(), URL) == URL


def test_after_its_loop_a_throttle_can_be_settled_and_closed() -> None:
    throttle = Throttle(delay=0, max_in_flight=1)

    async def leave_behind() -> Permit:
        permit = await throttle.acquire(URL)
        waiting = throttle._enter(URL, None, Wait())
        waiting.send(None)
        throttle.scope("example.com").hold(1)
        left.append(waiting)
        return permit

    left: list[Any] = []
    permit = asyncio.run(leave_behind())
    permit.settle(status=200)
    throttle.close()
    with pytest.raises(GeneratorExit):
        left[0].throw(GeneratorExit)
    assert throttle.stats().waiting == 0


async def test_a_misspelt_event_is_told(clock: FakeClock) -> None:
    throttle: Any = Throttle(clock=clock)
    known = "queued, send, settle, cancel, backoff, recover, delay, hold, stall, warning, shared"
    for kind, got in [("holds", "'holds' (did you mean 'hold'?)"), ("sent", "'sent' (did you mean 'send'?)")]:
        expected = re.escape(f"want one of {known}; got {got}")
        with pytest.raises(ValueError, match=f"^on: {expected}$"):
            throttle.on(kind, print)
        with pytest.raises(ValueError, match=f"^on: {expected}$"):
            throttle.on(kind)  # at the decorator, and not when it is applied
        with pytest.raises(ValueError, match=f"^off: {expected}$"):
            throttle.off(kind, print)
    with pytest.raises(ValueError, match=r"got 5$"):
        throttle.on(5, print)


@pytest.mark.parametrize(("url", "name"), HOSTS["urls"])
def test_a_server_has_one_name_however_its_url_is_written(url: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(ValueError, match="want a URL"):
            host_of(url)
    else:
        assert host_of(url) == name


@pytest.mark.parametrize(("name", "typed"), HOSTS["names"])
async def test_a_name_that_no_url_has_is_told(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, name: str, typed: str | None
) -> None:
    said = f'it is the scope of no URL; type "{typed}"' if typed else None
    if typed == "a pattern":
        said = "names of scopes are no patterns; defaults are for all hosts"
    Throttle(clock=clock, scopes={name: {"rate": 5}})
    assert len(caplog.messages) == (0 if said is None else 1)
    if said is not None:
        assert caplog.messages[0].startswith(f'scopes["{name}"] has no effect: {said}')
    throttle = Throttle(clock=clock)
    told = warned(throttle)
    throttle.scope(name).configure(rate=5)
    throttle.scope(name).pause()
    assert [code for code, _ in told] == ([] if said is None else ["no-effect"])
    caplog.clear()
    Throttle(clock=clock, scopes={name: {"rate": 5}}, get_scopes=lambda _: name)
    assert caplog.messages == []


def test_hosts_in_capitals_are_those_of_their_urls(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock)
    throttle.robots("API.example", "User-agent: *\nCrawl-delay: 7", user_agent="bot")
    assert throttle.scope("api.example").stats.delay == 7


@pytest.mark.parametrize(("typed", "sent", "is_told"), HOSTS["unmet"])
async def test_a_host_that_no_request_met_is_told_at_the_end(
    clock: FakeClock, typed: str, sent: str, is_told: bool
) -> None:
    said = f'scopes["{typed}"] has no effect: requests go to "{sent}"'
    for hosts, names, more, expected in [
        ([sent], [typed], {}, [("no-effect", said)] if is_told else []),
        ([sent, typed], [typed], {}, []),
        ([sent], [typed, sent], {}, []),
        ([sent], [typed], {"get_scopes": lambda _: sent}, []),
    ]:
        options: Any = {"scopes": {name: {"rate": 5} for name in names}, **more}
        throttle = Throttle(clock=clock, delay=0, **options)
        told = warned(throttle)
        for host in hosts:
            (await throttle.acquire(f"https://{host}/")).settle(status=200)
        assert told == []
        throttle.close()
        throttle.close()
        assert told == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": {"limit": 100, "window": 60_000}}, "rate.window=60000 is 16:40:00"),
        ({"quota": 100, "window": 3_600_000}, "window=3.6e+06 is 41 days, 16:00:00"),
        ({"quota": {"limit": 5, "window": 1000}}, "quota.window=1000 is 0:16:40"),
        ({"backoff": {"window": 60_000}}, "backoff.window=60000 is 16:40:00"),
        (
            {"defaults": {"delay": 1, "autothrottle": {"start_delay": 5000}}},
            "defaults.autothrottle.start_delay=5000 is 1:23:20",
        ),
        ({"robots": {"user_agent": "b", "max_delay": 60_000}}, "robots.max_delay=60000 is 16:40:00"),
        ({"request_timeout": 30_000}, "request_timeout=30000 is 8:20:00"),
        (
            {"retry": {"limit": 1, "max_retry_after": 300_000}},
            "retry.max_retry_after=300000 is 3 days, 11:20:00",
        ),
        ({"backoff": {"max_delay": 300, "max_hold": 3600}, "request_timeout": 120}, None),
        ({"rate": {"limit": 100, "window": 3600}}, None),
        ({"quota": 100, "window": 86_400}, None),
    ],
)
async def test_spans_in_milliseconds_are_told(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, options: Any, said: str | None
) -> None:
    Throttle(clock=clock, **options)
    assert len(caplog.messages) == (0 if said is None else 1)
    if said is not None:
        assert caplog.messages[0].startswith(f"{said}: times are seconds here, so ")


async def test_a_hold_in_milliseconds_is_told(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock)
    told = warned(throttle)
    throttle.scope("a.example").hold(5)
    throttle.scope("a.example").hold(5000)
    said = "hold=5000 is 1:23:20: times are seconds here, so 5000 ms are 5"
    assert told == [("suspicious-unit", f"{said} (timedelta(seconds=5000) silences this)")]


def test_a_setting_that_is_assigned_is_refused(clock: FakeClock) -> None:
    throttle: Any = Throttle(clock=clock)
    for key in ("rate", "delay", "concurrency", "max_waiting"):
        with pytest.raises(AttributeError, match=rf"^{key}: want it as an option, Throttle\({key}=…\)"):
            setattr(throttle, key, 5)
    throttle.name = "mine"
    with pytest.raises(AttributeError):
        throttle.scope("a.example").delay = 5


async def test_a_name_in_hints_that_no_url_has_is_told(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    hints: Any = {"API.example": {"remaining": "x-left"}}
    Throttle(clock=clock, hints=hints)
    expected = 'hints["API.example"] has no effect: it is the scope of no URL; type "api.example"'
    assert [message[: len(expected)] for message in caplog.messages] == [expected]
    hints = {"api.exmaple.com": {"remaining": "x-left"}}
    throttle = Throttle(clock=clock, delay=0, hints=hints)
    told = warned(throttle)
    (await throttle.acquire("https://api.example.com/")).settle(status=200)
    throttle.close()
    assert told == [("no-effect", 'hints["api.exmaple.com"] has no effect: requests go to "api.example.com"')]


async def test_a_server_that_is_never_closed_is_told_of_a_host_that_no_request_met(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, delay=0, slot_delay=0, scopes={"github.com": {"rate": 5}})
    told = warned(throttle)
    for count in range(100):
        assert told == [], count
        (await throttle.acquire("https://api.github.com/")).settle(status=200)
    assert told == [("no-effect", 'scopes["github.com"] has no effect: requests go to "api.github.com"')]


async def test_throttles_for_one_request_each_are_no_limit_which_one_of_them_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def get(url: str, times: int = 1) -> None:
        async with Throttle(delay=0) as throttle:
            for _ in range(times):
                (await throttle.acquire(url)).settle(status=200)

    for _ in range(30):
        await get(URL)
    said = "20 throttles in a row sent one request each to example.com, and none knows of the others"
    assert caplog.messages == [f"{said}: make one, outside of the function"]
    caplog.clear()
    # One for each host is as it should be, and so is one that is used again.
    for host in range(30):
        await get(f"https://{host}.example/")
    for _ in range(30):
        await get(URL, times=2)
    for _ in range(30):
        with ThreadThrottle(clock=FakeClock()) as throttle:
            throttle.acquire(URL).settle(status=200)
    assert caplog.messages == []


async def test_a_value_that_is_no_list_of_items_is_told_when_map_is_called(clock: FakeClock) -> None:
    throttle: Any = Throttle(clock=clock)
    for items, message in [
        (URL, f"map: want items, such as a list; got '{URL}': for one item put it in a list"),
        (None, "map: want items, such as a list; got None"),
        (print, "the items come before the function"),
        (asyncio.sleep(0), "await it"),
    ]:
        with pytest.raises(TypeError, match=re.escape(message)):
            throttle.map(items, print)
        if asyncio.iscoroutine(items):
            items.close()
    with pytest.raises(ConfigError, match="configure: want settings, such as rate=5; got none"):
        throttle.scope("a.example").configure()


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"max_concurrent": 1}, "concurrency"),
        ({"timeout": 1}, "request_timeout"),
        ({"max_retries": 1}, 'retry={"limit": …}'),
        ({"requests_per_minute": 1}, 'rate="60/min"'),
        ({"interval": 1}, 'rate={"limit": …, "window": …}'),
        ({"maxDelay": 1}, 'backoff={"max_delay": …}'),
        ({"status_codes": 1}, 'retry={"status_codes": …}'),
        ({"priority": 1}, "an option of a single request: acquire(url, priority=…)"),
        ({"rate": {"limit": 1, "interval": 1}}, "window"),
        ({"retry": {"limit": 1, "attempts": 1}}, "limit"),
        ({"retry": {"retries": 1}}, "limit"),
        ({"robots": {"user_agent": "b", "agent": 1}}, "user_agent"),
        ({"scopes": {"h": {"min_time": 1}}}, "delay"),
        ({"colour": 1}, None),
    ],
)
async def test_words_of_other_libraries_are_answered_with_ours(options: Any, meant: str | None) -> None:
    with pytest.raises(ConfigError) as raised:
        Throttle(**options)
    want = "want a known setting" if meant is None else f"want a known setting (did you mean {meant}?)"
    assert want in str(raised.value)


async def test_a_value_that_is_no_function_is_refused_before_a_request_waits(clock: FakeClock) -> None:
    throttle: Any = Throttle(clock=clock, delay=10)

    async def page() -> int:
        return 1

    coroutine = page()
    with pytest.raises(TypeError, match=r"^run: want a function; got a coroutine, which was made already"):
        await throttle.run("https://a.example/", coroutine)
    with pytest.raises(TypeError, match=r"^run: want a function; got None$"):
        await throttle.run("https://a.example/", None)
    assert throttle.stats().scopes == {}
    kinds: list[Any] = [throttle, ThreadThrottle(clock=clock)]
    for throttled in kinds:
        with pytest.raises(TypeError, match=r"^wrap: want a function; got 'https://a.example/'$"):
            throttled.wrap("https://a.example/")
        with pytest.raises(TypeError, match=r"^wrap: want a function; got a coroutine, which was made alr"):
            throttled.wrap(coroutine)
    coroutine.close()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"headers": "retry-after: 5"},
            r"^headers: want a mapping, or names and values; got 'retry-after: 5'$",
        ),
        ({"headers": 5}, r"^headers: want a mapping, or names and values; got 5$"),
        ({"headers": ["retry-after"]}, r"^headers: want \(name, value\); got 'retry-after'$"),
        ({"latency": "0.5"}, r"^latency: want seconds or a timedelta; got '0.5'$"),
        ({"cost": "5"}, r"^settle: want a cost from 0 of example.com; got '5'$"),
        ({"error": "boom"}, r"^error: want an exception; got 'boom'$"),
        ({"error": ValueError}, r"^error: want an exception; got <class 'ValueError'>$"),
    ],
)
async def test_a_slip_in_an_answer_is_told_and_its_status_counts(
    clock: FakeClock, more: Any, message: str
) -> None:
    throttle = Throttle(clock=clock, delay=0)
    permit = await throttle.acquire(URL)
    with pytest.raises((TypeError, ValueError), match=message):
        permit.settle(status=429, **more)
    scope = throttle.stats().scopes["example.com"]
    assert (scope.backoff_step, scope.in_flight) == (1, 0)


# A permit that is never settled is said, where requests wait for it and where the program ends.

HERE = Path(__file__).resolve().parent
ONE: dict[str, Any] = {"delay": 0, "concurrency": 1}
END = "the program ends, and 1 permit was not settled: use `with`"


async def test_requests_that_wait_for_a_permit_that_is_never_settled_are_told_of(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, **ONE)
    said = warned(throttle)
    held = await throttle.acquire(URL)
    waiting = asyncio.ensure_future(one(throttle))
    await clock.advance(119)
    assert not said
    await clock.advance(2)
    ((code, message),) = said
    assert code == "unsettled"
    assert "no slot of example.com came back for 2 minutes, and 1 requests wait: use `with`" in message
    held.settle(status=200)
    await waiting


async def test_a_block_that_takes_long_is_no_fault(clock: FakeClock) -> None:
    throttle = Throttle(clock=clock, **ONE)
    said = warned(throttle)
    async with throttle.acquire(URL):
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(600)
    await waiting
    with await throttle.acquire(URL):
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(600)
    await waiting
    # One after the other, each settled: that takes long, and none is forgotten.
    for _ in range(3):
        permit = await throttle.acquire(URL)
        waiting = asyncio.ensure_future(one(throttle))
        await clock.advance(40)
        permit.settle(status=200)
        await waiting
    assert not said


async def one(throttle: Throttle) -> None:
    async with throttle.acquire(URL):
        pass


TASK = """
async def main():
    kept.append(throttle := Throttle())
    {}
asyncio.run(main())
"""
LOST = "was collected as garbage before it was settled: use `with`"
PROGRAMS = {
    "a task": (TASK.format("kept.append(await throttle.acquire(URL))"), END),
    "a lost one": (TASK.format("await throttle.acquire(URL)"), LOST),
    "a thread": ("throttle = ThreadThrottle()\nheld = throttle.acquire(URL)", END),
}
FINE = "t = ThreadThrottle()\nwith t.acquire(URL):\n    pass\nt.acquire(URL).settle(status=200)"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_ends_with_one_says_so(name: str) -> None:
    program, what = PROGRAMS[name]
    assert what in stderr_of(program)


def test_a_program_that_settles_them_says_nothing() -> None:
    assert stderr_of(FINE) == ""


def stderr_of(program: str) -> str:
    head = "import asyncio\nfrom autothrottle import *\nkept, URL = [], 'https://a.example/'\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


@pytest.mark.parametrize("extra", ["httpx", "aiohttp", "requests", "opentelemetry", "crawlee"])
def test_a_client_that_is_not_installed_is_told_with_its_extra(extra: str) -> None:
    # As in an environment without it.
    code = f"import sys; sys.modules[{extra!r}] = None; import autothrottle.{extra}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert f"needs {extra}" in done.stderr
    assert f"pip install 'autothrottle[{extra}]'" in done.stderr


async def test_by_endpoint_as_a_value_says_that_it_makes_a_function() -> None:
    throttle = Throttle(get_scopes=by_endpoint)  # type: ignore[arg-type]
    with pytest.raises(ManagerError, match=r"type by_endpoint\(\), which makes a function"):
        await throttle.run("https://api.example/a", lambda: 1)

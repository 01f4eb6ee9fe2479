"""The adapter of requests, over real sockets and in fake time: a thread that waits moves the clock."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from autothrottle import (
    BodyNotReplayableError,
    DisallowedError,
    RetryAfterTooLongError,
    ThreadThrottle,
    request_options,
)
from autothrottle.requests import ThrottleAdapter
from autothrottle.robots import rules
from autothrottle.testing import FakeClock
from servers import Told, server


@pytest.fixture
def told() -> Iterator[Told]:
    with server() as running:
        yield running


def session_of(clock: FakeClock, **options: Any) -> tuple[ThreadThrottle, requests.Session]:
    throttle = ThreadThrottle(**{"clock": clock, "delay": 1, "jitter": False, "backoff": False, **options})
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", ThrottleAdapter(throttle))
    return throttle, session


def test_requests_wait_for_their_turn(clock: FakeClock, told: Told) -> None:
    throttle, session = session_of(clock)
    at: list[float] = []
    throttle.on("send", lambda event: at.append(event.at))
    with session:
        assert [session.get(told.url).text for _ in range(3)] == ["ok"] * 3
    assert at == [0, 1, 2]
    assert list(throttle.stats().scopes) == [told.url.split("/")[2]]


def test_refusals_are_heard_and_tried_again(clock: FakeClock, told: Told) -> None:
    told.answers = [(429, {"Retry-After": "30"}, b"slow"), (0, {}, b""), (503, {}, b"")]
    throttle, session = session_of(clock, retry={"limit": 3})
    with session:
        assert session.get(told.url).status_code == 200
    assert len(told.asked) == 4
    assert clock.seconds > 30
    assert throttle.stats().in_flight == 0


def test_bodies_are_sent_again_where_they_can_be(clock: FakeClock, told: Told) -> None:
    told.answers = [(503, {}, b"")] * 2
    _, session = session_of(clock, retry={"limit": 1})
    with session:
        assert session.put(told.url, data=b"bytes").status_code == 503
        assert [body for *_, body in told.asked] == [b"bytes"] * 2
        told.answers = [(503, {}, b"")]
        file = io.BytesIO(b"skipped, then sent")
        file.seek(9)
        assert session.put(told.url, data=file).status_code == 200
        assert [body for *_, body in told.asked[-2:]] == [b"then sent"] * 2
        told.answers = [(503, {}, b"")]
        with pytest.raises(BodyNotReplayableError):
            session.put(told.url, data=iter([b"once"]), headers={"Content-Length": "4"})


def test_each_hop_of_a_redirect_waits(clock: FakeClock, told: Told) -> None:
    told.answers = [(302, {"Location": "/there", "Retry-After": "20"}, b"")]
    throttle, session = session_of(clock)
    at: list[float] = []
    throttle.on("send", lambda event: at.append(event.at))
    with session:
        assert session.get(told.url).url.endswith("/there")
    assert at == [0, 20]


def test_robots_txt_is_asked_for_first(clock: FakeClock, told: Told) -> None:
    told.answers = [(200, {}, b"User-agent: *\nCrawl-delay: 5\nDisallow: /private")]
    robots: Any = {"user_agent": "foobot", "rules": rules}
    _, session = session_of(clock, robots=robots)
    assert session.get(told.url).text == "ok"
    with pytest.raises(DisallowedError):
        session.get(f"{told.url}private")
    assert [path for _, path, _ in told.asked] == ["/robots.txt", "/"]
    assert clock.seconds >= 5


def test_a_wait_that_is_too_long_is_an_error(clock: FakeClock, told: Told) -> None:
    told.answers = [(429, {"Retry-After": "4000"}, b"later")]
    throttle, session = session_of(clock, retry={"limit": 3, "max_retry_after": 60})
    with session, pytest.raises(RetryAfterTooLongError) as caught:
        session.get(told.url)
    assert isinstance(caught.value.response, requests.Response)
    assert caught.value.response.text == "later"
    assert throttle.stats().in_flight == 0


def test_slots_come_back_with_the_headers_or_with_the_body(clock: FakeClock, told: Told) -> None:
    for release, held in (("headers", 0), ("body", 1)):
        throttle, session = session_of(clock, release=release)
        with session:
            with session.get(told.url, stream=True) as response:
                assert throttle.stats().in_flight == held
                assert response.content == b"ok"
                assert throttle.stats().in_flight == 0
            session.get(told.url)
            with session.get(told.url, stream=True):
                pass
        assert throttle.stats().in_flight == 0


def test_failures_are_raised_as_they_are(clock: FakeClock) -> None:
    throttle, session = session_of(clock, backoff=True, delay=0)
    with session, pytest.raises(requests.ConnectionError):
        session.get("http://127.0.0.1:1/")
    assert throttle.scope("127.0.0.1:1").stats.backoff_step == 1


def test_a_block_says_more(clock: FakeClock, told: Told) -> None:
    throttle, session = session_of(clock)
    with session, request_options(scopes={"api": 2, "account": 1}):
        session.get(told.url)
    assert set(throttle.stats().scopes) == {"api", "account"}


def test_it_cannot_be_pickled(clock: FakeClock) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ThrottleAdapter(ThreadThrottle(clock=clock)))

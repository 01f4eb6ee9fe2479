"""``ThreadThrottle``: threads that wait, and so move the fake clock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from autothrottle import (
    ClosedError,
    ManagerError,
    RetryAfterTooLongError,
    ThreadThrottle,
    ThrottleTimeoutError,
)
from autothrottle.testing import FakeClock
from helpers import URL, Response, warned


def plain(clock: FakeClock, **options: Any) -> ThreadThrottle:
    return ThreadThrottle(**{"clock": clock, "delay": 1, "jitter": False, **options})


def test_a_thread_waits_for_its_turn(clock: FakeClock) -> None:
    throttle, at = plain(clock), []
    for _ in range(3):
        with throttle.acquire(URL) as permit:
            at.append(permit.sent_at)
            permit.settle(Response())
    assert at == [0, 1, 2]


def test_many_threads_share_one(clock: FakeClock) -> None:
    throttle = plain(clock, max_in_flight=64, scopes={"example.com": {"concurrency": 64}})
    lock, at = threading.Lock(), []

    def get(url: str) -> None:
        with throttle.acquire(url) as permit, lock:
            at.append(permit.sent_at)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(get, [URL] * 40))
    assert sorted(at) == list(range(40))
    throttle.idle()


def test_slots_go_from_thread_to_thread(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    most, flying = 0, 0
    lock = threading.Lock()

    def get(_: int) -> None:
        nonlocal most, flying
        with throttle.acquire(URL):
            with lock:
                flying += 1
                most = max(most, flying)
            with lock:
                flying -= 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(get, range(200)))
    assert most == 1
    assert throttle.stats().settled == 200


def test_a_wait_ends_with_its_timeout(clock: FakeClock) -> None:
    throttle = plain(clock)
    with throttle.acquire(URL):
        pass
    with pytest.raises(ThrottleTimeoutError):
        throttle.acquire(URL, max_wait=0.5)
    assert clock.seconds == 0.5
    assert throttle.stats().waiting == 0


def test_an_interrupt_gives_the_place_back() -> None:
    class Interrupting(FakeClock):
        def wait(self, condition: threading.Condition, seconds: float | None) -> None:
            raise KeyboardInterrupt

    throttle = plain(Interrupting())
    with throttle.acquire(URL):
        pass
    with pytest.raises(KeyboardInterrupt):
        throttle.acquire(URL)
    assert throttle.stats().waiting == 0


def test_run_and_wrap_hear_the_answer(clock: FakeClock) -> None:
    throttle = plain(clock, delay=0)
    assert throttle.run(URL, Response, 429).status_code == 429
    assert throttle.scope("example.com").stats.backoff_step == 1

    @throttle.wrap(target=URL)
    def fail() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fail()
    assert throttle.scope("example.com").stats.in_flight == 0

    @throttle.wrap
    def get(url: str) -> str:
        return url

    assert get("https://other.example/") == "https://other.example/"


def test_a_coroutine_is_for_the_other_throttle(clock: FakeClock) -> None:
    async def get() -> None: ...

    throttle = plain(clock)
    with pytest.raises(TypeError, match=r"for coroutines there is autothrottle\.Throttle"):
        throttle.run(URL, get)  # type: ignore[unused-coroutine]
    assert throttle.stats().in_flight == 0


def test_a_hook_must_be_a_plain_function(clock: FakeClock) -> None:
    async def hook(_: Any) -> str:
        raise AssertionError

    throttle = plain(clock, get_scopes=hook)
    with pytest.raises(ManagerError, match="get_scopes gave an awaitable"):
        throttle.acquire(URL)


def test_a_request_that_waits_when_it_is_closed_fails() -> None:
    throttle = ThreadThrottle(delay=0)
    permit = throttle.acquire(URL)
    is_waiting, failed = threading.Event(), []

    def wait() -> None:
        try:
            throttle.acquire(URL)
        except ClosedError as error:
            failed.append(error)

    throttle.on("queued", lambda _: is_waiting.set())
    thread = threading.Thread(target=wait)
    thread.start()
    assert is_waiting.wait(10)
    throttle.close()
    thread.join(10)
    assert len(failed) == 1
    permit.settle()
    throttle.idle()


def test_with_closes_it(clock: FakeClock) -> None:
    with plain(clock) as throttle, throttle.acquire(URL):
        pass
    with pytest.raises(ClosedError):
        throttle.acquire(URL)


def test_a_lost_permit_wakes_the_next_one() -> None:
    throttle = ThreadThrottle(delay=0)
    told = warned(throttle)
    permits = [throttle.acquire(URL)]
    is_waiting = threading.Event()
    throttle.on("queued", lambda _: is_waiting.set())
    thread = threading.Thread(target=lambda: throttle.acquire(URL).settle(), daemon=True)
    thread.start()
    assert is_waiting.wait(10)
    permits.clear()
    thread.join(10)
    assert not thread.is_alive()
    assert [code for code, _ in told] == ["permit-lost"]


def test_with_leaves_although_a_permit_was_lost() -> None:
    def lose() -> None:
        with ThreadThrottle(delay=0) as throttle:
            throttle.acquire(URL)

    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


# Forks while threads wait and hold permits, each in a program of its own: a fork copies a whole test run.

HERE = Path(__file__).resolve().parent

BEGIN = """
import os, signal, threading
from autothrottle import ThreadThrottle, ThrottleTimeoutError
from autothrottle.testing import FakeClock

signal.alarm(60)
clock, url = FakeClock(), "https://example.com/"
throttle = ThreadThrottle(clock=clock, delay=1, max_in_flight=1, jitter=False)
told = []
throttle.on("warning", lambda event: told.append(event.code))
held = throttle.acquire(url)
is_waiting = threading.Event()
throttle.on("queued", lambda _: is_waiting.set())
thread = threading.Thread(target=lambda: throttle.acquire(url).settle(), daemon=True)
thread.start()
is_waiting.wait()
while throttle._scheduler._keeper is None:
    pass
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        IN_CHILD
        code = 0
    except BaseException as error:
        print(repr(error), flush=True)
        code = 1
    os._exit(code)
_, status = os.waitpid(child, 0)
held.settle()
thread.join()
assert told == [], told
assert throttle.stats().in_flight == 0
raise SystemExit(os.waitstatus_to_exitcode(status))
"""

CHILDREN = {
    "a timeout is kept": """
        throttle.scope("example.com").pause()
        try:
            throttle.acquire(url, max_wait=2)
        except ThrottleTimeoutError:
            assert clock.seconds == 2, clock.seconds
        else:
            raise AssertionError("it was sent")""",
    "no slot is lost, and it is told once": """
        for at in (1, 2):
            with throttle.acquire(url, max_wait=5) as permit:
                assert permit.sent_at == at, permit.sent_at
        held.settle()
        assert throttle.stats().in_flight == 0
        assert told == ["forked"], told
        throttle.idle()""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("name", CHILDREN)
def test_in_the_child(name: str) -> None:
    program = BEGIN.replace("\n        IN_CHILD", CHILDREN[name])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_wait_is_that_of_its_own_request(clock: FakeClock) -> None:
    throttle = ThreadThrottle(clock=clock, backoff=False, retry={"limit": 1})
    scheduler: Any = throttle._scheduler
    end, other = scheduler.end, throttle.acquire("https://b.example/")

    def end_before_another(*given: Any) -> Any:
        """As where another thread has its turn next."""
        scheduler.end = end
        verdict = end(*given)
        other.settle(Response(200))
        return verdict

    scheduler.end = end_before_another
    with pytest.raises(RetryAfterTooLongError, match="3600 s"):
        throttle.run(URL, lambda: Response(429, {"Retry-After": "3600"}), retry=True)

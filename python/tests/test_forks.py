"""Forks while threads wait and hold permits, each in a program of its own: a fork copies a whole test run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

BEGIN = """
import os, signal, threading
from autothrottle import ThreadThrottle, ThrottleTimeoutError
from autothrottle.testing import FakeClock

signal.alarm(60)
clock, url = FakeClock(), "https://example.com/"
throttle = ThreadThrottle(clock=clock, delay=1, concurrency=1, jitter=False)
told = []
throttle.on("warning", lambda event: told.append(event.code))
held = throttle.acquire(url)
is_waiting = threading.Event()
throttle.on("queued", lambda _: is_waiting.set())
thread = threading.Thread(target=lambda: throttle.acquire(url).settle(), daemon=True)
thread.start()
is_waiting.wait()
while throttle._desk._keeper is None:
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
            throttle.acquire(url, timeout=2)
        except ThrottleTimeoutError:
            assert clock.seconds == 2, clock.seconds
        else:
            raise AssertionError("it was sent")""",
    "no slot is lost, and it is told once": """
        for at in (1, 2):
            with throttle.acquire(url, timeout=5) as permit:
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

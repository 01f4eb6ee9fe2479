"""What both languages have to say alike: scripts, hashes of options, outcomes, and a session of a writer and
one of a member that ``tests/golden/shared.json`` holds, which ``tests/js/shared-golden.test.ts`` plays too.

The trap is one that drifts: processes of both kinds are in one group.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autothrottle._native import Engine
from autothrottle._shared import scripts
from autothrottle._shared.engine import digest
from autothrottle._shared.member import Member, MemberLink
from autothrottle._shared.messages import TO_WRITER, decode, encode, state_in
from autothrottle._shared.settings import hash_of, written
from autothrottle._shared.store_clock import StoreClock
from autothrottle._shared.writer import Writer
from autothrottle._shared.writer_link import Beginning, WriterLink

from .world import Event

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = json.loads((ROOT / "tests/golden/shared.json").read_text(encoding="utf-8"))


def test_the_scripts_are_those_of_javascript() -> None:
    source = (ROOT / "js/shared/redis/scripts.ts").read_text(encoding="utf-8")
    texts: dict[str, str] = {}
    for name, text in re.findall(r"^(?:export )?const (\w+) = `([^`]*)`", source, re.MULTILINE):
        texts[name] = re.sub(r"\$\{(\w+)\}", lambda match: texts[match[1]], text)
    for name in ("COMPETE", "RENEW", "SEND", "RELEASE", "TIME"):
        assert getattr(scripts, name) == texts[name], name


@pytest.mark.parametrize("each", GOLDEN["hashes"], ids=lambda each: each["hash"])
def test_options_have_the_same_hash(each: Any) -> None:
    assert hash_of(each["options"]) == each["hash"]


def test_numbers_are_written_as_in_javascript() -> None:
    numbers = [0.0, -0.0, 500.0, 0.05, 1e21, 1e20, 1e-7, 1.5e-7, 1e-6, 123456.789, 1 / 3, 5e-324, -2.5]
    texts = "0 0 500 0.05 1e+21 100000000000000000000 1e-7 1.5e-7 0.000001 123456.789 0.3333333333333333"
    assert [written(number) for number in numbers] == [*texts.split(), "5e-324", "-2.5"]
    assert written({"b": 1, "10": 2, "9": None, "a": "\ud800\u00e9\n"}) == (
        '{"9":null,"10":2,"a":"\\ud800\u00e9\\n","b":1}'
    )


@pytest.mark.parametrize("each", GOLDEN["digests"], ids=lambda each: str(each["told"]))
def test_outcomes_are_told_alike(each: Any) -> None:
    keys = {"status": "status", "headers": "headers", "retry": "retry", "backoff": "backoff", "cost": "cost"}
    outcome = {keys[key]: value for key, value in each["outcome"].items() if key in keys}
    if "latencyMs" in each["outcome"]:
        outcome["latency"] = round(each["outcome"]["latencyMs"] * 1e6)
    settled, asked, told = digest(Engine(each["options"]), outcome)
    assert (settled, told) == (each["settled"], each["told"])
    assert (None if asked is None else asked / 1e6) == each["askedMs"]


class Tape:
    """A clock that a session moves, and what was said in it."""

    is_loop = False
    is_running = True

    def __init__(self, start: float) -> None:
        self.time = start
        self.said: list[Any] = []
        self._events: list[Event] = []
        self._made = 0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1.7e12 + self.time

    def call_later(self, ms: float, call: Callable[[], object]) -> Event:
        # Timers of JavaScript know whole milliseconds.
        self._made += 1
        self._events.append(Event(self.time + math.ceil(max(ms, 0.0)), self._made, None, call))
        return self._events[-1]

    def after_turn(self, call: Callable[[], object]) -> None:
        self.call_later(0, call)

    def post(self, call: Callable[[], object]) -> None:
        self.call_later(0, call)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def say(self, to: str, message: Any) -> None:
        self.said.append({"at": self.time, "to": to, "message": json.loads(encode(message))})

    def run(self, until: float) -> None:
        while due := [event for event in self._events if not event.is_cancelled and event.at <= until]:
            event = min(due)
            self._events.remove(event)
            self.time = max(self.time, event.at)
            event.run()
        self.time = until


def play_writer(session: Any) -> list[Any]:
    """A writer's session: what it hears, and what it says."""
    tape = Tape(session["start"])
    writer: Writer | None = None

    def link(epoch: int) -> WriterLink:
        return WriterLink(
            id="w",
            epoch=epoch,
            hash=session["hash"],
            lease_ms=1500,
            is_good=lambda: True,
            grant=tape.say,
            tell=lambda tell: tape.say("all", tell),
            again=lambda: tape.say("all", {"type": "again"}),
            learned=lambda: None,
            differs=lambda other: tape.say("all", {"type": "differs", "id": other}),
            offset_ms=lambda: session["offsetMs"],
        )

    for step in session["steps"]:
        tape.run(step["at"])
        if "begin" in step:
            begin = step["begin"]
            state = None if writer is None else state_in(writer.state())
            if writer is not None:
                writer.stop()
            beginning = Beginning(state, begin["ageMs"], begin.get("former"), begin.get("gone"))
            made = link(begin["epoch"])
            writer = Writer(made, session["options"], tape, lambda: session["leadMs"], beginning)
            writer.collect()
        elif "hear" in step:
            assert writer is not None
            message = decode(json.dumps(step["hear"]))
            assert isinstance(message, dict)
            assert message["type"] in TO_WRITER
            writer.hear(message)
        else:
            assert writer is not None
            tape.say("all", writer.beat())
    return tape.said


def play_member(session: Any) -> list[Any]:
    """A member's session: what it is asked for and hears, and what it says."""
    tape = Tape(session["start"])
    link = MemberLink(
        id="m",
        hash=session["hash"],
        now=tape.now,
        offset_ms=lambda: session["offsetMs"],
        after_turn=tape.after_turn,
        send=lambda message: tape.say("writer", message),
        changed=lambda refused: tape.say("desk", {"type": "changed", "refused": refused}),
    )
    member = Member(link, 1500)
    for step in session["steps"]:
        tape.run(step["at"])
        what, *given = step["do"]
        if what == "submit":
            member.submit(*given)
        elif what == "poll":
            ticket, wake = member.poll(tape.time)
            tape.say("desk", {"type": "poll", "ticket": ticket, "wake": wake})
        elif what == "settle":
            member.settle(*given)
        elif what == "grant":
            member.on_grant(given[0])
        elif what == "beat":
            member.on_beat(given[0])
        elif what == "ping":
            member.ping(given[0])
        elif what == "left":
            member.left(tape.time, given[0])
        elif what == "cancel":
            member.cancel(given[0])
        elif what == "order":
            member.order(given[0])
        else:
            member.enter(given[0])
    tape.run(tape.time + 1)
    return tape.said


def alike(ours: Any, theirs: Any, path: str = "") -> None:
    """The same, but for the last digits of times."""
    if isinstance(theirs, str) and theirs.startswith("{"):
        alike(json.loads(ours), json.loads(theirs), f"{path} as text")
    elif isinstance(theirs, dict):
        assert set(ours) == set(theirs), path
        for key, value in theirs.items():
            alike(ours[key], value, f"{path}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for at, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
            alike(mine, yours, f"{path}[{at}]")
    elif isinstance(theirs, float) and not isinstance(ours, bool):
        assert math.isclose(ours, theirs, abs_tol=0.002, rel_tol=1e-9), path
    else:
        assert ours == theirs, path


@pytest.mark.parametrize("kind", ["writer", "member"])
def test_a_session_is_played_alike(kind: str) -> None:
    session = GOLDEN[kind]
    said = (play_writer if kind == "writer" else play_member)(session)
    assert len(session["said"]) > 10
    alike(said, session["said"], kind)


def test_commands_that_waited_for_a_connection_do_not_put_grants_farther_ahead() -> None:
    clock = StoreClock()

    def sample(at: float, trip: float) -> None:
        clock.sample(at, at + trip, at + trip / 2)

    for at in range(16):
        sample(at * 500, 1)
    # A store that was away for some seconds: what waited is answered at once when it is back.
    for at, trip in ((8000, 1400), (8500, 900), (9000, 400)):
        sample(at, trip)
    assert clock.lead_ms == 5
    # A way that has become slow is one soon.
    for at in range(20, 30):
        sample(at * 500, 100)
    assert clock.lead_ms == 150

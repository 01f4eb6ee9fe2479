"""Every trace of ``tests/traces`` through the native module: the engine's transcript, byte for byte."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from autothrottle._native import Engine
from autothrottle.errors import ThrottleError


def play(trace: str) -> str:
    lines: list[str] = []
    player: Player | None = None
    for written in trace.splitlines():
        if not written.startswith((">", "#")):
            continue
        lines.append(written)
        if written.startswith("#"):
            continue
        line = written[2:]
        if line.startswith("options "):
            try:
                player = Player(Engine(json.loads(line[8:]), seed=0))
            except ThrottleError as error:
                lines.append(str(error))
        elif player is not None:
            player.line(line)
            lines += player.lines
            player.lines.clear()
    return "".join(f"{line}\n" for line in lines)


class Player:
    def __init__(self, engine: Engine) -> None:
        self.lines: list[str] = []
        self._engine = engine
        self._tickets: dict[str, int] = {}
        self._answers: list[tuple[int, str]] = []
        self._server: tuple[int, int, list[tuple[str, str]]] | None = None
        self._now = 0
        self._rest = ""

    def line(self, line: str) -> None:
        words = line.split()
        pairs = [word.partition("=") for word in words if "=" in word]
        arguments = {key: value for key, _, value in reversed(pairs)}
        fields = [_field(word) for word in words if word.startswith("header=")]
        verb, name, now = words[0], words[1] if len(words) > 1 else "", self._now
        engine = self._engine

        def span(key: str) -> int | None:
            return nanos(arguments[key]) if key in arguments else None

        def number(key: str) -> float | None:
            return float(arguments[key]) if key in arguments else None

        if verb == "at":
            self._now = nanos(name)
        elif verb == "run":
            self._run(nanos(name))
            return
        elif verb == "serve":
            self._server = (span("latency") or 0, int(arguments.get("status", "200")), fields)
        elif verb in ("submit", "send", "adopt"):
            self._submit(verb, name, words[2].split(","), arguments)
        elif verb == "settle":
            status = arguments.get("status")
            engine.settle(
                now,
                self._tickets[name],
                status=None if status is None else int(status),
                failure="connection" if "error" in words and status is None else None,
                latency=span("latency"),
                headers=fields,
                wall=span("wall"),
                backoff=True if "bad" in words else False if "good" in words else None,
                cost=number("cost"),
                adjust_delay="keep" not in words,
                retry_delay=span("retry"),
            )
        elif verb == "crawl-delay":
            delay = None if words[2] == "-" else nanos(words[2])
            self._say(f"crawl-delay {engine.crawl_delay(now, engine.scope(name), delay)}")
        elif verb == "prioritize":
            engine.prioritize(now, self._tickets[name], float(words[2]))
        elif verb == "cancel":
            engine.cancel(now, self._tickets[name])
        elif verb == "configure":
            try:
                engine.configure(now, engine.scope(name), json.loads(line[line.index("{") :]))
            except ThrottleError as error:
                self._say(str(error))
        elif verb == "hold":
            engine.hold(now, engine.scope(name), nanos(words[2]))
        elif verb == "adjust":
            sent, charged, cost = nanos(arguments["sent"]), float(arguments["from"]), float(arguments["to"])
            engine.adjust(now, engine.scope(name), sent, charged, cost)
        elif verb == "pause":
            engine.pause(now, engine.scope(name) if name else None)
        elif verb == "resume":
            engine.resume(now, engine.scope(name) if name else None)
        elif verb == "reset":
            engine.reset(now, engine.scope(name))
        elif verb == "peek":
            at, reason, scope = engine.peek(now, [engine.scope(each) for each in name.split(",")])
            self._say(f"peek {'unknown' if at is None else time(at)}{self._because(reason, scope)}")
        elif verb == "stats":
            self._stats(name)
        else:
            raise ValueError(f"no such event: {verb}")
        self._drain()

    def _submit(self, verb: str, name: str, scopes: list[str], arguments: dict[str, str]) -> None:
        engine, now = self._engine, self._now
        handles = [engine.scope(each) for each in scopes]
        more: dict[str, Any] = {"priority": float(arguments.get("priority", "0"))}
        if "cost" in arguments:
            more["cost"] = [float(cost) for cost in arguments["cost"].split(",")]
        waited = nanos(arguments.get("waited", "0"))
        try:
            if verb == "adopt":
                ago = nanos(arguments["ago"])
                self._tickets[name] = engine.adopt(now, handles, ago, waited=waited, **more)
                return
            at_once = engine.send_at_once(now, handles, **more) if verb == "send" else None
            if at_once is not None:
                self._tickets[name] = at_once
                self._sent(name, " at once")
                return
            delay = nanos(arguments.get("delay", "0"))
            self._tickets[name] = engine.submit(now, handles, delay=delay, waited=waited, **more)
        except (ThrottleError, ValueError) as error:
            self._say(f"refused {name}: {error}")

    def _stats(self, name: str) -> None:
        stats = self._engine.scope_stats(self._now, self._engine.scope(name))
        delay = time(round(stats.delay / 1000) * 1000)
        hold = "-" if stats.hold_until is None else time(stats.hold_until)
        quota = "-" if stats.quota_left is None else _shortest(stats.quota_left)
        self._say(
            f"stats delay={delay} step={stats.backoff_step} slots={stats.slots} inFlight={stats.in_flight}"
            f" waiting={stats.waiting} hold={hold} quota={quota} reason={stats.reason or '-'}"
        )

    def _run(self, until: int) -> None:
        while True:
            wake = self._drain()
            answer = min((at for at, _ in self._answers), default=None)
            upcoming = [at for at in (wake, answer) if at is not None]
            if not upcoming or min(upcoming) > until:
                break
            self._now = max(self._now, min(upcoming))
            if answer == min(upcoming):
                place = next(i for i, (at, _) in enumerate(self._answers) if at == answer)
                _, name = self._answers.pop(place)
                assert self._server is not None
                latency, status, fields = self._server
                self._say(f"done {name} {status}")
                ticket = self._tickets[name]
                self._engine.settle(self._now, ticket, status=status, latency=latency, headers=fields)
        self._now = max(self._now, until)
        self._drain()

    def _drain(self) -> int | None:
        decision = self._engine.poll(self._now)
        for ticket in decision.send:
            self._sent(next(name for name, known in self._tickets.items() if known == ticket))
        because = self._because(decision.reason, decision.scope)
        if decision.wake is None:
            self._say_rest(f"idle{because}")
        else:
            assert decision.wake > self._now, "a wait must be in the future"
            self._say_rest(f"wait {time(decision.wake)}{because}")
        return decision.wake

    def _sent(self, name: str, how: str = "") -> None:
        self._say(f"send {name}{how}")
        if self._server is not None:
            self._answers.append((self._now + self._server[0], name))

    def _because(self, reason: str | None, scope: int | None) -> str:
        return "" if reason is None else f" {reason} {'-' if scope is None else self._engine.name(scope)}"

    def _say_rest(self, rest: str) -> None:
        if self._rest != rest:
            self._rest = rest
            self._say(rest)

    def _say(self, what: str) -> None:
        self.lines.append(f"{time(self._now):>12} {what}")


def nanos(ms: str) -> int:
    """Milliseconds as a trace has them."""
    return round(float(ms) * 1e6)


def time(ns: int) -> str:
    """An instant as a transcript has it."""
    micros = ns // 1000
    return f"{micros // 1000}.{micros % 1000:03}"


def _field(word: str) -> tuple[str, str]:
    """``header=name:value``; ``_`` stands for a space."""
    name, _, value = word.removeprefix("header=").replace("_", " ").partition(":")
    return name, value


def _shortest(number: float) -> str:
    return str(int(number)) if math.trunc(number) == number else repr(number)


TRACES = sorted((Path(__file__).parents[2] / "tests" / "traces").glob("*.txt"))
STORIES = [story for file in TRACES for story in file.read_text("utf-8").split("\n== ")[1:]]

pytestmark = pytest.mark.skipif(not STORIES, reason="the traces are in the repository, not in the sdist")


def test_there_are_traces() -> None:
    assert len(STORIES) >= 47


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.partition("\n")[0])
def test_a_trace_is_played_as_natively(story: str) -> None:
    assert play(story).rstrip() == story.partition("\n")[2].rstrip()

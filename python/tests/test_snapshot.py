"""A snapshot that Node wrote is gone on with in Python, and back: one document for every host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from autothrottle._native import Engine

ROOT = Path(__file__).parents[2]
MS = 1_000_000
OPTIONS = {
    "seed": 7,
    "defaults": {
        "delay": 250,
        "slotDelay": 400,
        "concurrency": 3,
        "quota": {"limit": 10, "window": 60_000},
        "backoff": {"window": 5000},
    },
    "scopes": {"b.example": {"rampup": True, "delay": 0}},
}
WALL_MS = 1_800_000_000_000

# The same story in Node: restores what it is given, plays on, writes a snapshot and what comes next.
NODE = """
import { Engine } from 'autothrottle/engine'
const { options, snapshot, at, wall, until } = JSON.parse(process.argv[1])
const engine = new Engine(options)
if (snapshot) engine.restore(snapshot, at, wall)
const said = []
const scopes = ['a.example', 'b.example'].map((name) => engine.scope(name))
for (let each = 0; each < 12; each++) engine.submit(at, [scopes[each % 2]], { cost: 1.5 })
let now = at
while (now < until) {
  const ticket = engine.poll(now)
  if (ticket >= 0) {
    said.push(now)
    const bad = said.length % 4 === 0
    const headers = bad ? { 'retry-after': '1' } : {}
    engine.settle(now, ticket, { status: bad ? 503 : 200, latencyMs: 80.5, headers })
  } else {
    now = Math.min(engine.wakeAt, until)
  }
}
console.log(JSON.stringify({ said, snapshot: engine.snapshot(until, wall + until - at) }))
"""


def in_node(**story: Any) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None or not (ROOT / "dist" / "engine.js").exists():
        if os.environ.get("TEST_ALL") == "true" and (ROOT / "package.json").exists():
            pytest.fail("want Node and the built npm package: npm run build")
        pytest.skip("Node and the built npm package are not here")
    command = [node, "--input-type=module", "--eval", NODE, json.dumps(story)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def in_python(
    *, options: dict[str, Any], snapshot: dict[str, Any] | None, at: int, wall: int, until: int
) -> dict[str, Any]:
    engine = Engine(options)
    if snapshot is not None:
        engine.restore(snapshot, at * MS, wall * MS)
    said: list[float] = []
    scopes = [engine.scope("a.example"), engine.scope("b.example")]
    for each in range(12):
        engine.submit(at * MS, [scopes[each % 2]], cost=1.5)
    now = at * MS
    while now < until * MS:
        decision = engine.poll(now)
        for ticket in decision.send:
            said.append(now / MS)
            bad = len(said) % 4 == 0
            headers = {"Retry-After": "1"} if bad else {}
            engine.settle(now, ticket, status=503 if bad else 200, latency=80_500_000, headers=headers)
        if not decision.send:
            now = until * MS if decision.wake is None else min(decision.wake, until * MS)
    return {"said": said, "snapshot": engine.snapshot(until * MS, (wall + until - at) * MS)}


def test_the_first_half_in_one_host_and_the_second_in_the_other() -> None:
    first: dict[str, Any] = {"options": OPTIONS, "snapshot": None, "at": 0, "wall": WALL_MS, "until": 4000}
    node, python = in_node(**first), in_python(**first)
    assert python == node
    assert len(node["said"]) > 3
    assert node["snapshot"]["scopes"]["a.example"]

    second = {**first, "at": 100, "wall": WALL_MS + 9000, "until": 30_000}
    from_node = in_python(**{**second, "snapshot": node["snapshot"]})
    from_python = in_node(**{**second, "snapshot": python["snapshot"]})
    assert from_python == from_node
    assert from_node["said"] != in_python(**second)["said"], "the snapshot is worth something"


def test_a_snapshot_crosses_and_comes_back_as_it_was() -> None:
    engine = Engine(OPTIONS)
    scope = engine.scope('ü "quoted"\n.example')
    ticket = engine.submit(0, [scope])
    engine.poll(0)
    engine.settle(MS, ticket, status=429, headers={"retry-after": "7"})
    taken = engine.snapshot(2 * MS, WALL_MS * MS)
    assert taken["wallMs"] == WALL_MS
    again = Engine(OPTIONS)
    again.restore(taken, 2 * MS, WALL_MS * MS)
    assert again.snapshot(2 * MS, WALL_MS * MS) == taken

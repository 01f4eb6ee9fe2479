"""Every trace through the native module: the transcript must be the engine's own, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from player import play

TRACES = Path(__file__).parents[2] / "tests" / "traces.txt"
STORIES = TRACES.read_text("utf-8").split("\n== ")[1:] if TRACES.exists() else []

pytestmark = pytest.mark.skipif(not STORIES, reason="the traces are in the repository, not in the sdist")


def test_there_are_traces() -> None:
    assert len(STORIES) >= 47


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.partition("\n")[0])
def test_a_trace_is_played_as_natively(story: str) -> None:
    assert play(story).rstrip() == story.partition("\n")[2].rstrip()

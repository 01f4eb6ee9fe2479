"""Every trace through the native module: the transcript must be the engine's own, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from player import play

TRACES = Path(__file__).parents[2] / "tests" / "traces"
NAMES = sorted(path.stem for path in TRACES.glob("*.trace"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the traces are in the repository, not in the sdist")


def test_there_are_traces() -> None:
    assert len(NAMES) >= 13


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_is_played_as_natively(name: str) -> None:
    golden = (TRACES / f"{name}.golden").read_text()
    assert play((TRACES / f"{name}.trace").read_text()) == golden

"""The table of the draft's statements names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLE = Path(__file__).with_name("statements.md").read_text(encoding="utf-8")


def test_each_statement_names_tests_that_are_there() -> None:
    rows = [line.split("|")[1:4] for line in TABLE.splitlines() if re.match(r"\| \d", line)]
    assert [int(number) for number, _, _ in rows] == list(range(1, 74))
    files = [*(ROOT / "python" / "tests").rglob("*.py"), *(ROOT / "tests" / "native").glob("*.rs")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    there = set(re.findall(r"(?:def|fn) (\w+)\(", sources))
    traces = set(re.findall(r"^== (.+)$", (ROOT / "tests" / "traces.txt").read_text("utf-8"), re.MULTILINE))
    for number, _, shown in rows:
        named = re.findall(r"(trace )?`([\w-]+)`", shown)
        assert named or "docs/" in shown or "**not**" in shown, number
        for is_trace, name in named:
            if is_trace or "_" in name:
                assert name in (traces if is_trace else there), f"{number}: {name}"

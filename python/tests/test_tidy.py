"""House rules that no linter knows."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
FILES = [path for folder in ("src", "tests", "examples", "scripts") for path in (HERE / folder).rglob("*.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_each_file_opens_with_its_idea_and_fits_in_a_head(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert len(text.splitlines()) <= 600


def test_pages_fit_in_110_columns() -> None:
    for page in HERE.glob("*.md"):
        wide = [line for line in page.read_text(encoding="utf-8").splitlines() if len(line) > 110]
        assert [line for line in wide if not line.startswith("|")] == []


def test_the_workflow_builds_the_wheels_that_are_built_here() -> None:
    workflow = (HERE.parent / ".github" / "workflows" / "python.yml").read_text(encoding="utf-8")
    script = (HERE / "scripts" / "wheels.py").read_text(encoding="utf-8")
    there = dict(re.findall(r"\{ name: ([\w-]+), .*?target: ([\w-]+)", workflow))
    here = dict(re.findall(r'^    "([\w-]+)": \("([\w-]+)"', script, re.MULTILINE))
    # Windows' own linker is not to be had here.
    assert here == {**there, "windows-x86_64": "x86_64-pc-windows-gnu"}
    assert len(here) == 9


def test_nothing_happens_at_import() -> None:
    program = """
import sys, threading, autothrottle, autothrottle.testing
assert threading.active_count() == 1
assert not {"httpx", "aiohttp", "crawlee", "redis", "requests", "scrapy"} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(HERE / "src")},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


# ``docs/python-api.md`` is what the sources say, and has every public name.

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "api.py"
spec = importlib.util.spec_from_file_location("api", SCRIPT)
assert spec is not None
assert spec.loader is not None
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)

# Names of types that another page or a signature explains.
ELSEWHERE = {
    # settings.md has each option.
    *api.public_names(["options"]),
    # A list of words.
    *("Reason", "Event"),
}


def test_the_page_is_what_the_sources_say() -> None:
    assert api.PAGE.read_text(encoding="utf-8") == api.api(), "python python/scripts/api.py writes it anew"


def test_every_public_name_is_on_the_page() -> None:
    page = api.PAGE.read_text(encoding="utf-8")
    names = api.public_names()
    assert len(names) > 60
    rows = {
        name for row in re.findall(r"^\| `(.*?)`", page, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    assert names - rows - ELSEWHERE == set()

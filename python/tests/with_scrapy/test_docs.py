"""The code in docs/scrapy.md, as it stands there: settings start a crawl, managers serve a request. The table
of the draft's statements names tests that are there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Bench, virtual
from scrapy.http import Response
from scrapy.utils.misc import load_object

from autothrottle._native import SCRAPY_KEYS as KEYS
from autothrottle._native import SCRAPY_SETTINGS as SETTINGS
from autothrottle.scrapy import Downloader, ThrottlingManager, ThrottlingScopeManager

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "scrapy.md").read_text(encoding="utf-8")
TABLE = Path(__file__).with_name("statements.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 4


def test_every_setting_and_key_is_on_the_page() -> None:
    # Scrapy reads these itself.
    own = {"RETRY_TIMES", "RETRY_HTTP_CODES", "DOWNLOAD_TIMEOUT", "USER_AGENT", "ROBOTSTXT_USER_AGENT"}
    assert [name for name in SETTINGS if name not in own and f"`{name}`" not in PAGE] == []
    # The shorter words of Node's options mean the same.
    short = {"status_codes", "errors", "factor"}
    keys = {key for section in KEYS.values() for key in section} - short
    assert [key for key in keys if f"`{key}`" not in PAGE and f'"{key}"' not in PAGE] == []


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[-1].strip())
@virtual
async def test_a_block_runs(block: str) -> None:
    names: dict[str, object] = {}
    exec(compile(block, "docs/scrapy.md", "exec"), names)
    settings = {name: value for name, value in names.items() if name.isupper()}
    if "DOWNLOADER" in settings:
        assert load_object(str(settings.pop("DOWNLOADER"))) is Downloader
    for value in names.values():
        if not isinstance(value, type) or value.__module__ != "builtins":
            continue
        is_manager = issubclass(value, ThrottlingManager)
        assert is_manager or issubclass(value, ThrottlingScopeManager)
        settings["THROTTLING_MANAGER" if is_manager else "THROTTLING_SCOPE_MANAGER"] = value
    assert settings
    bench = Bench(settings)
    if "THROTTLING_SHARED_REDIS" in settings:
        return  # It asks Redis with its first request: tests/shared/test_scrapy.py has such spiders.
    answered = bench.get("https://api.example/items")
    await bench.clock.advance(5)
    response = answered.result()
    assert isinstance(response, Response)
    assert response.status == 200


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

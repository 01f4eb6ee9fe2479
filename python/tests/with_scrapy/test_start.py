"""What a crawl says and takes when it begins: jitter in every form, and the pace of each scope."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Bench, crawler_of, virtual

from autothrottle.scrapy import Downloader

SOURCE = Path(__file__).resolve().parents[2] / "src"

SPIDER = """
from scrapy import Spider

class Pages(Spider):
    name = "pages"
    start_urls = ["data:,page"]
    custom_settings = {"DOWNLOADER": "autothrottle.scrapy.Downloader", "TELNETCONSOLE_ENABLED": False}

    def parse(self, response):
        self.logger.info("jitter is %r", self.settings["DOWNLOAD_DELAY_JITTER"])
"""


@pytest.mark.parametrize("name", ["RANDOMIZE_DOWNLOAD_DELAY", "DOWNLOAD_DELAY_JITTER"])
@pytest.mark.parametrize("value", ["0.2", [-0.1, 0.3], "[-0.1, 0.3]", "False", True, 0])
@pytest.mark.filterwarnings("ignore:The RANDOMIZE_DOWNLOAD_DELAY setting is deprecated")
def test_jitter_in_any_form_lets_a_crawl_begin(name: str, value: Any) -> None:
    downloader = Downloader(crawler_of({name: value}))
    assert downloader.settings.get(name) == value, "what was typed stays"
    downloader.close()


def test_a_command_line_starts_a_crawl(tmp_path: Path) -> None:
    program = tmp_path / "pages.py"
    program.write_text(SPIDER)
    command = [sys.executable, "-m", "scrapy", "runspider", str(program)]
    for setting in ("RANDOMIZE_DOWNLOAD_DELAY=0.2", "DOWNLOAD_DELAY_JITTER=[-0.1, 0.3]"):
        done = subprocess.run(
            [*command, "-s", setting],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "jitter is " in done.stderr, done.stderr
        assert "'finish_reason': 'finished'" in done.stderr


def lines(settings: dict[str, Any], caplog: Any, **attributes: Any) -> list[tuple[str, str]]:
    """What the downloader logs when it is made."""
    with caplog.at_level(logging.INFO, "autothrottle.scrapy"):
        Bench(settings, **attributes)
    return [
        (each.levelname, each.getMessage()) for each in caplog.records if each.name == "autothrottle.scrapy"
    ]


OTHERS = "pace of hosts without settings of their own: at most 1 a second, by"


@virtual
async def test_the_pace_is_told_and_who_set_it(caplog: Any) -> None:
    told = lines({"THROTTLING_SCOPES": {"api.example": {"rampup": True}, "b.example": {"rate": 5}}}, caplog)
    assert told == [
        ("INFO", f"{OTHERS} DOWNLOAD_DELAY = 1 (default), CONCURRENT_REQUESTS_PER_DOMAIN = 1 (default)"),
        ("INFO", "pace of api.example: rampup finds it"),
        (
            "INFO",
            "pace of b.example: at most 5 a second, by rate: 0.2 s between sends",
        ),
    ]


@pytest.mark.parametrize(
    ("settings", "attributes", "name"),
    [
        ({"DOWNLOAD_DELAY": 0.25}, {}, "DOWNLOAD_DELAY"),
        ({}, {"download_delay": 0.25}, "spider.download_delay"),
    ],
)
def test_a_default_that_slows_down_what_was_typed_is_a_warning(
    settings: Any, attributes: Any, name: str, caplog: Any
) -> None:
    ((level, line),) = lines(settings, caplog, **attributes)
    assert level == "WARNING"
    defaults = "DOWNLOAD_DELAY_PER_SLOT = 1 (default), CONCURRENT_REQUESTS_PER_DOMAIN = 1 (default)"
    remedy = (
        "DOWNLOAD_DELAY_PER_SLOT = 0 with CONCURRENT_REQUESTS_PER_DOMAIN = 8 gives the pace of DOWNLOAD_DELAY"
    )
    assert line == f"{OTHERS} {name} = 0.25, {defaults}; {remedy}, as in Scrapy"


def test_a_delay_in_download_slots_means_what_it_means_in_scrapy(caplog: Any) -> None:
    told = lines({"DOWNLOAD_SLOTS": {"a.example": {"delay": 0.4}}}, caplog)
    assert told[1][0] == "INFO"
    assert 'at most 2.5 a second, by DOWNLOAD_SLOTS["a.example"]["delay"] = 0.4' in told[1][1]


def test_a_target_of_rampup_without_rampup_is_told(caplog: Any) -> None:
    target = {"RAMPUP_BACKOFF_TARGET": 3}
    warned = [line for level, line in lines(target, caplog) if level == "WARNING" and "RAMPUP" in line]
    assert len(warned) == 1
    assert warned[0].startswith("RAMPUP_BACKOFF_TARGET has no effect without rampup, and no scope has it: ")
    for more in (
        {"THROTTLING_SCOPES": {"api.example": {"rampup": True}}},
        {"THROTTLING_DEFAULTS": {"rampup": True}},
    ):
        caplog.clear()
        assert not [line for _, line in lines({**target, **more}, caplog) if "has no effect" in line]


def test_a_scope_that_no_url_has_is_told(caplog: Any) -> None:
    told = lines({"THROTTLING_SCOPES": {"API.example": {"delay": 2}, "users": {"delay": 2}}}, caplog)
    want = "the scope API.example is that of no URL: hosts are in small letters, want api.example"
    assert [line for level, line in told if level == "WARNING"] == [want]


@virtual
async def test_what_has_no_effect_is_told_in_scrapys_names(caplog: Any) -> None:
    bench = Bench({"CONCURRENT_REQUESTS_PER_DOMAIN": 16})
    bench.get("https://a.example/")
    await bench.clock.advance(1)
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning == (
        "CONCURRENT_REQUESTS_PER_DOMAIN has no effect: 16 slots; with 1 s between sends they are all in use "
        "only while answers take longer than 15 s"
    )

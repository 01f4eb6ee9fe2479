"""Scrapy's settings as the engine's options: every name, seconds, what was typed and what was not."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Bench, crawler_of, virtual
from scrapy import Spider
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from autothrottle._native import SCRAPY_KEYS as KEYS
from autothrottle._native import SCRAPY_SETTINGS as SETTINGS
from autothrottle._native import Engine
from autothrottle.errors import ConfigError
from autothrottle.scrapy import Downloader, ThrottlingManager, ThrottlingScopeManager
from autothrottle.scrapy._options import Options, read_options


def read(settings: dict[str, Any], priority: str = "project") -> Options:
    made = Settings()
    made.update(settings, priority)
    return read_options(made)


def test_every_setting_of_the_draft_by_its_own_name() -> None:
    options = read(
        {
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            "DOWNLOAD_DELAY": 0.3,
            "DOWNLOAD_DELAY_PER_SLOT": 1.1,
            "RANDOMIZE_DOWNLOAD_DELAY": [-0.1, 0.3],
            "THROTTLING_SCOPES": {
                "api.example": {
                    "concurrency": 2,
                    "delay": 5,
                    "jitter": (-0.1, 0.3),
                    "rampup": True,
                    "quota": 500.0,
                    "window": 30,
                    "ignore_robots_txt": True,
                    "backoff": {
                        "http_codes": [429, 503],
                        "exceptions": ["builtins.IOError"],
                        "delay_factor": 1.2,
                        "max_delay": 180.0,
                        "min_delay": 5.0,
                        "jitter": [0.01, 0.33],
                        "concurrency_factor": 0.8,
                        "window": 20,
                    },
                }
            },
            "DOWNLOAD_SLOTS": {
                "quotes.toscrape.com": {"concurrency": 1, "delay": 2, "randomize_delay": False}
            },
            "BACKOFF_HTTP_CODES": ["429", 503],
            "BACKOFF_EXCEPTIONS": ["twisted.internet.error.TCPTimedOutError", OSError],
            "BACKOFF_DELAY_FACTOR": 3,
            "BACKOFF_MIN_DELAY": 2,
            "BACKOFF_MAX_DELAY": 200,
            "BACKOFF_WINDOW": 30,
            "BACKOFF_JITTER": 0.1,
            "BACKOFF_CONCURRENCY_DECREASE_FACTOR": 0.25,
            "RAMPUP_BACKOFF_TARGET": [1, 3],
            "THROTTLING_WINDOW": 10,
            "ROBOTSTXT_OBEY": True,
            "THROTTLING_ROBOTSTXT_MAX_DELAY": 30,
            "REDIRECT_MAX_DELAY": 12,
            "DELAYED_REQUESTS_WARN_THRESHOLD": 100,
            "AUTOTHROTTLE_DEBUG": True,
        }
    )
    assert options.engine == {
        "maxInFlight": 32,
        "warnThreshold": 100,
        "defaults": {
            "concurrency": 8,
            "delay": 300,
            "downAfter": 60_000,
            "slotDelay": 1100,
            "jitter": [-0.1, 0.3],
            "window": 10_000,
            "backoff": {
                "statusCodes": [429, 503],
                "factor": 3,
                "minDelay": 2000,
                "maxDelay": 200_000,
                "maxHold": 200_000,
                "window": 30_000,
                "jitter": 0.1,
                "concurrencyFactor": 0.25,
            },
        },
        "scopes": {
            "quotes.toscrape.com": {"concurrency": 1, "delay": 2000, "jitter": False},
            "api.example": {
                "concurrency": 2,
                "delay": 5000,
                "jitter": [-0.1, 0.3],
                "rampup": {"backoffTarget": [1, 3]},
                "quota": 500.0,
                "window": 30_000,
                "ignoreRobotsTxt": True,
                "backoff": {
                    "statusCodes": [429, 503],
                    "factor": 1.2,
                    "maxDelay": 180_000,
                    "maxHold": 180_000,
                    "minDelay": 5000,
                    "jitter": [0.01, 0.33],
                    "concurrencyFactor": 0.8,
                    "window": 20_000,
                },
            },
        },
    }
    assert issubclass(OSError, options.exceptions[None])
    assert options.exceptions["api.example"] == (OSError,)
    assert options.obeys_robots
    assert (options.robots_max_delay, options.redirect_max_delay) == (30, 12)
    assert (options.warn_threshold, options.debug) == (100, True)


def defaults_of(settings: dict[str, Any]) -> dict[str, Any]:
    """The result for the defaults, but for the draft's backoff."""
    defaults = {**read(settings).engine["defaults"]}
    assert {key: defaults.pop(key) for key in DRAFT} == DRAFT
    return defaults


DRAFT: dict[str, Any] = {
    "backoff": {"statusCodes": [429, 502, 503, 504, 520, 521, 522, 523, 524], "maxHold": 300_000},
    "downAfter": 60_000,
}
"""Where the engine's own defaults are others: the draft's, and the end of a host that is away."""


def test_one_error_lists_the_problems_of_names_and_of_values() -> None:
    scopes = {"a.b": {"quota": -1}, "c": {"rampup": "yes"}}
    with pytest.raises(ConfigError) as caught:
        read({"THROTTLING_SCOPE": 1, "DOWNLOAD_DELAY": -1, "THROTTLING_SCOPES": scopes})
    assert sorted(problem.path for problem in caught.value.problems) == [
        "DOWNLOAD_DELAY",
        "THROTTLING_SCOPE",
        'THROTTLING_SCOPES["a.b"]["quota"]',
        'THROTTLING_SCOPES["c"]["rampup"]',
    ]


def test_a_setting_that_was_not_typed_keeps_the_drafts_default() -> None:
    assert read({}).engine == {"defaults": DRAFT, "scopes": {}}
    bench = Bench({})
    slot = bench.downloader._get_slot(_request())[1]
    assert (slot.delay, slot.concurrency) == (1.0, 1), "and not Scrapy's 0 and 8"


def _request() -> Any:
    from scrapy import Request

    return Request("https://a.example/")


def test_autothrottle_keeps_scrapys_defaults_beside_it() -> None:
    numbers = {"AUTOTHROTTLE_START_DELAY": 2, "AUTOTHROTTLE_MAX_DELAY": 30}
    assert defaults_of(numbers) == {}, "off without AUTOTHROTTLE_ENABLED"
    on = {**numbers, "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_TARGET_CONCURRENCY": 1.5}
    assert defaults_of(on) == {
        "delay": 0,
        "slotDelay": 0,
        "concurrency": 8,
        "autothrottle": {"startDelay": 2000, "maxDelay": 30_000, "targetConcurrency": 1.5},
    }
    slots = {"a": {"delay": 3}, "b": {"delay": 3, "throttle": False}}
    scopes = read({"AUTOTHROTTLE_ENABLED": True, "DOWNLOAD_SLOTS": slots}).engine["scopes"]
    assert scopes == {
        "a": {"autothrottle": {"startDelay": 3000}},
        "b": {"delay": 3000, "autothrottle": False},
    }


def test_a_slot_rests_for_a_second_where_the_delay_is_shorter() -> None:
    assert defaults_of({"DOWNLOAD_DELAY": 0.3}) == {"delay": 300, "slotDelay": 1000}
    assert defaults_of({"DOWNLOAD_DELAY": 2}) == {"delay": 2000}
    exact = {"DOWNLOAD_DELAY": 0, "DOWNLOAD_DELAY_PER_SLOT": 0}
    assert defaults_of(exact) == {"delay": 0, "slotDelay": 0}
    assert defaults_of({"THROTTLING_SCOPES": {"a": {"delay": 0.2}}}) == {"slotDelay": 1000}


def test_from_the_command_line_all_is_text() -> None:
    text = {
        "DOWNLOAD_DELAY": "0.5",
        "CONCURRENT_REQUESTS": "4",
        "BACKOFF_HTTP_CODES": "429,503",
        "RANDOMIZE_DOWNLOAD_DELAY": "False",
        "THROTTLING_SCOPES": '{"a": {"rampup": true, "delay": 2}}',
    }
    engine = read(text, "cmdline").engine
    assert engine["maxInFlight"] == 4
    assert engine["defaults"]["delay"] == 500
    assert engine["defaults"]["jitter"] is False
    assert engine["defaults"]["backoff"] == {"statusCodes": [429, 503], "maxHold": 300_000}
    assert engine["scopes"] == {"a": {"rampup": True, "delay": 2000}}


def test_the_drafts_first_names() -> None:
    made = read({"THROTTLING_SCOPE_CONCURRENCY": 3, "THROTTLER": "builtins.dict", "THROTTLER_DEBUG": True})
    assert made.engine["defaults"]["concurrency"] == 3
    assert (made.manager, made.debug) == (dict, True)


def test_a_pace_on_the_spider() -> None:
    class Slow(Spider):
        name = "slow"
        download_delay = 3

    bench = Bench({"DOWNLOAD_DELAY": 1}, Slow)
    assert bench.downloader._get_slot(_request())[1].delay == 3


def test_of_two_names_for_jitter_the_nearer_counts() -> None:
    made = Settings()
    made.set("DOWNLOAD_DELAY_JITTER", 0.2, "project")
    made.set("RANDOMIZE_DOWNLOAD_DELAY", False, "spider")
    assert read_options(made).engine["defaults"]["jitter"] is False
    made.set("DOWNLOAD_DELAY_JITTER", 0.1, "cmdline")
    assert read_options(made).engine["defaults"]["jitter"] == 0.1


def test_defaults_of_all_scopes_and_a_rate() -> None:
    settings = {"DOWNLOAD_DELAY": 1, "THROTTLING_DEFAULTS": {"rate": "100/min", "follow_rate_limit": True}}
    assert defaults_of(settings) == {"rate": "100/min", "followRateLimit": True}
    own = {"rate": {"limit": 3, "window": 2, "burst": 5}, "quota": [10, {"limit": 5, "window": 3600}]}
    assert read({"THROTTLING_SCOPES": {"a": own}}).engine["scopes"] == {
        "a": {
            "rate": {"limit": 3, "window": 2000, "burst": 5},
            "quota": [10, {"limit": 5, "window": 3_600_000}],
        }
    }


SCRAPYS_OWN = {
    *("RETRY_ENABLED", "RETRY_TIMES", "RETRY_HTTP_CODES"),
    *("DOWNLOAD_TIMEOUT", "USER_AGENT", "ROBOTSTXT_USER_AGENT"),
}
"""Scrapy reads these itself."""


def test_every_name_in_the_table_is_read() -> None:
    usual = read({})
    for name in set(SETTINGS) - SCRAPYS_OWN:
        value: Any = 7
        if name in ("THROTTLING_SCOPES", "DOWNLOAD_SLOTS"):
            value = {"a": {"delay": 7}}
        elif name == "THROTTLING_DEFAULTS":
            value = {"delay": 7}
        elif name == "BACKOFF_HTTP_CODES":
            value = [418]
        elif name == "BACKOFF_EXCEPTIONS":
            value = [KeyError]
        elif name == "THROTTLING_SCOPE_MANAGER":
            value = ThrottlingScopeManager
        elif name in ("ROBOTSTXT_OBEY", "AUTOTHROTTLE_ENABLED", "AUTOTHROTTLE_DEBUG", "THROTTLER_DEBUG"):
            value = True
        elif name == "THROTTLING_ROBOTSTXT_OBEY":
            value = False
        if name in ("THROTTLING_MANAGER", "THROTTLER"):
            continue  # test_managers.py
        beside: dict[str, Any] = {}
        if name.startswith("AUTOTHROTTLE_") and name != "AUTOTHROTTLE_DEBUG":
            beside = {"AUTOTHROTTLE_ENABLED": True} if name != "AUTOTHROTTLE_ENABLED" else {}
        if name == "RAMPUP_BACKOFF_TARGET":
            beside = {"THROTTLING_SCOPES": {"a": {"rampup": True}}}
        if name == "THROTTLING_ROBOTSTXT_OBEY":
            beside = {"ROBOTSTXT_OBEY": True}
        without = read(beside) if beside else usual
        assert read({**beside, name: value}) != without, name


def test_all_problems_at_once_in_the_words_that_were_typed() -> None:
    settings: dict[str, Any] = {
        "THROTTLING_SCOPE": {},
        "BACKOFF_MIN_DELAY": -1,
        "DOWNLOAD_DELAY": "fast",
        "THROTTLING_SCOPES": {"api.example": {"dealy": 3, "backoff": {"delay_factor": 0.5}}},
    }
    with pytest.raises(ConfigError) as caught:
        Bench(settings)
    text = str(caught.value)
    assert "THROTTLING_SCOPE: want a known setting (did you mean THROTTLING_SCOPES?); got {}" in text
    assert (
        'THROTTLING_SCOPES["api.example"]["dealy"]: want a known setting (did you mean delay?); got 3' in text
    )
    del settings["THROTTLING_SCOPE"]
    del settings["THROTTLING_SCOPES"]["api.example"]["dealy"]
    with pytest.raises(ConfigError) as caught:
        Bench(settings)
    text = str(caught.value)
    assert "BACKOFF_MIN_DELAY: want seconds above 0" in text
    assert "DOWNLOAD_DELAY: want seconds from 0" in text
    assert "got 'fast'" in text
    assert 'THROTTLING_SCOPES["api.example"]["backoff"]["delay_factor"]: want a number above 1' in text


def test_a_class_that_is_not_there() -> None:
    for name in ("THROTTLING_MANAGER", "THROTTLING_SCOPE_MANAGER"):
        with pytest.raises(ConfigError, match=f"^{name}: want a class or its import path .*got .*nowhere"):
            Bench({name: "nowhere.Class"})


def test_an_exception_that_is_not_there_is_named_by_its_place() -> None:
    typed: Any
    for typed in ([OSError, "nowhere.Class"], "builtins.OSError, nowhere.Class"):
        with pytest.raises(ConfigError) as caught:
            Bench({"BACKOFF_EXCEPTIONS": typed})
        [problem] = caught.value.problems
        assert (problem.path, problem.got) == ("BACKOFF_EXCEPTIONS[1]", "'nowhere.Class'")
        assert problem.want.startswith("a class or its import path (")
    scopes = {"api.example": {"backoff": {"exceptions": [7]}}}
    with pytest.raises(ConfigError) as caught:
        Bench({"THROTTLING_SCOPES": scopes})
    assert str(caught.value) == (
        'THROTTLING_SCOPES["api.example"]["backoff"]["exceptions"][0]: '
        "want a class of exceptions or its import path; got 7"
    )


def test_a_setting_of_somebody_else_is_no_problem() -> None:
    crawler = crawler_of({"MY_DELAY": 3, "HTTPCACHE_ENABLED": True})
    assert read_options(crawler.settings).engine == {"defaults": DRAFT, "scopes": {}}


def test_spiders_that_share_their_limits_say_a_name() -> None:
    way = {"THROTTLING_SHARED_REDIS": "redis://localhost/0", "THROTTLING_SHARED_NAME": "crawl"}
    options = read(way)
    assert (options.shared_url, options.shared_name) == ("redis://localhost/0", "crawl")
    assert options.shared_offline is None
    assert read({**way, "THROTTLING_SHARED_OFFLINE": "wait"}).shared_offline == "wait"
    assert (options.shared_members, read({**way, "THROTTLING_SHARED_MEMBERS": "3"}).shared_members) == (
        None,
        3,
    )
    assert read({}).shared_url is None
    for settings, path, want in (
        ({**way, "THROTTLING_SHARED_REDIS": 6379}, "THROTTLING_SHARED_REDIS", "redis://host:6379/0"),
        ({"THROTTLING_SHARED_REDIS": "redis://a"}, "THROTTLING_SHARED_NAME", "the same one share"),
        ({**way, "THROTTLING_SHARED_NAME": ""}, "THROTTLING_SHARED_NAME", "not empty"),
        ({**way, "THROTTLING_SHARED_OFFLINE": "no"}, "THROTTLING_SHARED_OFFLINE", '"wait"'),
        ({**way, "THROTTLING_SHARED_MEMBERS": 0}, "THROTTLING_SHARED_MEMBERS", "a whole number from 1"),
        ({"THROTTLING_SHARED_NAME": "crawl"}, "THROTTLING_SHARED_NAME", "THROTTLING_SHARED_REDIS"),
        (
            {**way, "THROTTLING_SCOPE_MANAGER": ThrottlingScopeManager},
            "THROTTLING_SHARED_REDIS",
            "no scope manager",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            read(settings)
        found = {problem.path: problem.want for problem in caught.value.problems}
        assert want in found[path]
    with pytest.raises(ConfigError, match="a URL of Redis"):
        Bench({**way, "THROTTLING_SHARED_REDIS": "http://localhost/0"})


LINES = Path(__file__).resolve().parents[3] / "tests" / "vectors" / "scrapy.jsonl"


def checked(settings: dict[str, Any]) -> Options:
    """The meaning of the settings, if the engine takes it."""
    options = read(settings)
    try:
        Engine(options.engine).close()
    except ConfigError as error:
        raise options.translate(error) from None
    return options


VECTORS = [json.loads(line) for line in LINES.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_settings_are_those_of_typescript(vector: dict[str, Any]) -> None:
    if "problems" in vector:
        with pytest.raises(ConfigError) as caught:
            checked(vector["settings"])
        places = [
            place + "".join(f"[{json.dumps(key)}]" for key in keys) for place, *keys in vector["problems"]
        ]
        assert sorted(problem.path for problem in caught.value.problems) == sorted(places)
        return
    options = checked(vector["settings"])
    engine = {**options.engine}
    assert engine.pop("defaults") == DRAFT | vector.get("defaults", {})
    assert engine.pop("scopes") == vector.get("scopes", {})
    assert engine == vector.get("root", {})
    driver = vector.get("driver", {})
    assert options.debug == driver.get("debug", False)
    assert options.redirect_max_delay == driver.get("redirectMaxDelay", 300_000) / 1000
    assert options.robots_max_delay == driver.get("robotsMaxDelay", 60_000) / 1000


# The log lines and settings at the start of a crawl: jitter in every form, and the pace of each scope.

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
    """The log lines of a downloader that is made."""
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
async def test_a_setting_without_effect_is_told_in_scrapys_names(caplog: Any) -> None:
    bench = Bench({"CONCURRENT_REQUESTS_PER_DOMAIN": 16})
    bench.get("https://a.example/")
    await bench.clock.advance(1)
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning == (
        "CONCURRENT_REQUESTS_PER_DOMAIN has no effect: 16 slots; with 1 s between sends they are all in use "
        "only while answers take longer than 15 s"
    )


# The code in docs/scrapy.md, as it stands there: settings start a crawl, managers serve a request. The table
# of the draft's statements names tests that are there.

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "scrapy.md").read_text(encoding="utf-8")
TABLE = Path(__file__).with_name("statements.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 4


def test_every_setting_and_key_is_on_the_page() -> None:
    assert [name for name in SETTINGS if name not in SCRAPYS_OWN and f"`{name}`" not in PAGE] == []
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
    stories = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "traces").glob("*.txt"))
    traces = set(re.findall(r"^== (.+)$", stories, re.MULTILINE))
    for number, _, shown in rows:
        named = re.findall(r"(trace )?`([\w-]+)`", shown)
        assert named or "docs/" in shown or "**not**" in shown, number
        for is_trace, name in named:
            if is_trace or "_" in name:
                assert name in (traces if is_trace else there), f"{number}: {name}"

"""Options in Python's case: what is typed, what the engine reads, and what errors say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autothrottle import ConfigError, Problem, ThreadThrottle, Throttle
from autothrottle._convert import convert_options, described, python_path
from autothrottle._native import DRIVER, SECTIONS
from autothrottle.options import BackoffOptions, ThrottleOptions


def problems(**options: Any) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        Throttle(**options)
    return caught.value.problems


def engine(**options: Any) -> dict[str, Any]:
    made = convert_options(options, lambda _: True)
    assert made.problems == []
    return made.engine


def test_snake_case_and_seconds_become_the_engines_own() -> None:
    assert engine(
        slot_delay=0.25,
        jitter=(-0.1, 0.3),
        rate={"limit": 5, "window": timedelta(minutes=1)},
        quota=[{"limit": 10, "window": 3600}, 5],
        backoff={"status_codes": {429}, "max_delay": 60, "concurrency_factor": 0.5},
        scopes={"api.example": {"follow_rate_limit": True, "rampup": {"min_delay": 0.3}}},
        retry={"limit": 2, "max_retry_after": timedelta(hours=1)},
        stall_after=900,
    ) == {
        "slotDelay": 250,
        "jitter": [-0.1, 0.3],
        "rate": {"limit": 5, "window": 60_000},
        "quota": [{"limit": 10, "window": 3_600_000}, 5],
        "backoff": {"statusCodes": [429], "maxDelay": 60_000, "concurrencyFactor": 0.5},
        "scopes": {"api.example": {"followRateLimit": True, "rampup": {"minDelay": 300}}},
        "retry": {"limit": 2, "maxRetryAfter": 3_600_000},
        "stallAfter": 900_000,
    }


def test_the_types_and_the_native_table_have_the_same_settings() -> None:
    shared = {*SECTIONS["Scope"], *SECTIONS["Root"]}
    assert set(ThrottleOptions.__annotations__) == shared
    assert set(BackoffOptions.__annotations__) == set(SECTIONS["Backoff"])


def test_every_setting_of_the_table_arrives() -> None:
    for section, keys in SECTIONS.items():
        for key, (camel, kind) in keys.items():
            if section == "Root" and key not in DRIVER and kind == "plain":
                assert engine(**{key: 7}) == {camel: 7}
            if section == "Scope" and kind == "time":
                assert engine(scopes={"a": {key: 1.5}}) == {"scopes": {"a": {camel: 1500.0}}}


def test_all_problems_are_told_at_once_as_they_were_typed() -> None:
    assert problems(
        delay=-1,
        slotDelay=3,
        scopes={
            "api.example": {"slot_delay": timedelta(seconds=-2), "backoff": {"factr": 3, "max_delay": "x"}}
        },
        retry={},
        release="never",
        get_scopes=5,
        hints={"api.example": {"reset_unit": "h"}},
        clock=5,
        nonsense_of_mine=1,
    ) == [
        ("slotDelay", "a known setting (did you mean slot_delay?)", "3"),
        ('scopes["api.example"].backoff.factr', "a known setting (did you mean factor?)", "3"),
        ("nonsense_of_mine", "a known setting", "1"),
        ("clock", "an object with now, wall, call_later and wait", "5"),
        ("get_scopes", "a function", "5"),
        ('hints["api.example"].reset_unit', '"s" or "ms"', '"h"'),
        ("release", '"headers" or "body"', '"never"'),
        ("delay", "seconds from 0 to a year", "-1"),
        ('scopes["api.example"].slot_delay', "seconds from 0 to a year", "a timedelta of -2 s"),
        ('scopes["api.example"].backoff.max_delay', "seconds above 0, at most a year", '"x"'),
        ("retry.limit", "a whole number from 1 to 1000000", "nothing"),
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"delay": True}, ("delay", "seconds from 0 to a year", "true")),
        ({"delay": float("nan")}, ("delay", "seconds from 0 to a year", "nan")),
        ({"delay": float("inf")}, ("delay", "seconds from 0 to a year", "inf")),
        ({"delay": [1]}, ("delay", "seconds from 0 to a year", "a list of 1")),
        ({"defaults": 5}, ("defaults", "an object", "5")),
        ({"scopes": {"a b": 5}}, ('scopes["a b"]', "an object", "5")),
        (
            {"scopes": {"a b": {"delay": object()}}},
            ('scopes["a b"].delay', "seconds from 0 to a year", "a object"),
        ),
        ({"quota": [{"limit": 0}]}, None),
        ({"concurrency": 0}, ("concurrency", "a whole number from 1 to 1000000", "0")),
        (
            {"backoff": {"status_codes": [429, 42]}},
            ("backoff.status_codes[1]", "a status from 100 to 599", "42"),
        ),
        (
            {"retry": {"limit": 1, "methods": ["GET", 5]}},
            ("retry.methods[1]", "a text that is not empty", "5"),
        ),
        (
            {"jitter": [0.3, -0.1]},
            (
                "jitter",
                "true, false, a number from 0 to 1, or [low, high] with -1 ≤ low ≤ high ≤ 10",
                "[0.3, -0.1]",
            ),
        ),
        ({"request_timeout": -1}, ("request_timeout", "seconds from 0 to a year", "-1")),
        ({"delay": 1, "defaults": {"delay": 1}}, ("delay", "delay here or in defaults, not in both", "1")),
        ({"manager": 5}, None),
        ({"fetch": print}, ("fetch", "a known setting", "a function")),
    ],
)
def test_a_wrong_value_is_refused(options: dict[str, Any], problem: Problem | None) -> None:
    found = problems(**options)
    assert len(found) == 1
    assert problem is None or found[0] == problem


def test_nothing_is_left_out() -> None:
    assert Throttle(delay=None, scopes=None, retry=None, request_timeout=None)  # type: ignore[arg-type]


def test_a_scope_that_is_named_by_a_url_is_refused() -> None:
    assert problems(scopes={"https://api.example/": {}}) == [
        ('scopes["https://api.example/"]', 'the host alone, "api.example"', '"https://api.example/"')
    ]


def test_configure_speaks_the_same() -> None:
    scope = Throttle().scope("api.example")
    with pytest.raises(ConfigError, match=r"^slot_delay: want seconds from 0 to a year; got -1$"):
        scope.configure(slot_delay=-1)
    with pytest.raises(ConfigError, match=r"^slotDelay: want a known setting \(did you mean slot_delay\?\)"):
        scope.configure(slotDelay=1)  # type: ignore[call-arg]


def test_threads_have_no_request_timeout() -> None:
    with pytest.raises(ConfigError, match="want no request_timeout: a thread cannot be stopped"):
        ThreadThrottle(request_timeout=5)


def test_paths_of_the_engines_in_pythons_words() -> None:
    assert python_path('scopes."api.example".backoff.maxDelay') == 'scopes["api.example"].backoff.max_delay'
    assert python_path("scopes.localhost.slotDelay") == 'scopes["localhost"].slot_delay'
    assert python_path("defaults.quota[1].limit") == "defaults.quota[1].limit"


def test_values_are_described_as_the_engine_does() -> None:
    values: list[Any] = [None, True, 0.1 + 0.2, {}, (1, 2), "x" * 50, print]
    assert [described(each) for each in values] == [
        "nothing",
        "true",
        "0.3",
        "an object",
        "a list of 2",
        '"' + "x" * 40 + '…"',
        "a function",
    ]


def notes(caplog: pytest.LogCaptureFixture, **options: Any) -> list[str]:
    """The log lines while a throttle is made."""
    caplog.clear()
    Throttle(**options)
    return [record.getMessage() for record in caplog.records]


def test_milliseconds_are_told(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = notes(caplog, delay=500)
    assert told.startswith(
        "delay=500 is 0:08:20 between two sends: times are seconds here, so 500 ms are 0.5 ("
    )
    assert told.endswith("(timedelta(seconds=500) silences this)")
    (told,) = notes(caplog, scopes={"api.example": {"slot_delay": 90}})
    assert told.startswith('scopes["api.example"].slot_delay=90 is 0:01:30 between two sends')
    assert notes(caplog, delay=timedelta(seconds=500), autothrottle={"max_delay": 600}) == []
    assert notes(caplog, delay=60, backoff={"max_delay": 3600}, redirect_max_delay=900) == []


def test_a_number_of_retries_says_how(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match=r'^retry: want \{"limit": 3\}; got 3$'):
        Throttle(retry=3)  # type: ignore[arg-type]

"""Options as Python types them ↔ options as the engine reads them.

``slot_delay=0.5`` becomes ``{"slotDelay": 500.0}``. The engine judges every value; what it says about
``scopes."api.example".slotDelay`` is reported as ``scopes["api.example"].slot_delay``, in seconds and
with the value that was typed.

A key that the table does not have in Python's case is unknown, and the error lists the problems of both
layers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ._clock import YEAR
from ._native import DRIVER, SECTIONS, Engine, check_driver_options, nearest_name
from ._scopes import problem_of_name
from .errors import ConfigError, Problem

_SNAKE = {camel: snake for keys in SECTIONS.values() for snake, (camel, _) in keys.items()}
_CAMEL_WORD = re.compile(r"\b[a-z]+(?:[A-Z][a-z]*)+\b")
_SEGMENT = re.compile(r'\.?("(?:[^"\\]|\\.)*"|[^."\[\]]+)|(\[\d+\])')
_MEANT = re.compile(r"did you mean (.+)\?\)")
_PLACES = {
    "Root": "",
    "Scope": "defaults",
    "Rate": "rate",
    "Quota": "quota",
    "Backoff": "backoff",
    "Retry": "retry",
    "Robots": "robots",
}
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")


@dataclass
class Converted:
    """Options in both forms."""

    engine: dict[str, Any] = field(default_factory=dict)
    """For the engine: its own case, milliseconds."""
    driver: dict[str, Any] = field(default_factory=dict)
    """The options that only the driver reads, as they were typed."""
    driver_checked: dict[str, Any] = field(default_factory=dict)
    """The same in the engine's case, for its checks."""
    problems: list[Problem] = field(default_factory=list)
    """Unknown keys."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Values that are valid, and probably not intended: where, and in words."""
    _typed: dict[str, tuple[str, str, object]] = field(default_factory=dict)

    def translate(self, error: ConfigError) -> ConfigError:
        """The engine's problems with paths and values as they were typed."""
        return ConfigError([self._problem(*problem) for problem in error.problems])

    def _problem(self, path: str, want: str, got: str) -> Problem:
        known = self._typed.get(path)
        want = _CAMEL_WORD.sub(lambda match: _SNAKE.get(match[0], match[0]), want)
        if known is None:
            return Problem(python_path(path), want, got)
        path, kind, value = known
        if kind == "time":
            want = re.sub(r"milliseconds", "seconds", want)
            want = re.sub(r"(_delay), (\d[\d.]*)", lambda m: f"{m[1]}, {float(m[2]) / 1000:g}", want)
            got = described(value)
        return Problem(path, want, got)

    def object(self, section: str, options: Mapping[Any, Any], path: str, typed: str) -> dict[str, Any]:
        """An object of a section, key by key. ``path`` is the engine's, ``typed`` Python's."""
        keys = SECTIONS[section]
        made: dict[str, Any] = {}
        for key, value in options.items():
            where = _typed_join(typed, str(key))
            row = keys.get(key) or (SECTIONS["Scope"].get(key) if section == "Root" else None)
            if row is None:
                if key in _SNAKE.values() or value is not None:
                    self.problems.append(Problem(where, _unknown(section, str(key)), described(value)))
                continue
            camel, kind = row
            made[camel] = self.value(kind, value, _engine_join(path, camel), where)
        return made

    def value(self, kind: str, value: Any, path: str, typed: str) -> Any:
        """One value by its kind."""
        self._typed[path] = (typed, kind, value)
        kind, _, section = kind.partition(" ")
        if value is None or isinstance(value, bool):
            return value
        if kind == "time":
            self._note_of_delay(value, typed)
            return _millis(value)
        if section == "Retry" and isinstance(value, (int, float)):
            self.problems.append(Problem(typed, f'{{"limit": {value}}}', described(value)))
            return None
        if kind == "object" and isinstance(value, Mapping):
            return self.object(section, value, path, typed)
        if kind == "named" and isinstance(value, Mapping):
            self._note_of_names(value, typed)
            return {
                name: self.value(
                    f"object {section}", each, _engine_join(path, name), f"{typed}[{_quoted(name)}]"
                )
                for name, each in value.items()
            }
        if kind == "list":
            if isinstance(value, Mapping):
                return self.object(section, value, path, typed)
            if isinstance(value, (list, tuple)):
                return [
                    self.value(f"object {section}", each, f"{path}[{index}]", f"{typed}[{index}]")
                    for index, each in enumerate(value)
                ]
        if isinstance(value, (tuple, set, frozenset, range)):
            return list(value)
        return value

    def _note_of_delay(self, value: Any, typed: str) -> None:
        """Perhaps milliseconds, as in npm: hardly a pace is slower than a request a minute. A second, a
        minute, an hour and a day in milliseconds are no spans in seconds.
        """
        problem = problem_of_span(typed, value)
        if problem is not None:
            self.notes.append((typed, problem))

    def _note_of_names(self, names: Mapping[Any, Any], place: str) -> None:
        for name in names:
            problem = problem_of_name(name)
            if problem is not None:
                self.notes.append((f"scopes {name}", f"{place}[{_quoted(name)}] {problem}"))


_IN_MILLIS = (1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 3_600_000, 86_400_000)


def problem_of_span(typed: str, value: object) -> str | None:
    """The warning for seconds that are perhaps milliseconds; ``None`` where they are hardly that."""
    if not isinstance(value, (int, float)):
        return None
    key = typed.rpartition(".")[2]
    is_delay = key in ("delay", "slot_delay") and 60 < value <= YEAR
    if not is_delay and value not in _IN_MILLIS:
        return None
    between = " between two sends" if is_delay else ""
    what = f"{typed}={value:g} is {timedelta(seconds=value)}{between}: times are seconds here"
    silence = f"timedelta(seconds={value:g}) silences this"
    return f"{what}, so {value:g} ms are {value / 1000:g} ({silence})"


def convert_options(options: Mapping[str, Any], is_clock: Callable[[object], bool]) -> Converted:
    """All options of a throttle. Raises ``ConfigError`` for those that no engine sees."""
    made = Converted()
    whole = made.object("Root", options, "", "")
    for key, value in options.items():
        if key in DRIVER and value is not None:
            made.driver[key] = value
    names = {SECTIONS["Root"][key][0] for key in DRIVER}
    for camel, value in whole.items():
        if camel not in names:
            made.engine[camel] = value
        elif camel == "clock":
            if value is not None and not is_clock(value):
                want = "an object with now, wall, call_later and wait"
                made.problems.append(Problem("clock", want, described(value)))
        elif camel == "shared":
            if value is not None and not callable(getattr(value, "open_host", None)):
                made.problems.append(
                    Problem("shared", "what autothrottle.redis.shared gives", described(value))
                )
        elif camel != "snapshot":
            made.driver_checked[camel] = "a function" if callable(value) else value
    _mark_managers(made)
    return made


def make_engine(made: Converted, make: Callable[[Mapping[str, Any]], Any] | None = None) -> Any:
    """The engine for these options, or what ``make`` gives in its place: a host that processes share.
    Raises ``ConfigError`` with the problems of both layers.
    """
    problems = [*made.problems, *_driver_problems(made)]
    try:
        engine = Engine(made.engine) if make is None else make(made.engine)
    except ConfigError as error:
        raise ConfigError([*problems, *made.translate(error).problems]) from None
    if problems:
        engine.close()
        raise ConfigError(problems)
    return engine


def convert_scope(partial: Mapping[str, Any]) -> Converted:
    """Settings of one scope, for ``configure``."""
    made = Converted()
    made.engine = made.object("Scope", partial, "", "")
    if "manager" in made.engine:
        made.engine.pop("manager")
        made.problems.append(Problem("manager", "no manager here: it is made with its throttle", "a manager"))
    return made


def _driver_problems(made: Converted) -> list[Problem]:
    functions = {"getScopes", "getResponseBackoff", "getErrorBackoff", "getResponseDelay", "getHints"}
    checked, problems = {}, []
    for camel, value in made.driver_checked.items():
        if value is None:
            continue
        if camel == "robots" and isinstance(value, Mapping):
            rules = value.get("rules")
            if rules is not None and not callable(rules):
                problems.append(Problem("robots.rules", "a function", described(rules)))
            value = {key: each for key, each in value.items() if key != "rules"}
        if camel not in functions:
            checked[camel] = value
        elif value != "a function":
            problems.append(Problem(_SNAKE[camel], "a function", described(value)))
    try:
        check_driver_options(checked)
    except ConfigError as error:
        problems.extend(made.translate(error).problems)
    return problems


def _mark_managers(made: Converted) -> None:
    """A scope's manager stays here: the engine knows that there is one."""
    places = [made.engine, made.engine.get("defaults")]
    scopes = made.engine.get("scopes")
    if isinstance(scopes, dict):
        places.extend(scopes.values())
    for place in places:
        if isinstance(place, dict) and place.get("manager") is not None:
            place["manager"] = True


def _millis(value: Any) -> Any:
    """Seconds as milliseconds; what is no time is the engine's to refuse."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not isinstance(value, (int, float)):
        return value
    millis = value * 1000
    # 0.3 s are 300 ms, not 299.99999999999994.
    return round(millis, 6) if math.isfinite(millis) else millis


def _unknown(section: str, key: str) -> str:
    """The suggestion for an unknown key: ours for another library's word, else the nearest."""
    sections = ["Root", "Scope"] if section == "Root" else [section]
    known = [name for each in sections for name in SECTIONS[each]]
    meant = _rival(section, key) or nearest_name(key, known)
    return f"a known setting (did you mean {meant}?)" if meant else "a known setting"


def _rival(section: str, key: str) -> str | None:
    """The engine's answer to a word of another library, as it is typed here."""
    place = _PLACES.get(section)
    if place is None:
        return None
    check = check_driver_options if section == "Robots" else Engine
    try:
        check({place: {key: 0}} if place else {key: 0})
    except ConfigError as error:
        for path, want, _ in error.problems:
            meant = _MEANT.search(want)
            if meant is None or not path.endswith(key):
                continue
            words = _CAMEL_WORD.sub(lambda match: _SNAKE.get(match[0], match[0]), meant[1])
            if words.startswith("an option of a single request"):
                return "an option of a single request: acquire(url, priority=…)"
            place, braced, keys = words.partition(": ")
            if keys.startswith("{"):
                keys = "{" + ", ".join(f'"{name}": …' for name in keys.strip("{ }").split(", ")) + "}"
            return f"{place}={keys}" if braced else words
    return None


def _engine_join(path: str, key: str) -> str:
    key = key if _PLAIN.match(key) else _quoted(key)
    return f"{path}.{key}" if path else key


def _typed_join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _quoted(text: object) -> str:
    return json.dumps(text if isinstance(text, str) else str(text), ensure_ascii=False)


def python_path(path: str) -> str:
    """A path of the engine's in Python's words: for what it names without being asked."""
    out = ""
    for match in _SEGMENT.finditer(path):
        name, index = match[1], match[2]
        if index:
            out += index
        elif name.startswith('"'):
            out += f"[{name}]"
        elif out in ("scopes", "hints"):
            out += f"[{_quoted(name)}]"
        else:
            out = _typed_join(out, _SNAKE.get(name, name))
    return out


def in_seconds(text: str) -> str:
    """A sentence of the engine's in which times are seconds."""
    return re.sub(r"(\d+(?:\.\d+)?) ms\b", lambda match: f"{float(match[1]) / 1000:g} s", text)


def described(value: object) -> str:
    """A value in a few words, as the engine says it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"a timedelta of {value.total_seconds():g} s"
    if isinstance(value, (int, float)):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return _quoted(value if len(value) <= 40 else f"{value[:40]}…")
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"a list of {len(value)}"
    return "a function" if callable(value) else f"a {type(value).__name__}"

"""Scrapy's settings → the engine's options: names, seconds, what was typed and what was not.

Scrapy's own defaults (8 slots, no delay) count only where they were typed. Errors speak of seconds and
capitals, as they were typed. The engine's table (``src/config/scrapy.rs``) says where each goes and how its
value is read; TypeScript's ``fromScrapySettings`` reads by the same.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.misc import load_object

from .._clock import YEAR
from .._native import SCRAPY_DEFAULTS as DEFAULTS
from .._native import SCRAPY_KEYS as KEYS
from .._native import SCRAPY_SETTINGS as SETTINGS
from .._native import Engine, nearest_name
from ..errors import ConfigError, Problem
from ..options import REDIRECT_MAX_DELAY, ROBOTS_MAX_DELAY

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

_OURS: Final = (
    "THROTTLING_LOOKAHEAD",
    "THROTTLING_PROXY_SCOPES",
    "THROTTLING_SHARED_REDIS",
    "THROTTLING_SHARED_NAME",
    "THROTTLING_SHARED_OFFLINE",
    "THROTTLING_SHARED_MEMBERS",
)
"""Settings that only this downloader has."""

_PREFIXES: Final = ("THROTTLING_", "BACKOFF_", "RAMPUP_")
"""No other setting of Scrapy begins so: an unknown name is a typo."""

_SECTIONS: Final = ("root", "scope", "autothrottle", "backoff", "rampup")
"""Sections whose settings are options of the engine under another name."""

_BY_HAND: Final = ("scope", "scopes", "exceptions", "managers", "retry")
"""Kinds of settings that are read on their own."""

_EXCEPTIONS: Final = (
    "twisted.internet.defer.TimeoutError",
    "twisted.internet.error.TimeoutError",
    "twisted.internet.error.TCPTimedOutError",
    "twisted.internet.error.ConnectionRefusedError",
    "twisted.internet.error.ConnectionLost",
    "twisted.web.client.ResponseFailed",
    "builtins.TimeoutError",
    "builtins.ConnectionError",
)
"""The draft's list, and a server that refuses or drops connections."""

_SCRAPYS: Final = {
    "twisted.internet.defer.TimeoutError": "DownloadTimeoutError",
    "twisted.internet.error.TimeoutError": "DownloadTimeoutError",
    "twisted.internet.error.TCPTimedOutError": "DownloadTimeoutError",
    "twisted.internet.error.ConnectionRefusedError": "DownloadConnectionRefusedError",
    "twisted.internet.error.DNSLookupError": "CannotResolveHostError",
    "twisted.web.client.ResponseFailed": "DownloadFailedError",
}
"""Exceptions that newer Scrapy raises in place of Twisted's."""

Exceptions = tuple[type[BaseException], ...]


@dataclass
class Options:
    """The meaning of the settings: for the engine, and for the downloader itself."""

    engine: dict[str, Any] = field(default_factory=dict)
    """The engine's options."""
    exceptions: dict[str | None, Exceptions] = field(default_factory=dict)
    """The rule for bad answers, by scope; for all others under None."""
    managers: dict[str | None, Any] = field(default_factory=dict)
    """Scope managers' classes, by scope; for all others under None."""
    manager: Any = None
    """THROTTLING_MANAGER, if it was typed."""
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The typed settings of each scope, for its manager."""
    obeys_robots: bool = False
    robots_max_delay: float = ROBOTS_MAX_DELAY
    redirect_max_delay: float = REDIRECT_MAX_DELAY
    warn_threshold: int = 500
    lookahead: int | None = None
    shared_url: str | None = None
    """THROTTLING_SHARED_REDIS, if spiders share their limits."""
    shared_name: str = ""
    shared_offline: str | None = None
    shared_members: int | None = None
    debug: bool = False
    idle: list[str] = field(default_factory=list)
    """Settings without effect, each with why."""
    typed: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """The engine's path → the path that was typed, and the value."""

    def translate(self, error: ConfigError) -> ConfigError:
        """The same error with the names, seconds and values that were typed."""
        return ConfigError([self._translated(each) for each in error.problems])

    def _translated(self, problem: Problem) -> Problem:
        path, bracket, index = problem.path.rpartition("[")
        if path in self.typed and index.removesuffix("]").isdecimal():
            place, _ = self.typed[path]
            return Problem(f"{place}{bracket}{index}", problem.want, problem.got)
        path = problem.path
        # A value inside of a list or an object: the nearest that was typed.
        while path and path not in self.typed:
            path = path.rpartition(".")[0] if "." in path else ""
        if not path:
            return problem
        place, value = self.typed[path]
        return Problem(place, problem.want.replace("milliseconds", "seconds"), repr(value))


def is_typed(settings: BaseSettings, name: str) -> bool:
    """Whether the user set it: a default of Scrapy's does not count."""
    return (settings.getpriority(name) or 0) > 0 and settings.get(name) is not None


def read_options(settings: BaseSettings, spider: Spider | None = None) -> Options:
    """The options in Scrapy's settings.

    :raises ConfigError: listing every name that is unknown and every value that makes no sense.
    """
    return _Reader(settings).read(spider)


class _Reader:
    def __init__(self, settings: BaseSettings) -> None:
        self._settings = settings
        self._problems: list[Problem] = []
        self._options = Options()
        self._defaults: dict[str, Any] = {}
        self._sections: dict[str, dict[str, Any]] = {"backoff": {}}
        # Of several names the one of the higher priority counts, of the same the first of the table.
        typed = [name for name in reversed(SETTINGS) if is_typed(settings, name)]
        self._typed = sorted(typed, key=lambda name: settings.getpriority(name) or 0)

    def read(self, spider: Spider | None) -> Options:
        options, defaults = self._options, self._defaults
        self._unknown()
        for name in self._typed:
            self._setting(name, *SETTINGS[name])
        self._of_spider(spider)
        per_address = self._take("CONCURRENT_REQUESTS_PER_IP", read_count)
        if per_address:
            self._default("concurrency", per_address, "CONCURRENT_REQUESTS_PER_IP", per_address)
        options.exceptions[None] = self._take("BACKOFF_EXCEPTIONS", _exceptions) or _exceptions(_EXCEPTIONS)
        options.managers[None] = self._take("THROTTLING_SCOPE_MANAGER", load)
        options.manager = self._of_names("THROTTLING_MANAGER", load)
        # AutoThrottle's numbers without AUTOTHROTTLE_ENABLED are Scrapy's way of having it off.
        if not defaults.get("autothrottle"):
            defaults.pop("autothrottle", None)
        else:
            self._defaults = defaults = DEFAULTS["besideAutothrottle"] | defaults
        self._all_scopes()
        scopes: dict[str, dict[str, Any]] = {}
        for where in ("DOWNLOAD_SLOTS", "THROTTLING_SCOPES"):
            for name, scope in self._scopes(where).items():
                scopes[name] = {**scopes.get(name, {}), **scope}
        places = [defaults, *scopes.values()]
        self._like_the_draft(places)
        has_rampup = any(place.get("rampup") for place in places)
        if not has_rampup and is_typed(self._settings, "RAMPUP_BACKOFF_TARGET"):
            how = "no scope has it: THROTTLING_SCOPES, or THROTTLING_DEFAULTS = {'rampup': True} for all"
            options.idle.append(f"RAMPUP_BACKOFF_TARGET has no effect without rampup, and {how}")
        for managed, manager in options.managers.items():
            if manager is not None:
                place = defaults if managed is None else scopes.setdefault(managed, {})
                place["manager"] = True
        self._for_the_downloader()
        options.engine |= {"defaults": defaults, "scopes": scopes}
        if self._problems:
            raise ConfigError(self._problems + self._of_the_engine())
        return options

    def _of_the_engine(self) -> list[Problem]:
        """The engine's problems with all that could be read: one error lists them with ours."""
        try:
            Engine(self._options.engine).close()
        except ConfigError as error:
            problems = self._options.translate(error).problems
            typed = {place for place, _ in self._options.typed.values()}
            # An object of which a part could not be read lacks that part: ours says more.
            known = tuple(each.path for each in self._problems)
            lacks = [each for each in typed if any(path.startswith(each) for path in known)]
            return [each for each in problems if each.path in typed.difference(lacks)]
        return []

    def _unknown(self) -> None:
        known = {**SETTINGS, **dict.fromkeys(_OURS)}
        for name in self._settings:
            if isinstance(name, str) and name.startswith(_PREFIXES) and name not in known:
                self._problems.append(_unknown(name, self._settings.get(name), known, name))

    def _take(self, name: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        """A setting that was typed, converted."""
        value = self._settings.get(name)
        if not is_typed(self._settings, name) or plain(value) is None:
            return default
        try:
            return convert(value)
        except WantError as want:
            self._problems.append(want.problem(name, value))
            return default

    def _of_names(self, name: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        """The same under this name or an older one."""
        for each in self._typed:
            if SETTINGS[each] == SETTINGS[name]:
                default = self._take(each, convert, default)
        return default

    def _setting(self, name: str, section: str, key: str, kind: str) -> None:
        if section not in _SECTIONS or kind in _BY_HAND:
            return
        value, converted = self._settings.get(name), self._take(name, partial(_convert, kind))
        if converted is None:
            return
        if section == "root":
            self._options.engine[key] = converted
            self._options.typed[key] = (name, value)
        elif section == "scope":
            self._default(key, converted, name, value)
        else:
            self._sections.setdefault(section, {})[key] = converted
            self._options.typed[f"defaults.{section}.{key}"] = (name, value)

    def _default(self, key: str, converted: Any, name: str, value: Any) -> None:
        self._defaults[key] = converted
        self._options.typed[f"defaults.{key}"] = (name, value)

    def _of_spider(self, spider: Spider | None) -> None:
        """A pace on the spider: newer Scrapy no longer reads it, and spiders still have it."""
        for attribute, key, kind in (
            ("download_delay", "delay", "seconds"),
            ("max_concurrent_requests", "concurrency", "number"),
        ):
            value = getattr(spider, attribute, None)
            if value is not None:
                self._default(key, _convert(kind, value), f"spider.{attribute}", value)

    def _all_scopes(self) -> None:
        """THROTTLING_DEFAULTS: what the draft has no setting for."""
        made = self._take("THROTTLING_DEFAULTS", plain, {})
        made = self._dict("scope", made, "THROTTLING_DEFAULTS", "defaults", None)
        if "rate" in made:
            # Said here, it is nearer than a setting: both in one place would be an error.
            for key in ("delay", "slotDelay"):
                self._defaults.pop(key, None)
        self._defaults |= {"backoff": True, **made}
        self._complete(self._defaults, "autothrottle", "backoff", "rampup")

    def _complete(self, place: dict[str, Any], *sections: str) -> None:
        """True and a dict stand for the settings of their section, too, as RAMPUP_BACKOFF_TARGET."""
        for section in sections:
            own, settings = place.get(section), self._sections.get(section)
            if settings is not None and (own is True or isinstance(own, dict)):
                place[section] = settings | (own if isinstance(own, dict) else {})

    def _scopes(self, name: str) -> dict[str, dict[str, Any]]:
        """A setting that is a dict of scopes."""
        value = self._take(name, plain, {})
        if not isinstance(value, Mapping):
            self._problems.append(Problem(name, "a dict of scopes", repr(value)))
            return {}
        scopes: dict[str, dict[str, Any]] = {}
        for scope, typed in value.items():
            scopes[str(scope)] = made = self._dict(
                "scope", plain(typed), f'{name}["{scope}"]', engine_path(str(scope)), str(scope)
            )
            if name == "DOWNLOAD_SLOTS" and "delay" in made:
                self._starts_slot(made)
            self._complete(made, "autothrottle", "rampup")
            if isinstance(typed, Mapping):
                self._options.configs[str(scope)] = {**self._options.configs.get(str(scope), {}), **typed}
        return scopes

    def _starts_slot(self, scope: dict[str, Any]) -> None:
        """Where AutoThrottle is on, a slot only starts at its delay; the least is DOWNLOAD_DELAY for all of
        them. Else that delay is Scrapy's, without the second of the draft's slots."""
        own = scope.get("autothrottle")
        if self._defaults.get("autothrottle") and own is not False:
            starts = {"startDelay": scope.pop("delay")}
            scope["autothrottle"] = starts | (own if isinstance(own, dict) else {})
        elif "slotDelay" not in self._defaults:
            scope.setdefault("slotDelay", 0)

    def _dict(self, section: str, value: Any, path: str, at: str, scope: str | None) -> dict[str, Any]:
        """A dict of a section in Scrapy's names as an object of the engine's."""
        made: dict[str, Any] = {}
        if not isinstance(value, Mapping):
            self._problems.append(Problem(path, "a dict", repr(value)))
            return made
        for name, each in value.items():
            place = f'{path}["{name}"]'
            name = str(name)
            known = KEYS[section].get(name)
            if known is None:
                self._problems.append(_unknown(name, each, KEYS[section], place))
                continue
            key, kind = known
            if plain(each) is None:
                continue
            self._options.typed[f"{at}.{key}"] = (place, each)
            try:
                self._entry(made, key, kind, each, place, f"{at}.{key}", scope)
            except WantError as want:
                self._problems.append(want.problem(place, each))
        return made

    def _entry(
        self, made: dict[str, Any], key: str, kind: str, value: Any, path: str, at: str, scope: str | None
    ) -> None:
        if kind == "exceptions":
            self._options.exceptions[scope] = _exceptions(value)
            return
        typed = plain(value)
        if kind == "manager":
            self._options.managers[scope] = load(typed)
        elif kind in KEYS and isinstance(typed, Mapping):
            made[key] = self._dict(kind, typed, path, at, scope)
        elif kind == "quota" and isinstance(typed, (list, tuple)):
            quotas: list[dict[str, Any]] = [{} for _ in typed]
            for place, each in zip(quotas, typed, strict=True):
                self._entry(place, key, kind, each, path, at, scope)
            made[key] = [place[key] for place in quotas]
        else:
            made[key] = _convert(kind, value)

    def _like_the_draft(self, places: list[dict[str, Any]]) -> None:
        """Defaults of the draft that differ from the engine's."""
        # A slot rests for a second also where the delay is shorter. Here a pace that was typed sets that
        # default aside, so it is said.
        slot = DEFAULTS["slotDelay"]
        delays = [place.get("delay", slot) for place in places]
        is_shorter = any(_is_number(delay) and delay < slot for delay in delays)
        if is_shorter and "slotDelay" not in self._defaults and "rate" not in self._defaults:
            self._defaults["slotDelay"] = slot
            for place in places[1:]:
                if "quota" in place and "delay" not in place:
                    place.setdefault("slotDelay", 0)
        # Nor do slots set the second of a scope aside.
        for place in places:
            if "concurrency" not in place or _is_paced(place) or _is_paced(self._defaults):
                continue
            place["delay"] = slot
            follows = place.get("autothrottle", self._defaults.get("autothrottle"))
            if not follows and "slotDelay" not in self._defaults:
                place.setdefault("slotDelay", slot)
            for scope in places[1:] if place is self._defaults else ():
                if "rate" not in scope and _is_paced(scope):
                    scope.setdefault("delay", 0)
                    scope.setdefault("slotDelay", 0)
        self._defaults.setdefault("downAfter", DEFAULTS["downAfter"])
        # The engine has more statuses, and holds that are longer than the longest delay.
        for place in places:
            own = place.get("backoff")
            if isinstance(own, dict):
                draft = DEFAULTS["backoff"] if place is self._defaults else {}
                bound = {"maxHold": own["maxDelay"]} if "maxDelay" in own else {}
                place["backoff"] = draft | bound | own

    def _for_the_downloader(self) -> None:
        options = self._options
        options.warn_threshold = options.engine.get("warnThreshold", options.warn_threshold)
        options.debug = self._of_names("AUTOTHROTTLE_DEBUG", read_flag, False)
        redirect, robots = options.redirect_max_delay, options.robots_max_delay
        options.redirect_max_delay = self._take("REDIRECT_MAX_DELAY", read_seconds, redirect)
        options.robots_max_delay = self._take("THROTTLING_ROBOTSTXT_MAX_DELAY", read_seconds, robots)
        asks = self._take("THROTTLING_ROBOTSTXT_OBEY", read_flag, True)
        options.obeys_robots = self._settings.getbool("ROBOTSTXT_OBEY") and bool(asks)
        options.lookahead = self._take("THROTTLING_LOOKAHEAD", read_whole)
        self._take("THROTTLING_PROXY_SCOPES", read_flag)  # The manager reads it; here it is checked.
        self._shared()

    def _shared(self) -> None:
        """Several processes under one limit."""
        options = self._options
        options.shared_url = self._take("THROTTLING_SHARED_REDIS", read_url)
        options.shared_name = self._take("THROTTLING_SHARED_NAME", read_name, "")
        options.shared_offline = self._take("THROTTLING_SHARED_OFFLINE", read_offline)
        options.shared_members = self._take("THROTTLING_SHARED_MEMBERS", read_whole)
        if options.shared_url is None:
            for name in ("THROTTLING_SHARED_NAME", "THROTTLING_SHARED_OFFLINE", "THROTTLING_SHARED_MEMBERS"):
                if is_typed(self._settings, name):
                    want = "THROTTLING_SHARED_REDIS beside it"
                    self._problems.append(Problem(name, want, repr(self._settings.get(name))))
            return
        if not is_typed(self._settings, "THROTTLING_SHARED_NAME"):
            want = "a name: processes with the same one share their limits"
            self._problems.append(Problem("THROTTLING_SHARED_NAME", want, "nothing"))
        if any(manager is not None for manager in options.managers.values()):
            want = "no scope manager beside it: it is of one process"
            self._problems.append(Problem("THROTTLING_SHARED_REDIS", want, "one"))


def engine_path(scope: str) -> str:
    """The engine's path of a scope: it is quoted where JavaScript would not take the name as it is."""
    is_plain = re.fullmatch(r"[A-Za-z_$][\w$]*", scope, re.ASCII)
    return f"scopes.{scope if is_plain else json.dumps(scope, ensure_ascii=False)}"


def _convert(kind: str, value: Any) -> Any:
    """A value of this kind. The engine refuses a value that is no number or makes no sense."""
    if kind == "codes":
        return [plain(each) for each in read_list(value)]
    value = plain(value)
    if kind.startswith("seconds"):
        # 0.3 s are 300 ms, not 299.99999999999994.
        return round(value * 1e6) / 1e3 if _is_number(value) and abs(value) < 1e12 else value
    if kind in ("flag", "autothrottle", "backoff", "rampup"):
        return read_flag(value)
    if kind == "total" and _is_number(value) and value == 0:
        return DEFAULTS["noLimit"]
    if kind == "randomize" and value == 1:
        return True
    return list(value) if isinstance(value, tuple) else value


def _exceptions(value: Any) -> Exceptions:
    import scrapy.exceptions

    classes: list[type[BaseException]] = []
    for index, each in enumerate(read_list(value)):
        try:
            made = load(each)
            if not (isinstance(made, type) and issubclass(made, BaseException)):
                raise WantError("a class of exceptions or its import path")
        except WantError as want:
            raise WantError(str(want), index, each) from None
        path = f"{made.__module__}.{made.__qualname__}"
        name = _SCRAPYS.get(each if isinstance(each, str) else path, "")
        classes += [made, getattr(scrapy.exceptions, name, made)]
    return tuple(dict.fromkeys(classes))


def _unknown(name: str, value: Any, known: Any, path: str) -> Problem:
    near = nearest_name(name, list(known))
    hint = f" (did you mean {near}?)" if near else ""
    return Problem(path, f"a known setting{hint}", repr(value))


# Values: what may be typed, and what it stands for. From the command line everything is text.


class WantError(Exception):
    """The expected value, of an item of a list where that is wrong."""

    def __init__(self, want: str, index: int | None = None, item: Any = None) -> None:
        super().__init__(want)
        self._index = index
        self._item = item

    def problem(self, path: str, value: Any) -> Problem:
        """The same of what was typed at a path."""
        if self._index is None:
            return Problem(path, str(self), repr(value))
        return Problem(f"{path}[{self._index}]", str(self), repr(self._item))


def plain(value: Any) -> Any:
    """A value from the command line as what it stands for: ``-s DOWNLOAD_DELAY=0.5``."""
    if isinstance(value, str):
        for read in (json.loads, ast.literal_eval, float):
            try:
                return read(value.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return value


def read_list(value: Any) -> list[Any]:
    """A list, which may be typed as a text with commas."""
    made = plain(value)
    if isinstance(made, (list, tuple, set, frozenset)):
        return list(made)
    if not isinstance(value, str):
        raise WantError("a list")
    return [each.strip() for each in value.split(",") if each.strip()]


def read_flag(value: Any) -> bool:
    """Yes or no."""
    value = plain(value)
    if value not in (0, 1):
        raise WantError("True or False")
    return bool(value)


def _reader(want: str, is_right: Callable[[Any], bool], made: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that gives a value as it is to be, or says what is wanted."""

    def read(value: Any) -> Any:
        value = plain(value)
        if isinstance(value, bool) or not is_right(value):
            raise WantError(want)
        return made(value)

    return read


def _is_paced(place: Mapping[str, Any]) -> bool:
    return "delay" in place or "rate" in place or "quota" in place or bool(place.get("rampup"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


read_seconds = _reader(
    "seconds from 0 to a year", lambda value: _is_number(value) and 0 <= value <= YEAR, float
)
read_count = _reader("a whole number from 0", lambda value: isinstance(value, int) and value >= 0, int)
read_whole = _reader("a whole number from 1", lambda value: isinstance(value, int) and value >= 1, int)
read_name = _reader("a name that is not empty", lambda value: isinstance(value, str) and value != "", str)
read_offline = _reader('"divide", "wait" or "fail"', lambda value: value in ("divide", "wait", "fail"), str)
read_url = _reader(
    "a URL of Redis: redis://host:6379/0", lambda value: isinstance(value, str) and "://" in value, str
)


def load(value: Any) -> Any:
    """A class, or what its import path names."""
    try:
        return load_object(value) if isinstance(value, str) else value
    except (ImportError, NameError, ValueError, AttributeError) as error:
        raise WantError(f"a class or its import path ({error})") from None

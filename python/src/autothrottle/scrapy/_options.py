"""Scrapy's settings → the engine's options: names, seconds, what was typed and what was not.

Scrapy's own defaults (8 slots, no delay) count only where they were typed. Errors speak of seconds and
capitals, as they were typed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scrapy.utils.misc import load_object

from .._clock import YEAR
from .._native import SCRAPY_KEYS as KEYS
from .._native import SCRAPY_SETTINGS as SETTINGS
from ..errors import ConfigError, Problem

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

_ALIASES: Final = {"throttle": "autothrottle", "randomize_delay": "jitter"}
"""Keys of DOWNLOAD_SLOTS that Scrapy named before the draft did."""

_MORE_SETTINGS: Final = {
    "BACKOFF_CONCURRENCY_DECREASE_FACTOR": SETTINGS["BACKOFF_CONCURRENCY_FACTOR"],
    "THROTTLING_SCOPE_CONCURRENCY": SETTINGS["CONCURRENT_REQUESTS_PER_DOMAIN"],
    "THROTTLER": SETTINGS["THROTTLING_MANAGER"],
    "THROTTLER_DEBUG": SETTINGS["AUTOTHROTTLE_DEBUG"],
}
"""The draft's other names of settings: its text changed over time."""

_OURS: Final = (
    "THROTTLING_DEFAULTS",
    "THROTTLING_LOOKAHEAD",
    "THROTTLING_PROXY_SCOPES",
    "THROTTLING_SHARED_REDIS",
    "THROTTLING_SHARED_NAME",
    "THROTTLING_SHARED_OFFLINE",
    "THROTTLING_SHARED_MEMBERS",
)
"""Settings that neither Scrapy nor the draft has."""

_PREFIXES: Final = ("THROTTLING_", "BACKOFF_", "RAMPUP_")
"""No other setting of Scrapy begins so: an unknown name is a typo."""

_MAX_DELAY: Final = 300_000
"""BACKOFF_MAX_DELAY where it was not typed, in milliseconds."""
_HTTP_CODES: Final = [429, 502, 503, 504, 520, 521, 522, 523, 524]
"""BACKOFF_HTTP_CODES where it was not typed: the draft's."""

_SECTIONS: Final = ("root", "scope", "autothrottle", "backoff")
"""Sections whose settings are options of the engine under another name."""

_BY_HAND: Final = ("THROTTLING_SCOPES", "DOWNLOAD_SLOTS", "THROTTLING_SCOPE_MANAGER", "AUTOTHROTTLE_ENABLED")

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
    "twisted.internet.defer.TimeoutError": ("DownloadTimeoutError",),
    "twisted.internet.error.TimeoutError": ("DownloadTimeoutError",),
    "twisted.internet.error.TCPTimedOutError": ("DownloadTimeoutError",),
    "twisted.internet.error.ConnectionRefusedError": ("DownloadConnectionRefusedError",),
    "twisted.internet.error.DNSLookupError": ("CannotResolveHostError",),
    "twisted.web.client.ResponseFailed": ("DownloadFailedError",),
}
"""What newer Scrapy raises in place of Twisted's exceptions."""

Exceptions = tuple[type[BaseException], ...]


@dataclass
class Options:
    """What the settings say: for the engine, and for the downloader itself."""

    engine: dict[str, Any] = field(default_factory=dict)
    """The engine's options."""
    exceptions: dict[str | None, Exceptions] = field(default_factory=dict)
    """What is a bad answer, by scope; for all others under None."""
    managers: dict[str | None, Any] = field(default_factory=dict)
    """Scope managers' classes, by scope; for all others under None."""
    manager: Any = None
    """THROTTLING_MANAGER, if it was typed."""
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What was typed for each scope, for its manager."""
    obeys_robots: bool = False
    robots_user_agent: str | None = None
    robots_max_delay: float = 60.0
    redirect_max_delay: float = 300.0
    warn_threshold: int = 500
    lookahead: int | None = None
    shared_url: str | None = None
    """THROTTLING_SHARED_REDIS, if spiders share their limits."""
    shared_name: str = ""
    shared_offline: str | None = None
    shared_members: int | None = None
    debug: bool = False
    by_address: bool = False
    idle: list[str] = field(default_factory=list)
    """Settings without effect, each with why."""
    typed: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """The engine's path → the path that was typed, and the value."""

    def translate(self, error: ConfigError) -> ConfigError:
        """The same error with the names, seconds and values that were typed."""
        return ConfigError([self._translated(each) for each in error.problems])

    def _translated(self, problem: Problem) -> Problem:
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

    def read(self, spider: Spider | None) -> Options:
        options, defaults = self._options, self._defaults
        self._unknown()
        for name, (section, key, kind) in (SETTINGS | _MORE_SETTINGS).items():
            if section in _SECTIONS and name not in _BY_HAND and is_typed(self._settings, name):
                self._setting(name, section, key, kind)
        self._of_spider(spider)
        self._jitter()
        self._take("CONCURRENT_REQUESTS_PER_IP", self._per_address)
        options.exceptions[None] = self._take("BACKOFF_EXCEPTIONS", _exceptions) or _exceptions(_EXCEPTIONS)
        options.managers[None] = self._take("THROTTLING_SCOPE_MANAGER", load)
        options.manager = self._take("THROTTLING_MANAGER", load) or self._take("THROTTLER", load)
        autothrottle = defaults.pop("autothrottle", None)
        follows = bool(self._take("AUTOTHROTTLE_ENABLED", read_flag))
        if follows:
            defaults["autothrottle"] = autothrottle or True
            # AutoThrottle finds the delay; beside it hold Scrapy's own defaults, not the draft's.
            defaults.setdefault("delay", 0)
            defaults.setdefault("slotDelay", 0)
            defaults.setdefault("concurrency", 8)
        self._all_scopes()
        scopes = self._scopes("DOWNLOAD_SLOTS", follows)
        for name, scope in self._scopes("THROTTLING_SCOPES", False).items():
            scopes[name] = {**scopes.get(name, {}), **scope}
        self._slot_delay(scopes)
        has_rampup = any(place.get("rampup") for place in (defaults, *scopes.values()))
        if not has_rampup and is_typed(self._settings, "RAMPUP_BACKOFF_TARGET"):
            how = "no scope has it: THROTTLING_SCOPES, or THROTTLING_DEFAULTS = {'rampup': True} for all"
            options.idle.append(f"RAMPUP_BACKOFF_TARGET has no effect without rampup, and {how}")
        self._backoff(scopes)
        for managed, manager in options.managers.items():
            if manager is not None:
                place = defaults if managed is None else scopes.setdefault(managed, {})
                place["manager"] = True
        self._for_the_downloader()
        if self._problems:
            raise ConfigError(self._problems)
        options.engine |= {"defaults": defaults, "scopes": scopes}
        return options

    def _unknown(self) -> None:
        known = {*SETTINGS, *_MORE_SETTINGS, *_OURS}
        for name in self._settings:
            if isinstance(name, str) and name.startswith(_PREFIXES) and name not in known:
                self._problems.append(_unknown(name, self._settings.get(name), known, name))

    def _take(self, name: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        """A setting that was typed, converted."""
        if not is_typed(self._settings, name):
            return default
        value = self._settings.get(name)
        try:
            return convert(plain(value))
        except WantError as want:
            self._problems.append(Problem(name, str(want), repr(value)))
            return default

    def _setting(self, name: str, section: str, key: str, kind: str) -> None:
        value = self._settings.get(name)
        try:
            converted = _convert(kind, plain(value))
        except WantError as want:
            self._problems.append(Problem(name, str(want), repr(value)))
            return
        if key == "warnThreshold":
            self._options.warn_threshold = converted
        if name == "CONCURRENT_REQUESTS" and converted == 0:
            converted = 1_000_000  # Scrapy's way of having no limit.
        if kind == "exceptions" or (section == "root" and kind == "retry"):
            return
        if section == "root":
            self._options.engine[key] = converted
            self._options.typed[key] = (name, value)
        elif section == "scope":
            self._default(key, converted, name, value)
        else:
            self._defaults.setdefault(section, {})[key] = converted
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

    def _jitter(self) -> None:
        """Of Scrapy's two names the one that was typed nearer; of the same nearness the newer."""
        old, new = "RANDOMIZE_DOWNLOAD_DELAY", "DOWNLOAD_DELAY_JITTER"
        if is_typed(self._settings, old) and is_typed(self._settings, new):
            is_older = (self._settings.getpriority(old) or 0) > (self._settings.getpriority(new) or 0)
            self._setting(old if is_older else new, *SETTINGS[new])

    def _per_address(self, value: Any) -> None:
        if read_count(value) > 0:
            self._options.by_address = True
            self._default("concurrency", value, "CONCURRENT_REQUESTS_PER_IP", value)

    def _all_scopes(self) -> None:
        """THROTTLING_DEFAULTS: what the draft has no setting for."""
        if not is_typed(self._settings, "THROTTLING_DEFAULTS"):
            return
        typed = self._settings.get("THROTTLING_DEFAULTS")
        made = self._dict("scope", plain(typed), "THROTTLING_DEFAULTS", "defaults", None)
        if made.get("rampup") is True:
            made["rampup"] = self._defaults_of_rampup()
        if "rate" in made:
            # Said here, it is nearer than a setting: both in one place would be an error.
            for key in ("delay", "slotDelay"):
                self._defaults.pop(key, None)
        for key, value in made.items():
            here = self._defaults.get(key)
            merges = isinstance(here, dict) and isinstance(value, dict)
            self._defaults[key] = {**here, **value} if merges and here else value

    def _scopes(self, name: str, starts: bool) -> dict[str, dict[str, Any]]:
        """A setting that is a dict of scopes. `starts`: a delay is only where AutoThrottle begins."""
        if not is_typed(self._settings, name):
            return {}
        value = plain(self._settings.get(name))
        if not isinstance(value, Mapping):
            self._problems.append(Problem(name, "a dict of scopes", repr(value)))
            return {}
        scopes: dict[str, dict[str, Any]] = {}
        for scope, typed in value.items():
            path = f'{name}["{scope}"]'
            made = self._dict("scope", typed, path, _engine_path(str(scope)), str(scope))
            if starts and "delay" in made and made.get("autothrottle") is not False:
                # Scrapy's slot begins there; the least is DOWNLOAD_DELAY for all of them.
                made["autothrottle"] = {"startDelay": made.pop("delay")}
            elif "delay" in made and name == "DOWNLOAD_SLOTS" and "slotDelay" not in self._defaults:
                # Scrapy's own setting means what it means there: without the second of the draft's slots.
                made.setdefault("slotDelay", 0)
            if made.get("rampup") is True:
                made["rampup"] = self._defaults_of_rampup()
            scopes[str(scope)] = made
            if isinstance(typed, Mapping):
                self._options.configs[str(scope)] = {**self._options.configs.get(str(scope), {}), **typed}
        return scopes

    def _defaults_of_rampup(self) -> Any:
        if not is_typed(self._settings, "RAMPUP_BACKOFF_TARGET"):
            return True
        return {"backoffTarget": _convert("target", plain(self._settings.get("RAMPUP_BACKOFF_TARGET")))}

    def _dict(self, section: str, value: Any, path: str, at: str, scope: str | None) -> dict[str, Any]:
        """A dict of a section in Scrapy's names as an object of the engine's."""
        made: dict[str, Any] = {}
        if not isinstance(value, Mapping):
            self._problems.append(Problem(path, "a dict", repr(value)))
            return made
        for name, each in value.items():
            place = f'{path}["{name}"]'
            name = str(name)
            known = KEYS[section].get(_ALIASES.get(name, name) if section == "scope" else name)
            if known is None:
                self._problems.append(_unknown(name, each, KEYS[section], place))
                continue
            key, kind = known
            self._options.typed[f"{at}.{key}"] = (place, each)
            try:
                self._entry(made, key, kind, plain(each), place, f"{at}.{key}", scope)
            except WantError as want:
                self._problems.append(Problem(place, str(want), repr(each)))
        return made

    def _entry(
        self, made: dict[str, Any], key: str, kind: str, value: Any, path: str, at: str, scope: str | None
    ) -> None:
        if kind == "python":
            self._options.managers[scope] = load(value)
        elif kind == "exceptions":
            self._options.exceptions[scope] = _exceptions(value)
        elif kind in KEYS and isinstance(value, Mapping):
            made[key] = self._dict(kind, value, path, at, scope)
        elif kind == "pace" and isinstance(value, Mapping):
            made[key] = self._dict("rate", value, path, at, scope)
        elif kind == "quotas" and isinstance(value, (Mapping, list, tuple)):
            each = [value] if isinstance(value, Mapping) else value
            quotas = [self._dict("quota", q, path, at, scope) if isinstance(q, Mapping) else q for q in each]
            made[key] = quotas[0] if isinstance(value, Mapping) else quotas
        elif kind in KEYS:
            made[key] = read_flag(value)
        else:
            made[key] = _convert(kind, value)

    def _slot_delay(self, scopes: dict[str, dict[str, Any]]) -> None:
        """In the draft a slot rests for DOWNLOAD_DELAY_PER_SLOT, a second, also where the delay is shorter.
        Here a pace that was typed sets that default aside, so it is said."""

        def is_shorter(scope: Mapping[str, Any]) -> bool:
            delay = scope.get("delay")
            if delay is None:
                return "quota" in scope
            return isinstance(delay, (int, float)) and delay < 1000

        if "rate" not in self._defaults and any(map(is_shorter, (self._defaults, *scopes.values()))):
            self._defaults.setdefault("slotDelay", 1000)

    def _backoff(self, scopes: Mapping[str, dict[str, Any]]) -> None:
        """The draft's statuses and its one bound, where the engine has more statuses and longer holds."""
        backoff = self._defaults.setdefault("backoff", {})
        if isinstance(backoff, dict):
            backoff.setdefault("statusCodes", _HTTP_CODES)
            backoff.setdefault("maxHold", backoff.get("maxDelay", _MAX_DELAY))
        for scope in scopes.values():
            own = scope.get("backoff")
            if isinstance(own, dict) and "maxDelay" in own:
                own.setdefault("maxHold", own["maxDelay"])

    def _for_the_downloader(self) -> None:
        options, settings = self._options, self._settings
        debugs = ("AUTOTHROTTLE_DEBUG", "THROTTLER_DEBUG")
        options.debug = any(self._take(name, read_flag, False) for name in debugs)
        options.redirect_max_delay = self._take("REDIRECT_MAX_DELAY", read_seconds, 300.0)
        options.robots_max_delay = self._take("THROTTLING_ROBOTSTXT_MAX_DELAY", read_seconds, 60.0)
        asks = self._take("THROTTLING_ROBOTSTXT_OBEY", read_flag, True)
        options.obeys_robots = settings.getbool("ROBOTSTXT_OBEY") and bool(asks)
        options.robots_user_agent = settings.get("ROBOTSTXT_USER_AGENT")
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


def _engine_path(scope: str) -> str:
    return f'scopes."{scope}"'


def _convert(kind: str, value: Any) -> Any:
    if kind == "seconds":
        # 0.3 s are 300 ms, not 299.99999999999994. What is no number is the engine's to refuse.
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return round(value * 1e6) / 1e3 if is_number and abs(value) < 1e12 else value
    if kind == "flag" or kind == "autothrottle":
        return read_flag(value)
    if kind == "codes":
        return [plain(each) for each in read_list(value)]
    if kind in ("jitter", "target"):
        return list(value) if isinstance(value, tuple) else value
    return value


def _exceptions(value: Any) -> Exceptions:
    import scrapy.exceptions

    classes: list[type[BaseException]] = []
    for each in read_list(value):
        made = load(each)
        if not (isinstance(made, type) and issubclass(made, BaseException)):
            raise WantError("classes of exceptions or their import paths")
        path = f"{made.__module__}.{made.__qualname__}"
        names = _SCRAPYS.get(each if isinstance(each, str) else path, ())
        classes += [made, *(getattr(scrapy.exceptions, name, made) for name in names)]
    return tuple(dict.fromkeys(classes))


def _unknown(name: str, value: Any, known: Any, path: str) -> Problem:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return Problem(path, f"a known setting{hint}", repr(value))


# Values: what may be typed, and what it stands for. From the command line everything is text.


class WantError(Exception):
    """What would have been right."""


def plain(value: Any) -> Any:
    """A value from the command line as what it stands for: ``-s DOWNLOAD_DELAY=0.5``."""
    if isinstance(value, str):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(value.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return value


def read_list(value: Any) -> list[Any]:
    """What may be typed as a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise WantError("a list")
    return list(value)


def read_flag(value: Any) -> bool:
    """Yes or no."""
    if value in (True, 1, "True", "true", "1"):
        return True
    if value in (False, 0, "False", "false", "0"):
        return False
    raise WantError("True or False")


def _reader(want: str, is_right: Callable[[Any], bool], made: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that gives a value as it is to be, or says what is wanted."""

    def read(value: Any) -> Any:
        if isinstance(value, bool) or not is_right(value):
            raise WantError(want)
        return made(value)

    return read


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= YEAR


read_seconds = _reader("seconds from 0 to a year", _is_time, float)
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

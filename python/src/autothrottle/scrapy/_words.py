"""The pace of each scope in Scrapy's words: what is in force, and which setting said so.

The trap is a default that makes a typed setting slower than Scrapy would: it is a warning, not a line among
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from .._convert import in_seconds
from .._native import Engine
from .._scopes import host_of_name
from ._table import SETTINGS

if TYPE_CHECKING:
    from ._options import Options

_NAMES: Final = {
    ("defaults." if section == "scope" else "" if section == "root" else f"defaults.{section}.") + key: name
    for name, (section, key, _) in reversed(SETTINGS.items())
}
"""The engine's path of a default → the setting."""

_MOST_SCOPES: Final = 10


def named(options: Options, path: str) -> str:
    """A path of the engine's as the setting that was typed, or would be."""
    known = options.typed.get(path)
    return known[0] if known is not None else _NAMES.get(path, path)


def worded(options: Options, text: str) -> str:
    """A reason of the engine's: settings in Scrapy's names, times in seconds."""
    return in_seconds(re.sub(r"defaults\.\w+", lambda match: named(options, match[0]), text))


def paces(options: Options) -> Iterator[tuple[bool, str]]:
    """A line for each scope that was set up, and for all others; whether it is a warning."""
    engine = Engine({key: value for key, value in options.engine.items() if key != "seed"})
    scopes = options.engine["scopes"]
    for name in scopes if options.manager is None else ():
        host = host_of_name(name)
        if host is not None:
            yield True, f"the scope {name} is that of no URL: hosts are in small letters, want {host}"
    for line in options.idle:
        yield True, line
    yield _pace(options, engine, "", {})
    for name in list(scopes)[:_MOST_SCOPES]:
        yield _pace(options, engine, name, scopes[name])
    if len(scopes) > _MOST_SCOPES:
        yield False, f"and {len(scopes) - _MOST_SCOPES} more scopes of THROTTLING_SCOPES and DOWNLOAD_SLOTS"
    engine.close()


def _pace(options: Options, engine: Engine, scope: str, own: Mapping[str, Any]) -> tuple[bool, str]:
    merged = {**options.engine["defaults"], **own}
    stats = engine.scope_stats(0, engine.scope(scope))

    def said(key: str, value: float) -> str:
        path = f'scopes."{scope}".{key}' if key in own else f"defaults.{key}"
        default = "" if path in options.typed else " (default)"
        return f"{named(options, path)} = {value:g}{default}"

    def is_typed(key: str) -> bool:
        return f'scopes."{scope}".{key}' in options.typed or f"defaults.{key}" in options.typed

    delay = stats.delay / 1e9
    who = f"pace of {scope}" if scope else "pace of hosts without settings of their own"
    if merged.get("manager"):
        return False, f"{who}: its scope manager says it"
    if merged.get("rampup"):
        return False, f"{who}: rampup finds it"
    if merged.get("autothrottle"):
        slots = said("concurrency", stats.slots)
        return False, f"{who}: AutoThrottle finds it, from a delay of {delay:g} s ({slots})"
    slot_delay = 0.0 if "rate" in merged else merged.get("slotDelay", 0) / 1000
    by_slots = slot_delay / stats.slots
    words = [f"rate: {delay:g} s between sends" if "rate" in merged else said("delay", delay)]
    if slot_delay:
        words.append(said("slotDelay", slot_delay))
    if "rate" not in merged or is_typed("concurrency"):
        words.append(said("concurrency", stats.slots))
    least = max(delay, by_slots)
    most = f"at most {1 / least:.3g} a second" if least else "as fast as its slots allow"
    is_slowed = by_slots > delay and is_typed("delay") and not is_typed("slotDelay")
    # One slot of a server that takes a second is one request a second, whatever the delay.
    slots = "" if is_typed("concurrency") else " with CONCURRENT_REQUESTS_PER_DOMAIN = 8"
    scrapys = f"; DOWNLOAD_DELAY_PER_SLOT = 0{slots} gives the pace of DOWNLOAD_DELAY, as in Scrapy"
    remedy = scrapys if is_slowed else ""
    return is_slowed, f"{who}: {most}, by {', '.join(words)}{remedy}"

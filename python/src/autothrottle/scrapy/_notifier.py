"""Output for people: stats under ``throttling/``, AUTOTHROTTLE_DEBUG's lines, warnings. Only few scopes have
their pace in the stats.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from .._convert import in_seconds
from .._events import effect_of
from .._native import SCRAPY_SETTINGS, Engine
from .._records import FINDINGS
from .._scopes import host_of_name
from ._options import engine_path

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ._options import Options
    from ._permits import PermitQueue, Slot

logger = logging.getLogger("autothrottle.scrapy")

_MOST_STATS = 32


class Notifier:
    def __init__(self, crawler: Crawler, options: Options) -> None:
        self._crawler = crawler
        self._options = options
        self._has_warned = False
        self._overruled: set[str] = set()
        self._told_of_group: set[str] = set()

    def count(self, name: str, by: int = 1) -> None:
        """Adds to a stat under ``throttling/``."""
        self._crawler.stats.inc_value(f"throttling/{name}", by)

    def paces(self) -> None:
        """The settings in force when the crawl begins."""
        for is_slowed, line in paces(self._options):
            logger.log(
                logging.WARNING if is_slowed else logging.INFO, line, extra={"spider": self._crawler.spider}
            )

    def notice(self, notice: Any) -> None:
        """Something that the engine tells."""
        if notice.kind in ("backoff", "recover", "hold"):
            self.count(notice.kind)
        elif notice.kind in FINDINGS:
            setting, why = named(self._options, notice.path), worded(self._options, notice.why)
            self._warn("%s %s: %s", setting, effect_of(notice.kind, notice.scope), why)
        elif notice.kind == "down" and notice.span is not None:
            self.count("down")
            how = 'THROTTLING_DEFAULTS = {"down_after": seconds} says when, False is never'
            self._warn(
                "%s is down: nothing but failed connections and timeouts for %.0f seconds. Its requests fail "
                "at once but for one that asks whether it is back. %s",
                notice.scope,
                notice.span / 1e9,
                how,
            )
        elif notice.kind == "stall":
            self.count("stall")
            seconds = notice.span / 1e9
            self._warn("%s has only answered badly for %.0f seconds", notice.scope, seconds)

    def shared(self, code: str, message: str) -> None:
        """Something about those that share the limit; each once."""
        if code not in self._told_of_group:
            self._told_of_group.add(code)
            self._warn("%s", message.replace("`members`", "THROTTLING_SHARED_MEMBERS"))

    def waiting(self, bypassing: int) -> None:
        """That many requests wait that never were in the scheduler: DELAYED_REQUESTS_WARN_THRESHOLD."""
        if bypassing < self._options.warn_threshold or self._has_warned:
            return
        self._has_warned = True
        self._warn(
            "%d requests that bypassed the scheduler (engine.download_async) wait in memory for their turn "
            "(DELAYED_REQUESTS_WARN_THRESHOLD)",
            bypassing,
        )

    def robots(self, scope: str, seconds: float, outcome: str) -> None:
        """The end of a robots.txt."""
        if outcome == "applied":
            self.count("robotstxt/applied")
        elif outcome == "overruled":
            self.count("robotstxt/overruled")
            if scope not in self._overruled:
                self._overruled.add(scope)
                self._warn(
                    "robots.txt of %s asks for one request at a time, %g seconds apart; the scope keeps its "
                    'own settings ("ignore_robots_txt": True silences this)',
                    scope,
                    seconds,
                )

    def debug(
        self, slot: Slot, before: float, after: float, latency: float | None, response: Response
    ) -> None:
        """AutoThrottle's line for a response. An unknown latency changed no delay: no line."""
        if latency is None:
            return
        logger.info(
            "slot: %(slot)s | conc:%(concurrency)2d | delay:%(delay)5d ms (%(delaydiff)+d) | "
            "latency:%(latency)5d ms | size:%(size)6d bytes",
            {
                "slot": "+".join(slot.names),
                # As Scrapy counts: with the one that was just answered.
                "concurrency": len(slot.transferring) + 1,
                "delay": after * 1000,
                "delaydiff": (after - before) * 1000,
                "latency": latency * 1000,
                "size": len(response.body),
            },
            extra={"spider": self._crawler.spider},
        )

    def closed(self, permits: PermitQueue) -> None:
        """The paces at the end."""
        stats = permits.engine.stats(permits.clock.now())
        busiest = sorted(stats.scopes.items(), key=lambda each: -(each[1].rate or 0))[:_MOST_STATS]
        for name, scope in busiest:
            self._crawler.stats.set_value(f"throttling/delay/{name}", round(scope.delay / 1e9, 3))
            self._crawler.stats.set_value(f"throttling/concurrency/{name}", scope.slots)

    def sent_back(self, request: Request) -> None:
        """A request went back to the scheduler because the spider closes."""
        self.count("returned")

    def _warn(self, text: str, *arguments: object) -> None:
        logger.warning(text, *arguments, extra={"spider": self._crawler.spider})


_NAMES: Final = {
    ("defaults." if section == "scope" else "" if section == "root" else f"defaults.{section}.") + key: name
    for name, (section, key, _) in reversed(SCRAPY_SETTINGS.items())
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

    def shown(key: str, value: float) -> str:
        path = f"{engine_path(scope)}.{key}" if key in own else f"defaults.{key}"
        default = "" if path in options.typed else " (default)"
        return f"{named(options, path)} = {value:g}{default}"

    def is_typed(key: str) -> bool:
        return f"{engine_path(scope)}.{key}" in options.typed or f"defaults.{key}" in options.typed

    delay = stats.delay / 1e9
    who = f"pace of {scope}" if scope else "pace of hosts without settings of their own"
    if merged.get("manager"):
        return False, f"{who}: its scope manager says it"
    if merged.get("rampup"):
        return False, f"{who}: rampup finds it"
    if merged.get("autothrottle"):
        slots = shown("concurrency", stats.slots)
        return False, f"{who}: AutoThrottle finds it, from a delay of {delay:g} s ({slots})"
    slot_delay = 0.0 if "rate" in merged else merged.get("slotDelay", 0) / 1000
    by_slots = slot_delay / stats.slots
    words = [f"rate: {delay:g} s between sends" if "rate" in merged else shown("delay", delay)]
    if slot_delay:
        words.append(shown("slotDelay", slot_delay))
    if "rate" not in merged or is_typed("concurrency"):
        words.append(shown("concurrency", stats.slots))
    least = max(delay, by_slots)
    most = f"at most {1 / least:.3g} a second" if least else "as fast as its slots allow"
    is_slowed = by_slots > delay and is_typed("delay") and not is_typed("slotDelay")
    # One slot of a server that takes a second is one request a second, whatever the delay.
    slots = "" if is_typed("concurrency") else " with CONCURRENT_REQUESTS_PER_DOMAIN = 8"
    scrapys = f"; DOWNLOAD_DELAY_PER_SLOT = 0{slots} gives the pace of DOWNLOAD_DELAY, as in Scrapy"
    remedy = scrapys if is_slowed else ""
    return is_slowed, f"{who}: {most}, by {', '.join(words)}{remedy}"

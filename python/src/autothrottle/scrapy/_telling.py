"""What people see: stats under ``throttling/``, AUTOTHROTTLE_DEBUG's lines, warnings. Only few scopes have
their pace in the stats.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ._words import named, paces, worded

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ._desk import Desk
    from ._options import Options
    from ._slot import Slot

logger = logging.getLogger("autothrottle.scrapy")

_MOST_SCOPES = 32


class Teller:
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
        """What is in force when the crawl begins."""
        for is_slowed, line in paces(self._options):
            logger.log(
                logging.WARNING if is_slowed else logging.INFO, line, extra={"spider": self._crawler.spider}
            )

    def notice(self, notice: Any) -> None:
        """Something that the engine tells."""
        if notice.kind in ("backoff", "recover", "hold"):
            self.count(notice.kind)
        elif notice.kind == "no-effect":
            setting, why = named(self._options, notice.path), worded(self._options, notice.why)
            self._warn("%s has no effect%s: %s", setting, f" in {notice.scope}" if notice.scope else "", why)
        elif notice.kind == "rampup-bound":
            setting, why = named(self._options, notice.path), worded(self._options, notice.why)
            self._warn("%s slows rampup down in %s: %s", setting, notice.scope, why)
        elif notice.kind == "hold-cut":
            self._warn("BACKOFF_MAX_DELAY cuts a wait of %s: %s", notice.scope, notice.why)
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
        """What became of a robots.txt."""
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

    def closed(self, desk: Desk) -> None:
        """The paces at the end."""
        stats = desk.engine.stats(desk.clock.now())
        busiest = sorted(stats.scopes.items(), key=lambda each: -(each[1].rate or 0))[:_MOST_SCOPES]
        for name, scope in busiest:
            self._crawler.stats.set_value(f"throttling/delay/{name}", round(scope.delay / 1e9, 3))
            self._crawler.stats.set_value(f"throttling/concurrency/{name}", scope.slots)

    def sent_back(self, request: Request) -> None:
        """A request went back to the scheduler because the spider closes."""
        self.count("returned")

    def _warn(self, text: str, *arguments: object) -> None:
        logger.warning(text, *arguments, extra={"spider": self._crawler.spider})

"""The pace that a robots.txt asks for, from Scrapy's own reading of it.

Scrapy tells of each robots.txt by a signal (``robots_parsed``); where it has none yet, the response that its
middleware asked for is read here. The trap is a file that overrules its reader: a scope with a pace of its
own keeps it, with one warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals

from .._native import parse_robots

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

HAS_SIGNAL = hasattr(signals, "robots_parsed")


def user_agent(settings: BaseSettings, request: Request) -> str:
    """By what name Scrapy goes there, as its middleware finds it."""
    found = settings.get("ROBOTSTXT_USER_AGENT") or request.headers.get(b"User-Agent")
    found = found or settings.get("USER_AGENT") or ""
    return found.decode("latin-1") if isinstance(found, bytes) else str(found)


def delay_of_parser(parser: Any, agent: str) -> float | None:
    """Seconds between two requests that a parsed robots.txt asks for: the slower of its two directives."""
    delays = []
    reads = getattr(parser, "crawl_delay", None) or getattr(getattr(parser, "rp", None), "crawl_delay", None)
    if reads is not None:
        delays.append(reads(agent))
    rate = getattr(getattr(parser, "rp", None), "request_rate", None)
    said = rate(agent) if rate is not None else None
    if said is not None and said.requests > 0:
        delays.append(said.seconds / said.requests)
    return max((float(each) for each in delays if each is not None and each >= 0), default=None)


def delay_of_response(request: Request, response: Response, agent: str) -> float | None:
    """The same from the file itself, if this is one that Scrapy's middleware asked for."""
    if not request.meta.get("dont_obey_robotstxt") or not request.url.endswith("/robots.txt"):
        return None
    if response.status != 200:
        return None
    delay = parse_robots(response.body, agent)
    return None if delay is None else delay / 1e9

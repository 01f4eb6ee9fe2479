"""Spiders of a few requests each, one for each example of the draft."""

# ruff: noqa: RUF012 -- Scrapy's `custom_settings` is no ClassVar.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class Example(Spider):
    """Asks for its pages and tells of each under which scopes it went."""

    urls: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, self.parse, dont_filter=True)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "slot": response.meta["download_slot"]}


class Quotes(Example):
    """Per-domain throttling."""

    name = "quotes"
    urls = tuple(f"http://quotes.toscrape.com/page/{page}/" for page in range(1, 6))


class Domains(Example):
    """Alternative domain throttling: one scope for all subdomains."""

    name = "domains"
    custom_settings = {"THROTTLING_MANAGER": "polite.throttling.RegistrableDomain"}
    urls = ("http://books.toscrape.com/", "http://toscrape.com/", "http://quotes.toscrape.com/")


class Hierarchy(Example):
    """Alternative domain throttling: a scope for each level."""

    name = "hierarchy"
    custom_settings = {
        "THROTTLING_MANAGER": "polite.throttling.DomainHierarchy",
        "THROTTLING_SCOPES": {
            "toscrape.com": {"concurrency": 32},
            "books.toscrape.com": {"concurrency": 24},
            "quotes.toscrape.com": {"concurrency": 16},
        },
    }
    urls = ("http://books.toscrape.com/", "http://toscrape.com/", "http://quotes.toscrape.com/")


class Endpoints(Example):
    """Endpoint-specific throttling."""

    name = "endpoints"
    custom_settings = {
        "THROTTLING_MANAGER": "polite.throttling.Endpoints",
        "THROTTLING_SCOPES": {
            "api.toscrape.com/fast-endpoint": {"concurrency": 1000, "delay": 0.08},
            "api.toscrape.com/slow-endpoint": {"delay": 5.0},
        },
    }
    urls = (
        *(f"http://api.toscrape.com/fast-endpoint?{page}" for page in range(4)),
        "http://api.toscrape.com/slow-endpoint",
    )


class Api(Example):
    """Web scraping API throttling."""

    name = "api"
    custom_settings = {
        "THROTTLING_MANAGER": "polite.throttling.ScrapingApi",
        "THROTTLING_SCOPES": {"api.toscrape.com": {"concurrency": 1000, "delay": 0.08}},
    }
    urls = (
        "http://api.toscrape.com/?url=http://example.com/",
        "http://api.toscrape.com/?url=http://a.example/",
    )


class Cost(Example):
    """Cost-capped throttling."""

    name = "cost"
    custom_settings = {
        "THROTTLING_MANAGER": "polite.throttling.CostCapped",
        "THROTTLING_SCOPES": {"cost": {"quota": 100.0}},
    }
    urls = ("http://api.toscrape.com/?render=1", "http://api.toscrape.com/")


class Groups(Spider):
    """Per-request throttling."""

    name = "groups"

    async def start(self) -> AsyncIterator[Request]:
        yield Request("http://api.example/", self.parse, meta={"throttling_scopes": "api"})
        yield Request("http://api.example/users", self.parse, meta={"throttling_scopes": {"api", "users"}})

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "slot": response.meta["download_slot"]}

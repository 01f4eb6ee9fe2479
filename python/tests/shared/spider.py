"""A spider among those that share a limit: ``spider.py {port, name, url, pages, settings}``."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

GIVEN: dict[str, Any] = json.loads(sys.argv[1])


class Pages(Spider):
    name = "pages"

    async def start(self) -> AsyncIterator[Request]:
        for page in range(GIVEN["pages"]):
            yield Request(f"{GIVEN['url']}&page={page}", callback=self.parse)

    def parse(self, response: Any) -> None:
        """There is no item to keep."""


if __name__ == "__main__":
    process = CrawlerProcess(
        {
            "DOWNLOADER": "autothrottle.scrapy.Downloader",
            "THROTTLING_SHARED_REDIS": f"redis://127.0.0.1:{GIVEN['port']}/0",
            "THROTTLING_SHARED_NAME": GIVEN["name"],
            "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
            "DOWNLOAD_DELAY": 0,
            "DOWNLOAD_DELAY_PER_SLOT": 0,
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            **GIVEN["settings"],
        }
    )
    crawler = process.create_crawler(Pages)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    print(json.dumps(crawler.stats.get_stats(), default=str))

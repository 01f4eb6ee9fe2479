"""Whole crawls with Scrapy's own engine, scheduler and middlewares, in processes of their own.

These need real time: Scrapy closes, retries and follows in it. They are short: the longest waits for two
seconds. The site is a proxy on this machine, so that the examples' hosts need no network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2] / "examples" / "scrapy"
SOURCE = Path(__file__).parents[2] / "src"


class Site:
    """Answers for every host, as a proxy, and notes what came."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlparse(self.path)
                site.seen.append((time.monotonic(), url.netloc, url.path))
                status, headers, body = 200, {}, b"<p>page</p>"
                if url.path == "/robots.txt":
                    status, body = 404, b""
                    if url.netloc.startswith("slow"):
                        status, body = 200, b"User-agent: *\nCrawl-delay: 1.5\n"
                elif url.path == "/late":
                    time.sleep(2)
                elif url.path == "/once" and sum(path == "/once" for _, _, path in site.seen) == 1:
                    status, body = 503, b""
                elif url.path == "/moved":
                    status, body = 302, b""
                    headers = {"Location": "http://b.example/there"}
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def paths(self) -> list[str]:
        return [path for _, _, path in self.seen if path != "/robots.txt"]

    def times(self, host: str) -> list[float]:
        return [at for at, netloc, path in self.seen if netloc == host and path != "/robots.txt"]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Crawl:
    def __init__(self, out: str, log: str) -> None:
        self.log = log
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        self.stats: dict[str, Any] = next((line["stats"] for line in lines if "stats" in line), {})
        self.items = [line for line in lines if "stats" not in line]


def environment(site: Site) -> dict[str, str]:
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(SOURCE)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "http_proxy": site.proxy, "no_proxy": ""}


def run(site: Site, spider: str, settings: dict[str, Any], seconds: float = 60) -> Crawl:
    """Runs a script with a spider in it."""
    script = f"""
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Base(scrapy.Spider):
    name = "test"
    def parse(self, response):
        print(json.dumps({{"url": response.url, "status": response.status}}), flush=True)
    def failed(self, failure):
        print(json.dumps({{"failed": failure.type.__name__}}), flush=True)
    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        print(json.dumps({{"stats": {{**stats, "reason": reason}}}}, default=str), flush=True)
    def get(self, url, **keywords):
        return scrapy.Request(url, self.parse, errback=self.failed, **keywords)

{spider}

settings = json.loads(sys.argv[1])
process = CrawlerProcess(settings)
process.crawl(Test)
process.start()
"""
    usual = {"DOWNLOADER": "autothrottle.scrapy.Downloader", "TELNETCONSOLE_ENABLED": False}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(usual | settings)],
        env=environment(site),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Crawl(done.stdout, done.stderr)


FAST = {"DOWNLOAD_DELAY": 0.01, "DOWNLOAD_DELAY_PER_SLOT": 0}


def test_retries_redirects_timeouts_and_the_cache(site: Site, tmp_path: Path) -> None:
    spider = """
class Test(Base):
    async def start(self):
        yield self.get("http://a.example/once")
        yield self.get("http://a.example/moved")
        yield self.get("http://c.example/late", meta={"download_timeout": 0.5, "dont_retry": True})
        yield self.get("http://d.example/page")
"""
    settings = {
        **FAST,
        "BACKOFF_MIN_DELAY": 0.1,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "HTTPCACHE_IGNORE_HTTP_CODES": [503],
    }
    crawl = run(site, spider, settings)
    assert sorted(each["url"] for each in crawl.items if "url" in each) == [
        "http://a.example/once",
        "http://b.example/there",
        "http://d.example/page",
    ]
    assert [each["failed"][-12:] for each in crawl.items if "failed" in each] == ["TimeoutError"]
    assert crawl.stats["retry/count"] == 1
    assert crawl.stats["throttling/backoff"] == 2, "the 503 of a, the timeout of c"
    assert crawl.stats["throttling/requests"] == 6
    assert "Traceback" not in crawl.log
    site.seen.clear()
    cached = """
class Test(Base):
    async def start(self):
        for index in range(5):
            yield self.get("http://d.example/page", dont_filter=True)
"""
    again = run(site, cached, {**settings, "DOWNLOAD_DELAY": 5})
    assert len(again.items) == 5
    assert site.paths() == []
    assert "throttling/requests" not in again.stats, "what comes from the cache makes no request"


def test_a_spider_that_is_stopped_ends_at_once_and_its_job_goes_on(site: Site, tmp_path: Path) -> None:
    spider = """
class Test(Base):
    pages = 0
    async def start(self):
        if self.crawler.stats.get_value("throttling/restored"):
            return
        for index in range(10):
            yield self.get(f"http://a.example/{index}")
    def parse(self, response):
        super().parse(response)
        self.pages += 1
        if self.pages == 1:
            raise scrapy.exceptions.CloseSpider("stopped")
"""
    settings = {"JOBDIR": str(tmp_path), "RANDOMIZE_DOWNLOAD_DELAY": False}
    slow = run(site, spider, {**settings, "DOWNLOAD_DELAY": 600})  # It would time out.
    assert slow.stats["reason"] == "stopped"
    assert 4 <= slow.stats["throttling/returned"] <= 6, "the others never left the scheduler"
    assert not [each for each in slow.items if "failed" in each], "they were not failed"
    assert json.loads((tmp_path / "throttling.json").read_text())["version"] == 1
    rest = spider.replace("if self.pages == 1", "if False")
    again = run(site, rest, {**settings, "DOWNLOAD_DELAY": 0.01, "DOWNLOAD_DELAY_PER_SLOT": 0})
    assert again.stats["reason"] == "finished"
    assert sorted(site.paths()) == sorted(f"/{index}" for index in range(10)), "each of the ten was sent once"


def test_robots_txt_sets_the_pace(site: Site) -> None:
    spider = """
class Test(Base):
    async def start(self):
        for index in range(2):
            yield self.get(f"http://slow.example/{index}")
            yield self.get(f"http://slow-but-mine.example/{index}")
"""
    own = {"slow-but-mine.example": {"delay": 0.01, "slot_delay": 0}}
    crawl = run(site, spider, {**FAST, "ROBOTSTXT_OBEY": True, "THROTTLING_SCOPES": own})
    first, second = site.times("slow.example")
    assert second - first > 1.4
    assert crawl.stats["throttling/robotstxt/applied"] == 1
    assert crawl.stats["throttling/robotstxt/overruled"] == 1
    assert (
        "robots.txt of slow-but-mine.example asks for one request at a time, 1.5 seconds apart" in crawl.log
    )


def test_requests_that_bypass_the_scheduler_are_not_lost_in_it(site: Site, tmp_path: Path) -> None:
    spider = """
class Test(Base):
    async def start(self):
        yield self.get("http://a.example/1")
    async def parse(self, response):
        import asyncio
        inline = [
            asyncio.ensure_future(self.crawler.engine.download_async(scrapy.Request(f"http://a.example/in{n}")))
            for n in range(3)
        ]
        await asyncio.sleep(0.2)
        asyncio.ensure_future(self.crawler.engine.close_spider_async(reason="stopped"))
        done = await asyncio.gather(*inline, return_exceptions=True)
        print(json.dumps({"inline": [type(each).__name__ for each in done]}), flush=True)
"""
    crawl = run(site, spider, {"DOWNLOAD_DELAY": 30, "JOBDIR": str(tmp_path)}, seconds=20)
    assert [each for each in crawl.items if "inline" in each] == [{"inline": ["IgnoreRequest"] * 3}]
    assert "throttling/returned" not in crawl.stats


EXAMPLES = {
    "quotes": {"quotes.toscrape.com"},
    "domains": {"toscrape.com"},
    "hierarchy": {
        "books.toscrape.com+toscrape.com",
        "toscrape.com",
        "quotes.toscrape.com+toscrape.com",
    },
    "endpoints": {"api.toscrape.com/fast-endpoint", "api.toscrape.com/slow-endpoint"},
    "api": {"api.toscrape.com+example.com", "a.example+api.toscrape.com"},
    "cost": {"api.toscrape.com+cost"},
    "groups": {"api", "api+users"},
}


def test_the_drafts_examples_run(site: Site) -> None:
    script = """
import json, sys
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess({**get_project_settings(), "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False})
for name in sys.argv[1:]:
    crawler = process.create_crawler(name)
    note = lambda item, spider: print(json.dumps({"spider": spider.name, **item}), flush=True)
    crawler.signals.connect(note, signals.item_scraped, weak=False)
    process.crawl(crawler)
process.start()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *EXAMPLES],
        cwd=PROJECT,
        env={**environment(site), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    slots: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        item = json.loads(line)
        slots.setdefault(item["spider"], set()).add(item["slot"])
    assert slots == EXAMPLES
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr

"""Spiders that share a limit, through a real Redis: two processes that Scrapy runs, with each reactor.

Real time, for Scrapy closes in it. The assertions are about counts at the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis

from .servers import BINARY, RedisServer, Site

pytestmark = pytest.mark.skipif(
    BINARY is None and os.environ.get("TEST_ALL") != "true", reason="no redis-server"
)
SOURCE = Path(__file__).resolve().parents[2] / "src"
PAGES = 12


def spider(port: int, url: str, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    given = {"port": port, "name": "spiders", "url": url, "pages": PAGES, "settings": settings}
    program = [sys.executable, str(Path(__file__).with_name("spider.py")), json.dumps(given)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_slots_for_two_spiders() -> None:
    server, site = RedisServer(), Site(0.04)
    reactors: list[dict[str, Any]] = [
        {},
        {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    ]
    spiders = [
        spider(server.port, f"{site.url}?who=spider{number}", settings)
        for number, settings in enumerate(reactors)
    ]
    client = redis.Redis(port=server.port)
    try:
        for process in spiders:
            out, error = process.communicate(timeout=60)
            assert (process.returncode, error) == (0, b"")
            stats = json.loads(out)
            assert stats["finish_reason"] == "finished"
            assert stats["response_received_count"] == PAGES
        assert site.by == {"spider0": PAGES, "spider1": PAGES}
        assert site.most == 2
        # Each left its seat: another program may go on at once, and knows what was learned.
        assert client.exists("autothrottle:{spiders}:lease") == 0
        assert client.hget("autothrottle:{spiders}:snapshot", "bytes")
    finally:
        for process in spiders:
            process.kill()
            process.wait()
        client.close()
        site.stop()
        server.stop()


def test_a_store_that_is_not_there_keeps_no_spider_from_ending() -> None:
    site = Site(0.01)
    process = spider(1, f"{site.url}?who=alone", {"THROTTLING_SHARED_MEMBERS": 1})
    try:
        out, error = process.communicate(timeout=90)
        assert process.returncode == 0
        assert json.loads(out)["response_received_count"] == PAGES
        assert error.count(b"the connection to the group is broken") == 1
    finally:
        process.kill()
        process.wait()
        site.stop()

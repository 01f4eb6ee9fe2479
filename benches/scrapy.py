"""Real crawls with Scrapy against nginx, beside Scrapy's own AutoThrottle: `python benches/scrapy.py`.

Needs nginx, `pip install -e python[scrapy]` in the Python that runs it, and `npm run build` for the line of
the Node driver. All crawls of a row run at once, each in a process of its own and against a zone of its own.
So a busy machine is as bad for one as for the other. What was served and refused is counted in nginx's log.

* `limit`: nginx `limit_req` 10/s, upstream 200 ms, burst 0 and 20, 60 s from a cold start.
* `line`: one slow host (a request in two seconds, 300 of them first) beside seven at 10/s, 15 s.
* `cpu`: CPU time a page without a limit, and with a delay of 10 ms; the median of three.
* `many`: CPU time of 20,000 pages of 200 hosts without a delay, both crawls at once.

`--only NAME` runs one of them, `--seconds N` (60) makes `limit` shorter.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RATE = 10
UPSTREAM = 0.2

AUTOTHROTTLE: dict[str, Any] = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_TARGET_CONCURRENCY": 4}
AUTOTHROTTLE |= {"CONCURRENT_REQUESTS_PER_DOMAIN": 8}
OURS: dict[str, Any] = {"DOWNLOADER": "autothrottle.scrapy.Downloader"}
RAMPUP = {**OURS, "THROTTLING_SCOPES": {"127.0.0.1": {"rampup": True}}}


# A crawl, in a process of its own


def crawl(job: dict[str, Any]) -> None:
    """Crawls as told and prints pages and CPU time, without what it costs to start."""
    import scrapy
    from scrapy.crawler import CrawlerProcess

    urls: list[str] = job["urls"]

    class Bench(scrapy.Spider):
        name = "bench"
        pages = 0
        cpu = 0.0

        async def start(self) -> Any:
            self.cpu = time.process_time()
            for index in range(job.get("first", 0)):
                yield self.request(urls[0], index)
            for index in range(job["waiting"]):
                for url in urls[1:] if job.get("first") else urls:
                    yield self.request(url, index)

        def request(self, url: str, index: int) -> scrapy.Request:
            meta = {"handle_httpstatus_all": True}
            return scrapy.Request(
                f"{url}?{index}", self.parse, meta=meta, dont_filter=True, errback=self.failed
            )

        def parse(self, response: Any) -> Any:
            self.pages += response.status == 200
            left = job.get("pages")
            if left is None:
                yield self.request(response.url.partition("?")[0], self.pages)
            elif self.pages == left:
                raise scrapy.exceptions.CloseSpider("enough")

        def failed(self, failure: Any) -> Any:
            yield self.request(failure.request.url.partition("?")[0], 0)

        def closed(self, reason: str) -> None:
            print(json.dumps({"pages": self.pages, "cpu": time.process_time() - self.cpu}), flush=True)

    settings = {
        "LOG_LEVEL": "ERROR",
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "CLOSESPIDER_TIMEOUT": job["seconds"],
        "ROBOTSTXT_OBEY": False,
        **job["settings"],
    }
    process = CrawlerProcess(settings)
    process.crawl(Bench)
    process.start()


def start(job: dict[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--crawl", json.dumps(job)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    out, _ = process.communicate(timeout=seconds + 60)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(f"a crawl failed with {process.returncode}: see above")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


# Servers


def upstream(delay: float) -> None:
    """A server that answers after a while, until it is killed. Prints its port."""
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\npage"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(delay)
                writer.write(page)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(serve())


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Nginx:
    """nginx before the upstream: a port for each crawl, with a limit of its own."""

    def __init__(self, crawls: int, limit: str, delay: float = UPSTREAM) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="autothrottle-scrapy-"))
        command = [sys.executable, __file__, "--upstream", str(delay)]
        self.upstream = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.upstream.stdout
        behind = int(self.upstream.stdout.readline())
        self.ports = [free_port() for _ in range(crawls)]
        zones = [f"limit_req_zone $server_port zone=z{n}:1m rate={RATE}r/s;" for n in range(crawls)]
        servers = [
            f"""server {{ listen {port}; location / {{ {limit.format(zone=f"z{index}")}
              proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1;
              proxy_set_header Connection ""; }} }}"""
            for index, port in enumerate(self.ports)
        ]
        conf = self.folder / "nginx.conf"
        temporary = " ".join(
            f"{kind}_temp_path {self.folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        conf.write_text(
            f"""daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log crit; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  log_format plain '$server_port $status $msec $server_addr';
  access_log {self.folder}/access.log plain; {temporary}
  keepalive_requests 1000000; limit_req_status 429; {" ".join(zones)}
  {" ".join(servers)}
}}"""
        )
        self.nginx = subprocess.Popen(["nginx", "-p", str(self.folder), "-c", str(conf)])
        # Also where a crawl fails: no process is left running.
        atexit.register(self._end)
        time.sleep(0.5)

    def watch(self, seconds: float) -> None:
        """Returns when so long has passed since the first answer at each port."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            time.sleep(0.2)
            first: dict[str, float] = {}
            for row in (self.folder / "access.log").read_text().splitlines():
                port, _, at, _ = row.split()
                first.setdefault(port, float(at))
            if len(first) == len(self.ports) and time.time() > max(first.values()) + seconds:
                return
        sys.exit("a crawl sent nothing")

    def close(self) -> list[list[str]]:
        """Ends it; gives the lines of its log."""
        log = self.folder / "access.log"
        self._end_processes()
        lines = log.read_text().splitlines()
        self._end()
        return [line.split() for line in lines]

    def _end_processes(self) -> None:
        for process in (self.nginx, self.upstream):
            process.terminate()
            process.wait()

    def _end(self) -> None:
        self._end_processes()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self._end)


# What is measured


def limit(seconds: int) -> None:
    """A limit that is not told."""
    print(f"\nnginx limit_req {RATE}/s, upstream {UPSTREAM * 1000:.0f} ms, {seconds} s from a cold start\n")
    print(
        "| burst | crawl | utilisation | refused | in the second half | CPU a page |\n"
        "|---|---|---|---|---|---|"
    )
    node = {"throttle": {"defaults": {"rampup": True}}}
    for burst in (0, 20):
        use = "limit_req zone={zone}" + (f" burst={burst} nodelay;" if burst else ";")
        server = Nginx(3, use)
        urls = [f"http://127.0.0.1:{port}/" for port in server.ports]
        job = {"seconds": seconds + 1, "waiting": 64}
        crawls = {
            "AutoThrottle, N = 4": start({**job, "urls": [urls[0]], "settings": AUTOTHROTTLE}),
            "autothrottle.scrapy, rampup": start({**job, "urls": [urls[1]], "settings": RAMPUP}),
        }
        told = json.dumps({"url": urls[2], "seconds": seconds + 2, **node})
        nodes = subprocess.Popen(
            ["node", "benches/nginx.mjs", "--work", told], cwd=ROOT, stderr=subprocess.DEVNULL
        )
        found = {name: result(process, seconds) for name, process in crawls.items()}
        nodes.wait(timeout=60)
        log = server.close()
        for name, port in zip([*found, "Node, rampup"], server.ports, strict=True):
            mine = [(int(status), float(at)) for at_port, status, at, _ in log if int(at_port) == port]
            if not mine:
                print(f"| {burst} | {name} | sent nothing (`npm run build`?) | | | |", flush=True)
                continue
            begin = min(at for _, at in mine)
            span = seconds - 2
            mine = [(status, at - begin) for status, at in mine if at < begin + span]
            served = sum(status == 200 for status, _ in mine)
            refused = sum(status == 429 for status, _ in mine)
            late = [status for status, at in mine if at >= span / 2]
            late_share = sum(status == 429 for status in late) / max(1, len(late))
            cpu = f"{found[name]['cpu'] / served * 1000:.1f} ms" if name in found else ""
            print(
                f"| {burst} | {name} | {served / (RATE * span):.3f} | {refused / len(mine):.1%} | "
                f"{late_share:.1%} | {cpu} |",
                flush=True,
            )


def line() -> None:
    """One slow host beside seven, known first or one among all."""
    seconds = 15
    print(f"\none host at a request in 2 s, seven at {RATE}/s, {seconds} s\n")
    print("| the slow host | crawl | pages of the seven | of the slow one |\n|---|---|---|---|")
    hosts = [f"127.0.0.{index}" for index in range(1, 9)]
    paces = {host: {"delay": 2.0 if host == hosts[0] else 0.1, "concurrency": 8} for host in hosts}
    scrapys = {"DOWNLOAD_SLOTS": paces}
    crawls = {
        "Scrapy": scrapys,
        "Scrapy, CONCURRENT_REQUESTS 64": {**scrapys, "CONCURRENT_REQUESTS": 64},
        "autothrottle.scrapy": {**OURS, "THROTTLING_SCOPES": paces, "DOWNLOAD_DELAY_PER_SLOT": 0},
    }
    for order, first in (("300 requests of it first", 300), ("in turn with the others", 0)):
        server = Nginx(len(crawls), "")
        job = {"seconds": 600, "first": first, "waiting": 20}
        started = [
            start({**job, "urls": _urls(hosts, port), "settings": settings})
            for settings, port in zip(crawls.values(), server.ports, strict=True)
        ]
        # Not until they end: Scrapy waits for all that its downloader has, which is minutes of the slow host.
        server.watch(seconds)
        for process in started:
            process.kill()
            process.communicate()
        log = server.close()
        for name, port in zip(crawls, server.ports, strict=True):
            mine = [(float(at), addr) for at_port, _, at, addr in log if int(at_port) == port]
            begin = min(at for at, _ in mine)
            kept = [addr for at, addr in mine if at < begin + seconds]
            slow = kept.count(hosts[0])
            print(f"| {order} | {name} | {len(kept) - slow} | {slow} |", flush=True)


def _urls(hosts: list[str], port: int) -> list[str]:
    return [f"http://{host}:{port}/" for host in hosts]


def cpu() -> None:
    """CPU time a page."""
    print("\nCPU time a page, in turns, the median of three\n")
    print("| pace | Scrapy | autothrottle.scrapy | ratio |\n|---|---|---|---|")
    for name, delay, pages in (("no limit, 16 at a time", 0, 1000), ("a delay of 10 ms", 0.01, 500)):
        pace = {"concurrency": 16, "delay": delay, "jitter": 0}
        both = {
            "Scrapy": {"DOWNLOAD_SLOTS": {"127.0.0.1": pace}},
            "ours": {
                **OURS,
                "THROTTLING_SCOPES": {"127.0.0.1": pace},
                "DOWNLOAD_DELAY_PER_SLOT": 0,
            },
        }
        costs: dict[str, list[float]] = {each: [] for each in both}
        for _ in range(3):
            for each, settings in both.items():
                server = Nginx(1, "", 0)
                urls = [f"http://127.0.0.1:{server.ports[0]}/"]
                job = {"seconds": 60, "waiting": pages, "pages": pages, "urls": urls, "settings": settings}
                found = result(start(job), 60)
                server.close()
                costs[each].append(found["cpu"] / found["pages"] * 1000)
        scrapy, ours = (statistics.median(costs[each]) for each in both)
        print(f"| {name} | {scrapy:.2f} ms | {ours:.2f} ms | {ours / scrapy:.2f} |", flush=True)


def many() -> None:
    """A long crawl of many hosts."""
    hosts, pages = 200, 20_000
    both = {
        "Scrapy": {},
        "ours": {
            **OURS,
            "DOWNLOAD_DELAY": 0,
            "DOWNLOAD_DELAY_PER_SLOT": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        },
    }
    server = Nginx(len(both), "", 0)
    job = {"seconds": 3600, "waiting": pages // hosts, "pages": pages}
    names = [f"127.0.1.{index}" for index in range(1, hosts + 1)]
    started = [
        start({**job, "urls": _urls(names, port), "settings": settings})
        for settings, port in zip(both.values(), server.ports, strict=True)
    ]
    scrapy, ours = (result(process, 3600)["cpu"] for process in started)
    server.close()
    print(f"\nCPU time of {pages:,} pages of {hosts} hosts, both at once\n")
    print("| Scrapy | autothrottle.scrapy | ratio |\n|---|---|---|")
    print(f"| {scrapy:.1f} s | {ours:.1f} s | {ours / scrapy:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("limit", "line", "cpu", "many"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--crawl", help=argparse.SUPPRESS)
    parser.add_argument("--upstream", type=float, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.crawl:
        return crawl(json.loads(told.crawl))
    if told.upstream is not None:
        return upstream(told.upstream)
    if shutil.which("nginx") is None:
        sys.exit("nginx is not installed (Debian's nginx-light will do)")
    os.chdir(ROOT)
    if told.only in (None, "limit"):
        limit(told.seconds)
    if told.only in (None, "line"):
        line()
    if told.only in (None, "cpu"):
        cpu()
    if told.only in (None, "many"):
        many()
    return None


if __name__ == "__main__":
    # Python puts this file's folder first, and it is called as Scrapy is.
    sys.path[:] = [
        each for each in sys.path if Path(each or ".").resolve() != Path(__file__).resolve().parent
    ]
    main()

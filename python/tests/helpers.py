"""Helpers of the tests of throttles."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from autothrottle import ThreadThrottle, Throttle
from autothrottle._native import SECTIONS
from autothrottle.testing import FakeClock

URL = "https://example.com/"
ROWS = {camel: (name, kind) for keys in SECTIONS.values() for name, (camel, kind) in keys.items()}
VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors"


def vectors(name: str) -> list[dict[str, Any]]:
    """Cases that all hosts play: one a line of ``tests/vectors/NAME.jsonl``."""
    lines = (VECTORS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def python_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a case, in seconds and with Python's names."""
    made: dict[str, Any] = {}
    for camel, each in options.items():
        name, kind = ROWS.get(camel, (camel, "plain"))
        value: Any = python_options(each) if isinstance(each, dict) else each
        made[name] = value / 1000 if kind == "time" and value is not False else value
    return made


@dataclass
class Response:
    """A response as any client has it."""

    status_code: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def plain(clock: FakeClock, **options: Any) -> Throttle:
    """A second between two sends, without jitter."""
    return Throttle(**{"clock": clock, "delay": 1, "jitter": False, **options})


async def sends(
    throttle: Throttle, clock: FakeClock, count: int, seconds: float, **options: Any
) -> list[float]:
    """When ``count`` requests that end at once leave."""
    at: list[float] = []

    async def one() -> None:
        async with throttle.acquire(**{"target": URL, **options}) as permit:
            at.append(permit.sent_at)
            permit.settle(Response())

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    await clock.advance(seconds)
    await asyncio.gather(*tasks)
    return at


async def driven(clock: FakeClock, work: Any, seconds: float = 600) -> Any:
    """The result within that many seconds of fake time."""
    task = asyncio.ensure_future(work)
    await clock.advance(seconds)
    assert task.done(), "it hangs"
    return await task


def warned(throttle: Throttle | ThreadThrottle) -> list[tuple[str, str]]:
    """The warnings that it tells from now on: code and message."""
    told: list[tuple[str, str]] = []
    throttle.on("warning", lambda event: told.append((event.code, event.message)))
    return told


# A server on this machine that answers as a test says, for clients that only know real sockets.

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Fake:
    """The answer of a server, and the requests to it."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)


@contextmanager
def server() -> Iterator[Fake]:
    """Answers 200 unless a test says otherwise. A status of 0 closes the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            told.asked.append((self.command, self.path, self.rfile.read(length)))
            status, headers, body = told.answers.pop(0) if told.answers else (200, {}, b"ok")
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stays silent."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    told = Fake(f"http://127.0.0.1:{listening.server_port}/")
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()

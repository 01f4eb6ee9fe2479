"""A redis-server of the test's own, a cluster, a Sentinel, and a site that counts what it has at a time."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BINARY = next((name for name in ("redis-server", "valkey-server") if shutil.which(name)), None)


def free_port() -> int:
    """A free port that no connection goes out from."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """Keeps no data."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self.port = free_port()
        self._folder = tempfile.mkdtemp(prefix="autothrottle-redis-")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert BINARY is not None
        quiet = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", self._folder]
        self._process = subprocess.Popen(
            [BINARY, "--port", str(self.port), *quiet, *self._options], stdout=subprocess.DEVNULL
        )
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise RuntimeError(f"{BINARY} does not listen")

    def kill(self) -> None:
        """All that it knew is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It answers no client, and its connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class Cluster:
    """Three nodes."""

    def __init__(self) -> None:
        on = ("--cluster-enabled", "yes", "--cluster-port")
        self._nodes = [RedisServer(*on, str(free_port())) for _ in range(3)]
        self.port = self._nodes[0].port
        create = ["--cluster", "create", *(f"127.0.0.1:{node.port}" for node in self._nodes)]
        ask(self.port, *create, "--cluster-replicas", "0", "--cluster-yes")

    def stop(self) -> None:
        for node in self._nodes:
            node.stop()


class Sentinel:
    """It promotes the replica of a primary that is gone for a second."""

    def __init__(self) -> None:
        assert BINARY is not None
        self.primary = RedisServer()
        self.replica = RedisServer("--replicaof", "127.0.0.1", str(self.primary.port))
        self.port = free_port()
        self._folder = tempfile.mkdtemp(prefix="autothrottle-sentinel-")
        file = Path(self._folder, "sentinel.conf")
        lines = [
            f"port {self.port}",
            f"dir {self._folder}",
            f"sentinel monitor mine 127.0.0.1 {self.primary.port} 1",
            "sentinel down-after-milliseconds mine 1000",
            "sentinel failover-timeout mine 5000",
        ]
        file.write_text("".join(f"{line}\n" for line in lines))
        self._process = subprocess.Popen([BINARY, str(file), "--sentinel"], stdout=subprocess.DEVNULL)

    def knows_replica(self) -> bool:
        return str(self.replica.port) in ask(self.port, "SENTINEL", "replicas", "mine", check=False)

    def has_promoted(self) -> bool:
        return str(self.replica.port) in ask(self.port, "SENTINEL", "get-master-addr-by-name", "mine")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self.primary.stop()
        self.replica.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def ask(port: int, *words: str, check: bool = True) -> str:
    """A server's answer to redis-cli."""
    command = ["redis-cli", *([] if words[0] == "--cluster" else ["-p", str(port)]), *words]
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


class Site:
    """How many requests it has at a time, and how often whose."""

    def __init__(self, latency: float) -> None:
        self.now = self.most = 0
        self.by: Counter[str] = Counter()
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with site._lock:
                    site.now += 1
                    site.most = max(site.most, site.now)
                    site.by[parse_qs(urlsplit(self.path).query)["who"][0]] += 1
                time.sleep(latency)
                with site._lock:
                    site.now -= 1
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

"""Limits shared through a real Redis: real time, since a server, its lease and a killed process cannot be
played. The assertions are about counts at the server, not times.

Needs redis-py and a ``redis-server`` (or ``valkey-server``), and for processes in Node npm's packages of the
root and ``dist``; without them it is skipped by name, under ``npm run test:all`` it fails. Processes in Rust
join if their program is there:
``cargo build --example group --all-features --manifest-path tower/Cargo.toml``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis
import redis.asyncio
from redis.sentinel import Sentinel as RedisSentinel

from autothrottle import (
    ClosedError,
    ConfigError,
    CostExceedsQuotaError,
    QueueFullError,
    SharedError,
    SharedEvent,
    ThreadThrottle,
    Throttle,
)
from autothrottle._shared.redis_io import Once, ThreadRedisIo
from autothrottle.redis import shared

from .servers import BINARY, Cluster, RedisServer, Sentinel, Site, ask

ROOT = Path(__file__).resolve().parents[3]
IS_ALL = os.environ.get("TEST_ALL") == "true"
HAS_NODE = bool(shutil.which("node")) and (ROOT / "node_modules/ioredis").exists()
# Of tower's crate; compiled here if it was before, or if everything is tested.
RUST = ROOT / "target/debug/examples/group"
# How many requests of each kind of process wait at a time: those of Rust ask for one page after the other.
CALLERS = {"tasks": 4, "threads": 4, "node": 4, **({"rust": 1} if RUST.exists() or IS_ALL else {})}

pytestmark = pytest.mark.skipif(BINARY is None and not IS_ALL, reason="no redis-server")
FREE: Any = {"delay": 0, "slot_delay": 0, "jitter": False}


@pytest.fixture(scope="module")
def store() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    nodes = Cluster()
    yield nodes
    nodes.stop()


def until(what: str, is_so: Callable[[], object]) -> None:
    """Waits until it is so; fails after half a minute."""
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail(f"{what}: not within 30 s")


@pytest.fixture(scope="module")
def rust() -> None:
    """The program in Rust is that of these sources."""
    if "rust" in CALLERS:
        build = ["cargo", "build", "--locked", "--quiet", "--example", "group", "--all-features"]
        subprocess.run([*build, "--manifest-path", str(ROOT / "tower/Cargo.toml")], check=True)


def member(kind: str, store: RedisServer | Cluster, name: str, url: str) -> subprocess.Popen[bytes]:
    """A process that asks for pages. The options are the same in all languages' words."""
    is_cluster = isinstance(store, Cluster)
    settings = {"port": store.port, "cluster": is_cluster, "name": name, "url": f"{url}?who={kind}"}
    settings["atOnce"] = CALLERS[kind]
    options: Any = {"defaults": {"delay": 0, "slotDelay": 0, "jitter": False, "concurrency": 3}}
    if kind == "rust":
        words = [str(RUST), f"redis://127.0.0.1:{store.port}", name, json.dumps(options)]
        return subprocess.Popen([*words, *[f"{url}?who=rust"] * 5000], stdout=subprocess.PIPE)
    if kind == "node":
        # It says who it is by itself, behind another question mark.
        settings |= {"client": "ioredis", "url": f"{url}?who=node&from="}
        program = ["node", str(ROOT / "tests/shared/member.mjs")]
    else:
        settings["kind"] = kind
        options = {"defaults": {**FREE, "concurrency": 3}}
        program = [sys.executable, "-W", "error", str(Path(__file__).with_name("member.py"))]
    words = [*program, json.dumps({**settings, "options": options})]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)


@pytest.mark.usefixtures("rust")
@pytest.mark.parametrize(("first", "where"), [*((kind, "store") for kind in CALLERS), ("node", "cluster")])
def test_three_slots_for_processes_of_all_languages_and_the_writer_is_killed(
    first: str, where: str, request: pytest.FixtureRequest
) -> None:
    if not HAS_NODE and not IS_ALL:
        pytest.skip("no clients in node_modules, or no node")
    site = Site(0.05)
    name = f"slots {first}"
    store = request.getfixturevalue(where)
    ask_store = partial(ask, store.port, "-c")
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        # The program in Rust knows no cluster.
        kinds = [kind for kind in CALLERS if where == "store" or kind != "rust"]
        for kind in (first, *(each for each in kinds if each != first)):
            processes[kind] = member(kind, store, name, site.url)
            until(f"{kind} is served", lambda kind=kind: site.by[kind] > 5)  # type: ignore[misc]
        lease = ask_store("GET", f"autothrottle:{{{name}}}:lease")
        processes[first].kill()
        processes[first].wait()
        site.by.clear()
        others = [kind for kind in kinds if kind != first]
        until("the others go on", lambda: all(site.by[kind] > 10 * CALLERS[kind] for kind in others))
        # Each caller has its turn: the oldest request is the first.
        turns = [site.by[kind] / CALLERS[kind] for kind in others]
        assert min(turns) > max(turns) / 2, turns
        assert site.most == 3
        assert ask_store("GET", f"autothrottle:{{{name}}}:lease") != lease
        assert all(processes[kind].poll() is None for kind in others)
        for kind, process in processes.items():
            process.kill()
            said = process.communicate()[0].split()
            # All languages say the same of the same options. That a way was made anew may be told: a process
            # that did not run for a while cannot know better.
            assert kind == "rust" or set(said) <= {b"group-silent"}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
        site.stop()


def one_quota(make_one: Callable[[], Any], make_two: Callable[[], Any]) -> None:
    """Tasks and threads want 24 of a quota of 10, by a client of asyncio and one that blocks."""
    options: Any = {"defaults": {**FREE, "concurrency": 30, "quota": {"limit": 10, "window": 600}}}
    sent: list[str] = []

    async def play() -> None:
        one, two = make_one(), make_two()
        async with (
            Throttle(**options, shared=shared(one, name="quota")) as tasks,
            Throttle(**options, shared=shared(two, name="quota")) as mixed,
        ):
            threads = ThreadThrottle(**options, shared=shared(two, name="quota"))

            async def ask(throttle: Throttle, who: str) -> None:
                with contextlib.suppress(ClosedError):
                    async with throttle.acquire("https://a.example/"):
                        sent.append(who)

            def block() -> None:
                with contextlib.suppress(ClosedError), threads.acquire("https://a.example/"):
                    sent.append("threads")

            asking = [asyncio.ensure_future(ask(tasks, "tasks")) for _ in range(10)]
            asking += [asyncio.ensure_future(ask(mixed, "mixed")) for _ in range(10)]
            asking += [asyncio.ensure_future(asyncio.to_thread(block)) for _ in range(4)]
            for _ in range(600):
                if len(sent) >= 10:
                    break
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            ages = [each.stats().age for each in (tasks, mixed, threads)]
            assert ages.count(0) == 1
            tasks.close()
            mixed.close()
            await asyncio.to_thread(threads.__exit__)
            await asyncio.gather(*asking)
        await one.aclose()
        two.close()

    before = threading.active_count()
    asyncio.run(play())
    assert len(sent) == 10
    until("its threads end", lambda: threading.active_count() <= before)


def test_one_quota_for_tasks_and_threads(store: RedisServer) -> None:
    one_quota(
        lambda: redis.asyncio.Redis(port=store.port, decode_responses=True),
        lambda: redis.Redis(port=store.port),
    )


@pytest.mark.parametrize("decode", [False, True])
def test_one_quota_through_a_cluster(cluster: Cluster, decode: bool) -> None:
    where: Any = {"host": "127.0.0.1", "port": cluster.port, "decode_responses": decode}
    ask_cluster = partial(ask, cluster.port, "-c")
    ask_cluster("DEL", "autothrottle:{quota}:snapshot")
    one_quota(lambda: redis.asyncio.RedisCluster(**where), lambda: redis.RedisCluster(**where))
    # They hear what goes to all nodes, and say so to those that would hear less.
    assert ask_cluster("EXISTS", "autothrottle:{quota}:plain") == "1\n"


def test_a_primary_that_is_killed_is_followed_by_its_replica() -> None:
    sentinel = Sentinel()
    by: Any = cast("Any", RedisSentinel)([("127.0.0.1", sentinel.port)], socket_timeout=1)
    ways = [by.master_for("mine", decode_responses=decode) for decode in (False, True)]
    sent: Counter[int] = Counter()
    inside: list[int] = []
    most = 0
    is_over = threading.Event()

    def work(which: int, throttle: ThreadThrottle) -> None:
        nonlocal most
        with contextlib.suppress(ClosedError):
            while not is_over.is_set():
                with throttle.acquire("https://a.example/"):
                    inside.append(which)
                    most = max(most, len(inside))
                    is_over.wait(0.02)
                    inside.remove(which)
                    sent[which] += 1

    try:
        until("it knows the replica", sentinel.knows_replica)
        options: Any = {"defaults": {**FREE, "concurrency": 3}}
        throttles = [ThreadThrottle(**options, shared=shared(way, name="s")) for way in ways]
        threads = [
            threading.Thread(target=work, args=(which, throttle))
            for which, throttle in enumerate(throttles)
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        until("both send", lambda: min(sent[0], sent[1]) > 5)
        sentinel.primary.kill()
        until("it is promoted", sentinel.has_promoted)
        sent.clear()
        until("both go on", lambda: min(sent[0], sent[1]) > 20)
        assert ask(sentinel.replica.port, "GET", "autothrottle:{s}:lease").split(":")[0].isdigit()
        assert most == 3
        is_over.set()
        for throttle in throttles:
            throttle.close()
        for thread in threads:
            thread.join()
    finally:
        is_over.set()
        sentinel.stop()


def test_a_setting_before_the_loop_runs_counts(store: RedisServer) -> None:
    client = redis.asyncio.Redis(port=store.port)
    throttle = Throttle(max_in_flight=9, shared=shared(client, name="early"))
    throttle.scope("a.example").configure(concurrency=7)
    throttle.scope("b.example").pause()

    async def play() -> None:
        async with throttle, throttle.acquire("https://a.example/"):
            stats = throttle.stats().scopes
            assert stats["a.example"].slots == 7
            assert stats["b.example"].paused
        await client.aclose()

    asyncio.run(play())


def test_a_change_of_the_group_is_an_event(store: RedisServer) -> None:
    client = redis.asyncio.Redis(port=store.port)
    heard: list[SharedEvent] = []

    async def play() -> None:
        throttle = Throttle(shared=shared(client, name="moves"))
        throttle.on("shared", heard.append)
        async with throttle, throttle.acquire("https://a.example/"):
            pass
        await client.aclose()

    asyncio.run(play())
    assert heard
    assert {event.kind for event in heard} == {"shared"}
    assert any(event.shared.is_writer for event in heard)


def test_refusals_come_back_with_their_type(store: RedisServer) -> None:
    client = redis.Redis(port=store.port)
    options: Any = {"max_waiting": 1, "defaults": {**FREE, "quota": {"limit": 2, "window": 600}}}
    with ThreadThrottle(**options, shared=shared(client, name="refusals")) as throttle:
        with pytest.raises(CostExceedsQuotaError, match=r"defaults\.quota"):
            throttle.acquire("https://a.example/", cost=3)
        with throttle.acquire("https://a.example/", cost=2):
            pass
        ended: list[type[BaseException]] = []

        def wait() -> None:
            try:
                throttle.acquire("https://a.example/")
            except ClosedError as error:
                ended.append(type(error))

        waiting = threading.Thread(target=wait)
        waiting.start()
        until("one waits", lambda: throttle.stats().waiting == 1)
        with pytest.raises(QueueFullError, match="max_waiting"):
            throttle.acquire("https://a.example/")
        throttle.close()
        waiting.join()
        assert ended == [ClosedError]
    client.close()


def test_a_client_that_wants_tls_at_a_port_without(store: RedisServer) -> None:
    client = redis.Redis(port=store.port, ssl=True)
    warned: list[str] = []
    throttle = ThreadThrottle(shared=shared(client, name="tls"))
    throttle.on("warning", lambda event: warned.append(f"{event.code}: {event.message}"))

    def ask_once() -> None:
        with pytest.raises(ClosedError):
            throttle.acquire("https://a.example/")

    asking = threading.Thread(target=ask_once)
    asking.start()
    until("it says so", lambda: warned != [])
    assert re.match(r"group-offline: .*by TLS: does its port speak TLS\?", warned[0])
    throttle.close()
    asking.join()


def of_redis(client: redis.Redis) -> set[threading.Thread]:
    """The threads that speak to a store by this client."""
    owner_of = operator.attrgetter("_target.__self__._client")
    found = set()
    for thread in threading.enumerate():
        with contextlib.suppress(AttributeError):
            if owner_of(thread) is client:
                found.add(thread)
    return found


def test_a_closed_throttle_leaves_when_its_last_request_is_over(store: RedisServer) -> None:
    lease = partial(ask, store.port, "GET", "autothrottle:{closes}:lease")
    throttle = ThreadThrottle(shared=shared(redis.Redis(port=store.port), name="closes"))
    with throttle.acquire("https://a.example/"):
        throttle.close()
        time.sleep(2)  # longer than a lease
        assert lease() != "\n"
    until("it gives the lease back", lambda: lease() == "\n")


@pytest.mark.parametrize("decode", [False, True])
def test_commands_go_on_by_another_connection(store: RedisServer, cluster: Cluster, decode: bool) -> None:
    answers: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    one: Any = redis.Redis(port=store.port, decode_responses=decode)
    many: Any = redis.RedisCluster(host="127.0.0.1", port=cluster.port, decode_responses=decode)
    for client in (one, many):
        io = ThreadRedisIo(client, cast("Any", SimpleNamespace(post=lambda call: call())))
        io.open()
        io.reconnect()
        io.send(["ECHO", "here"], Once(lambda *answer: answers.put(answer)))
        assert answers.get(timeout=30) == ("here" if decode else b"here", None)
        io.close().join(10)
        client.close()


@pytest.mark.parametrize("ssl", [False, True])
def test_a_port_that_never_answers_keeps_few_threads(ssl: bool) -> None:
    """Each attempt to connect had a thread, for a minute or for ever: redis-py may wait without a limit."""
    started: set[threading.Thread] = set()

    def has_tried() -> bool:
        started.update(of_redis(client))
        return len(started) > 15

    def ask_once(throttle: ThreadThrottle) -> None:
        with pytest.raises(ClosedError):
            throttle.acquire("https://a.example/")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        where: Any = {"port": silent.getsockname()[1], "socket_timeout": None, "retry": None}
        client = redis.Redis(**where, ssl=ssl)
        with ThreadThrottle(shared=shared(client, name="silent")) as throttle:
            threading.Thread(target=ask_once, args=(throttle,)).start()
            until("it has tried again and again", has_tried)
            assert len(of_redis(client)) < 8
    until("all but the one of the program's client end", lambda: len(of_redis(client)) < 2)


def ask_on(throttle: ThreadThrottle) -> None:
    for _ in range(1000):
        with throttle.acquire("https://a.example/") as permit:
            time.sleep(0.02)
            permit.settle(status=200)


@pytest.mark.parametrize("kind", ["killed", "stopped"])
def test_a_store_that_is_gone_and_comes_back(kind: str) -> None:
    server = RedisServer()
    client = redis.Redis(port=server.port)
    codes: list[str] = []
    try:
        way = shared(client, name="gone", offline="fail")
        options: Any = {"defaults": {**FREE, "concurrency": 1}}
        with ThreadThrottle(**options, shared=way) as throttle:
            throttle.on("warning", lambda warning: codes.append(warning.code))
            with throttle.acquire("https://a.example/"):
                pass
            if kind == "killed":
                server.kill()
            else:
                server.pause()
            with pytest.raises(SharedError):
                ask_on(throttle)
            assert codes == ["group-offline"]
            if kind == "killed":
                server.start()
            else:
                server.resume()
            until("it is there again", lambda: "group-online" in codes)
            with throttle.acquire("https://a.example/"):
                pass
    finally:
        client.close()
        server.stop()


def test_a_wrong_option_is_said_at_once() -> None:
    client = redis.Redis()
    with pytest.raises(ConfigError) as caught:
        shared(object(), name="", offline="never")  # type: ignore[arg-type]
    assert [problem.path for problem in caught.value.problems] == [
        "shared.client",
        "shared.name",
        "shared.offline",
    ]
    with pytest.raises(ConfigError, match=r"shared\.client: want a client that blocks"):
        ThreadThrottle(shared=shared(redis.asyncio.Redis(), name="a"))
    with pytest.raises(ConfigError, match=r"shared: want what autothrottle\.redis\.shared gives; got \"a\""):
        Throttle(shared="a")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no manager beside it"):
        Throttle(shared=shared(client, name="a"), manager=lambda _: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="delay"):
        Throttle(shared=shared(client, name="a"), delay=-1)
    client.close()


def test_the_example_runs(store: RedisServer) -> None:
    site = Site(0.0)
    program = ROOT / "python/examples/many_processes.py"
    words = [sys.executable, "-W", "error", str(program), f"redis://127.0.0.1:{store.port}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
    try:
        both = [
            subprocess.Popen(
                [*words, *[f"{site.url}?who={number}"] * 3], env=environment, stdout=subprocess.PIPE
            )
            for number in range(2)
        ]
        assert [process.communicate(timeout=60)[0] for process in both] == [b"[200, 200, 200]\n"] * 2
    finally:
        site.stop()
    assert site.by == {"0": 3, "1": 3}


def said_by(program: str) -> tuple[int, bytes, bytes]:
    """How a program ends that leaves its connections open, and its words."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_that_forgets_to_leave_ends_all_the_same(store: RedisServer) -> None:
    program = f"""
import asyncio, redis, redis.asyncio
from autothrottle import ThreadThrottle, Throttle
from autothrottle.redis import shared
async def main():
    throttle = Throttle(shared=shared(redis.asyncio.Redis(port={store.port}), name="forgets"))
    async with throttle.acquire("https://a.example/"):
        print("tasks")
asyncio.run(main())
throttle = ThreadThrottle(shared=shared(redis.Redis(port={store.port}), name="forgets too"))
with throttle.acquire("https://a.example/"):
    print("threads")
"""
    assert said_by(program) == (0, b"tasks\nthreads\n", b"")


def test_a_throttle_may_be_closed_after_its_loop(store: RedisServer) -> None:
    program = f"""
import asyncio, redis.asyncio
from autothrottle import Throttle
from autothrottle.redis import shared
throttle = Throttle(shared=shared(redis.asyncio.Redis(port={store.port}), name="after"))
async def main():
    return await throttle.acquire("https://a.example/")
permit = asyncio.run(main())
throttle.close()
permit.settle(status=200)
print("closed")
"""
    assert said_by(program) == (0, b"closed\n", b"")


# The code in docs/shared.md, as it stands there, with a Redis of the test's own.

PAGE = (ROOT / "docs" / "shared.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_run() -> None:
    assert BLOCKS
    store = RedisServer()
    try:
        for block in BLOCKS:
            assert "redis.Redis()" in block
            program = block.replace("redis.Redis()", f"redis.Redis(port={store.port})")
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
            command = [sys.executable, "-W", "error", "-c", program]
            subprocess.run(command, env=environment, check=True, timeout=60)
    finally:
        store.stop()

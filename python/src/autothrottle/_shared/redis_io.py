"""Commands and messages of Redis, carried by a client of redis-py: a blocking one, or one of asyncio.

Whatever was asked for while the client was busy goes out together, in one pipeline: a command costs no way of
its own. Each channel has a connection, which is made anew when it breaks.

Its threads post answers and messages to where the group lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .._clock import Timer
from .transport import Done, EventLoop, Leaving

LEASE_MS = 1500.0
"""A lease. A connection that is made here is given up after it, if it has no answer."""

_AGAIN_S = 0.2
"""The seconds before a broken connection is made anew."""

_GLANCE_S = 0.5
"""How often a thread that listens looks whether it is to end, in seconds."""

_MOST_AT_ONCE = 500
"""Commands of one pipeline."""

_logger = logging.getLogger("autothrottle")


class Once:
    """A continuation that is called once."""

    __slots__ = ("_done", "timer")

    def __init__(self, done: Done) -> None:
        self._done: Done | None = done
        self.timer: Timer | None = None

    @property
    def is_over(self) -> bool:
        """Whether no call waits for it any more."""
        return self._done is None

    def __call__(self, result: Any, error: BaseException | None) -> None:
        done, self._done = self._done, None
        if self.timer is not None:
            self.timer.cancel()
        if done is not None:
            done(result, error)


class Subscription(Protocol):
    """A connection that listens to channels, also after it was broken."""

    def close(self) -> None:
        """Stops listening."""


class RedisIo(Protocol):
    """Carries commands."""

    def open(self) -> None:
        """The first request is about to come."""

    def send(self, command: Sequence[str | bytes], answer: Once) -> None:
        """A command, after those before it."""

    def listen(self, channels: Sequence[str], received: Callable[[bytes], None], ready: Once) -> Subscription:
        """Listens to channels; ``ready`` when it does."""

    def reconnect(self) -> None:
        """Sends by another connection: the one before gives no answer. Its requests are lost."""

    def close(self) -> Leaving:
        """Takes in no more messages; what was taken in is still sent."""


_Job = tuple[Sequence[str | bytes], Once]


def is_cluster(client: Any) -> bool:
    """Whether a client of redis-py is one of a cluster."""
    return callable(getattr(client, "get_node_from_key", None))


def is_secure(client: Any) -> bool:
    """Whether the connections of a client of redis-py are to use TLS."""
    cluster = getattr(client, "nodes_manager", None)
    if cluster is not None:
        return bool(cluster.connection_kwargs.get("ssl"))
    pool = getattr(client, "connection_pool", None)
    return "SSL" in getattr(getattr(pool, "connection_class", None), "__name__", "")


def _listening(client: Any, channel: str, **limits: Any) -> Any:
    """A client for one connection that listens, with limits of its own. It gives bytes: frames are no text,
    whatever the program's client decodes. Of a cluster it is at the node that has the group's keys, which are
    in the channel's slot.
    """
    is_async = inspect.iscoroutinefunction(client.execute_command)
    if is_cluster(client):
        node = client.get_node_from_key(channel)
        pool = node if is_async else client.get_redis_connection(node).connection_pool
    else:
        pool = client.connection_pool
        if not limits and not pool.connection_kwargs.get("decode_responses"):
            return client
    return _like(pool, is_async=is_async, **limits, decode_responses=False)


def _commanding(client: Any) -> Any:
    """A client that blocks, in place of the program's, whose connection gives no answer. (One of a cluster
    asks the nodes at once.)
    """
    import redis

    if not is_cluster(client):
        return _like(client.connection_pool, is_async=False, **_ends_in_time())
    node_of: Any = redis.cluster.ClusterNode
    nodes = [node_of(node.host, node.port) for node in client.get_nodes()]
    kwargs = {**client.nodes_manager.connection_kwargs, **_ends_in_time()}
    return redis.RedisCluster(startup_nodes=nodes, **kwargs)


def _like(pool: Any, *, is_async: bool, **changes: Any) -> Any:
    """A client whose connections are as those of a pool, but for some arguments. Those of a pool of
    Sentinel's ask where the master is.
    """
    import redis

    made = redis.asyncio if is_async else redis
    kwargs = {**pool.connection_kwargs, **changes}
    return made.Redis.from_pool(made.ConnectionPool(pool.connection_class, **kwargs))


def _ends_in_time() -> dict[str, Any]:
    """With these a connection that is never answered ends, and its thread with it: no call ends a thread.
    redis-py tries again for a minute or for ever otherwise.
    """
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    seconds = LEASE_MS / 1000
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds, "retry": Retry(NoBackoff(), 0)}


def _deliver(jobs: Sequence[_Job], results: Sequence[Any]) -> None:
    for (_, answer), result in zip(jobs, results, strict=True):
        if isinstance(result, BaseException):
            _safely(answer, None, result)
        else:
            _safely(answer, result, None)


def _safely(call: Callable[..., object], *arguments: Any) -> None:
    """Logs a message that cannot be read: the task goes on."""
    try:
        call(*arguments)
    except Exception:
        _logger.exception("a call of a shared throttle failed")


class ThreadRedisIo:
    """A :class:`RedisIo` with a client that blocks: one thread sends, and one for each connection listens."""

    def __init__(self, client: Any, event_loop: EventLoop, *, owns_client: bool = False) -> None:
        self._client = client
        self._event_loop = event_loop
        self._owns_client = owns_client
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._sender = self._made(lambda: client)

    def open(self) -> None:
        self._sender.start()

    def reconnect(self) -> None:
        # The thread that waits for an answer of the program's client keeps its connection until the system
        # gives it up. Those after it have connections that end.
        self._jobs.put(None)
        self._jobs = queue.SimpleQueue()
        self._sender = self._made(lambda: _commanding(self._client))
        self._sender.start()

    def _made(self, connect: Callable[[], Any]) -> threading.Thread:
        arguments = (self._jobs, connect)
        return threading.Thread(target=self._send_all, args=arguments, name="autothrottle-redis", daemon=True)

    def send(self, command: Sequence[str | bytes], answer: Once) -> None:
        self._jobs.put((command, answer))

    def listen(self, channels: Sequence[str], received: Callable[[bytes], None], ready: Once) -> Subscription:
        return _ThreadSubscription(self._client, self._event_loop, channels, received, ready)

    def close(self) -> Leaving:
        self._jobs.put(None)
        return _ThreadLeaving(self._sender)

    def _send_all(self, waiting: queue.SimpleQueue[_Job | None], connect: Callable[[], Any]) -> None:
        is_open = True
        client = None
        while is_open:
            batch = [waiting.get()]
            while len(batch) < _MOST_AT_ONCE and not waiting.empty():
                batch.append(waiting.get())
            is_open = None not in batch
            # The caller asks anew where an answer came too late.
            jobs = [job for job in batch if job is not None and not job[1].is_over]
            if jobs:
                try:
                    client = client or connect()
                    results = _carried(client, jobs)
                except Exception as error:
                    results = [error] * len(jobs)
                self._event_loop.post(_delivery(jobs, results))
        if client is not None and client is not self._client:
            _close(client)
        if self._owns_client and waiting is self._jobs:
            _close(self._client)


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close()


def _carried(client: Any, jobs: Sequence[_Job]) -> Sequence[Any]:
    with client.pipeline(transaction=False) as pipeline:
        for command, _ in jobs:
            pipeline.execute_command(*command)
        results: Sequence[Any] = pipeline.execute(raise_on_error=False)
        return results


class _ThreadSubscription:
    def __init__(
        self,
        client: Any,
        event_loop: EventLoop,
        channels: Sequence[str],
        received: Callable[[bytes], None],
        ready: Once,
    ) -> None:
        self._client = client
        self._event_loop = event_loop
        self._channels = channels
        self._received = received
        self._ready = ready
        self._is_closed = False
        threading.Thread(target=self._listen, name="autothrottle-subscription", daemon=True).start()

    def close(self) -> None:
        self._is_closed = True

    def _listen(self) -> None:
        while not self._is_closed:
            try:
                with _listening(self._client, self._channels[0], **_ends_in_time()).pubsub() as pubsub:
                    pubsub.subscribe(*self._channels)
                    self._listen_until_closed(pubsub)
            except Exception as error:
                self._post(self._ready, None, error)
                time.sleep(_AGAIN_S)

    def _listen_until_closed(self, pubsub: Any) -> None:
        missing = len(self._channels)
        while not self._is_closed:
            message = pubsub.get_message(timeout=_GLANCE_S)
            if message is None:
                continue
            if message["type"] == "subscribe":
                missing -= 1
                if missing == 0:
                    self._post(self._ready, None, None)
            elif message["type"] == "message":
                self._post(self._deliver, message["data"])

    def _deliver(self, frame: bytes) -> None:
        if not self._is_closed:
            self._received(frame)

    def _post(self, call: Callable[..., object], *arguments: Any) -> None:
        if not self._is_closed:
            self._event_loop.post(lambda: call(*arguments))


class _ThreadLeaving:
    def __init__(self, sender: threading.Thread) -> None:
        self._sender = sender

    def join(self, seconds: float) -> None:
        if self._sender.is_alive():
            self._sender.join(seconds)

    async def wait(self) -> None:
        await asyncio.to_thread(self.join, 5.0)


class LoopRedisIo:
    """A :class:`RedisIo` with a client of asyncio: one task sends, and one for each connection listens."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._sender = asyncio.get_running_loop().create_task(self._send_all(), name="autothrottle-redis")

    def send(self, command: Sequence[str | bytes], answer: Once) -> None:
        self._jobs.put_nowait((command, answer))

    def listen(self, channels: Sequence[str], received: Callable[[bytes], None], ready: Once) -> Subscription:
        return _LoopSubscription(self._client, channels, received, ready)

    def reconnect(self) -> None:
        # redis-py closes the connection of a task that is cancelled, so the next one finds another.
        if self._sender is not None:
            self._sender.cancel()
            self.open()

    def close(self) -> Leaving:
        self._jobs.put_nowait(None)
        return _LoopLeaving(self._sender)

    async def _send_all(self) -> None:
        is_open = True
        while is_open:
            batch = [await self._jobs.get()]
            while len(batch) < _MOST_AT_ONCE and not self._jobs.empty():
                batch.append(self._jobs.get_nowait())
            is_open = None not in batch
            jobs = [job for job in batch if job is not None and not job[1].is_over]
            if jobs:
                results = await self._carry(jobs)
                if _is_cancelled():
                    return
                _deliver(jobs, results)

    async def _carry(self, jobs: Sequence[_Job]) -> Sequence[Any]:
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for command, _ in jobs:
                    pipeline.execute_command(*command)
                results: Sequence[Any] = await pipeline.execute(raise_on_error=False)
                return results
        except Exception as error:
            return [error] * len(jobs)


class _LoopSubscription:
    def __init__(
        self, client: Any, channels: Sequence[str], received: Callable[[bytes], None], ready: Once
    ) -> None:
        self._client = client
        self._channels = channels
        self._received = received
        self._ready = ready
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="autothrottle-subscription")

    def close(self) -> None:
        self._task.cancel()

    async def _listen(self) -> None:
        while True:
            try:
                if is_cluster(self._client):
                    await self._client.initialize()
                async with _listening(self._client, self._channels[0]).pubsub() as pubsub:
                    await pubsub.subscribe(*self._channels)
                    await self._listen_for_ever(pubsub)
            except Exception as error:
                if _is_cancelled():
                    return
                _safely(self._ready, None, error)
                await asyncio.sleep(_AGAIN_S)

    async def _listen_for_ever(self, pubsub: Any) -> None:
        missing = len(self._channels)
        while True:
            message = await pubsub.get_message(timeout=None)
            if message is None:
                continue
            if message["type"] == "subscribe":
                missing -= 1
                if missing == 0:
                    _safely(self._ready, None, None)
            elif message["type"] == "message":
                _safely(self._received, message["data"])


def _is_cancelled() -> bool:
    """Whether this task was cancelled while a client waited, which may make an error of that. (Python 3.10
    does not tell.)
    """
    task: Any = asyncio.current_task()
    return bool(getattr(task, "cancelling", int)())


class _LoopLeaving:
    def __init__(self, sender: asyncio.Task[None] | None) -> None:
        self._sender = sender

    def join(self, seconds: float) -> None:
        """A loop cannot be waited for from within: it says the rest by itself."""

    async def wait(self) -> None:
        if self._sender is not None:
            await asyncio.wait({self._sender}, timeout=5.0)


def _delivery(jobs: Sequence[_Job], results: Sequence[Any]) -> Callable[[], None]:
    return lambda: _deliver(jobs, results)

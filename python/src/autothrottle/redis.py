"""One limit for many processes of many machines, through Redis or Valkey:

.. code-block:: python

    import redis
    from autothrottle import ThreadThrottle
    from autothrottle.redis import shared

    throttle = ThreadThrottle(rampup=True, shared=shared(redis.Redis(), name="crawl"))

One process decides, the others ask it; the store elects it, fences it and carries the messages. Processes in
Node are of the same group if they say the same name and the same options (``autothrottle/redis``). The
store is not asked before the first request. ``docs/shared.md`` says what happens when something breaks.

The client is of its throttle's kind: a throttle for threads cannot wait for one of asyncio.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._convert import described
from ._shared.host import SharedHost
from ._shared.redis_io import LoopRedisIo, RedisIo, ThreadRedisIo, is_cluster, is_secure
from ._shared.redis_transport import RedisTransport
from ._shared.transport import EventLoop, Offline
from .errors import ConfigError, Problem, SharedError

if TYPE_CHECKING:
    import redis
    import redis.asyncio

__all__ = ["Offline", "Shared", "SharedError", "shared"]

_CLIENT = "a client of redis-py: redis.Redis, or redis.asyncio.Redis for a throttle of asyncio"


class Shared:
    """The value of ``shared=``: made by :func:`shared`."""

    __slots__ = ("_client", "_is_async", "_members", "_name", "_offline", "_owns_client")

    def __init__(
        self,
        client: Any,
        name: str,
        offline: Offline | None,
        *,
        members: int | None = None,
        owns_client: bool = False,
    ) -> None:
        self._client = client
        self._is_async = inspect.iscoroutinefunction(client.execute_command)
        self._name = name
        self._offline = offline
        self._members = members
        self._owns_client = owns_client

    def open_host(self, options: Mapping[str, Any], event_loop: EventLoop) -> SharedHost:
        """The host in place of an engine. Sends no message yet."""
        if self._is_async and not event_loop.is_loop:
            want = "a client that blocks: redis.Redis"
            raise ConfigError([Problem("shared.client", want, described(self._client))])
        io: RedisIo
        if self._is_async:
            io = LoopRedisIo(self._client)
        else:
            io = ThreadRedisIo(self._client, event_loop, owns_client=self._owns_client)
        transport = RedisTransport(
            io,
            event_loop,
            self._name,
            is_cluster=is_cluster(self._client),
            is_secure=is_secure(self._client),
        )
        random = secrets.SystemRandom().random
        return SharedHost(
            transport, event_loop, options, offline=self._offline, members=self._members, random=random
        )

    def __repr__(self) -> str:
        return f"<shared through Redis: {self._name!r}>"


def shared(
    client: redis.Redis | redis.RedisCluster | redis.asyncio.Redis | redis.asyncio.RedisCluster,
    *,
    name: str,
    offline: Offline | None = None,
    members: int | None = None,
) -> Shared:
    """The group by Redis, for ``Throttle(shared=…)`` and ``ThreadThrottle(shared=…)``.

    * ``client``: of redis-py, with any options, also behind a Sentinel or of a cluster. ``Throttle`` takes
      one of ``redis.asyncio`` or one that blocks, ``ThreadThrottle`` the latter. It stays yours: two
      connections that listen are made from it. Redis 6 or newer, or Valkey.
    * ``name``: of the group; processes with the same name share their limits.
    * ``offline``: what happens when the connection to the others has been broken for five seconds.
      ``"divide"`` goes on alone with one part of every limit, by the number of processes that there were.
      ``"wait"`` waits for the connection. ``"fail"`` rejects what waits with a ``SharedError``. Default:
      ``"divide"`` for requests without a quota, ``"wait"`` for those with one.
    * ``members``: how many processes there are. A process that starts while the connection is broken needs it
      to go on alone; without it the process waits.

    Raises ``ConfigError`` with every problem.
    """
    problems: list[Problem] = []
    methods = ("execute_command", "pipeline", "pubsub")
    if not all(callable(getattr(client, method, None)) for method in methods):
        problems.append(Problem("shared.client", _CLIENT, described(client)))
    if not isinstance(name, str) or not name:
        problems.append(Problem("shared.name", "a name that is not empty", described(name)))
    if offline not in (None, "divide", "wait", "fail"):
        problems.append(Problem("shared.offline", '"divide", "wait" or "fail"', described(offline)))
    if members is not None and (type(members) is not int or members < 1):
        problems.append(Problem("shared.members", "a whole number from 1", described(members)))
    if problems:
        raise ConfigError(problems)
    return Shared(client, name, offline, members=members)

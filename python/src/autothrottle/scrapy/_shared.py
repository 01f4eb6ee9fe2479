"""THROTTLING_SHARED_REDIS: spiders, and processes of other kinds, under one limit.

The way through Redis is a client of redis-py that blocks, in threads of its own: so it serves any reactor,
and Scrapy without one. Whatever comes from a thread is posted to where the spider runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

from .._native import Engine
from ..errors import ConfigError, Problem
from ._notifier import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._clock import Clock, Timer
    from .._shared.transport import Offline
    from ._notifier import Notifier
    from ._options import Options
    from ._permits import PermitQueue

LEAVE_S = 3.0
"""How long the goodbye to the store may take, in seconds."""

_TIMEOUT_S = 1.5
"""An answer of the store that takes longer is none: as long as a lease."""

_HEALTH_S = 5
"""A connection that was silent for so long is checked, in seconds."""


class ReactorScheduler:
    """A ``Scheduler`` of Scrapy's timers, with whatever reactor or loop it runs."""

    is_loop = False
    is_running = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._post: Callable[..., object] | None = None

    def now(self) -> float:
        return self._clock.now() / 1e6

    def wall(self) -> float:
        return self._clock.wall() / 1e6

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        made = _Call(call)
        made.timer = self._clock.call_later(max(ms, 0.0) / 1000, made)
        return made

    def after_turn(self, call: Callable[[], object]) -> None:
        self.call_later(0.0, call)

    def post(self, call: Callable[[], object]) -> None:
        # A loop that is over takes no call.
        with contextlib.suppress(RuntimeError):
            if self._post is not None:
                self._post(call)

    def open(self) -> None:
        try:
            self._post = asyncio.get_running_loop().call_soon_threadsafe
        except RuntimeError:
            from twisted.internet import reactor

            self._post = reactor.callFromThread

    def close(self) -> None:
        self._post = None


class _Call:
    """A timer. Twisted's do not like to be cancelled when they are over."""

    __slots__ = ("_call", "timer")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.timer: Timer | None = None

    def __call__(self) -> None:
        self.timer = None
        self._call()

    def cancel(self) -> None:
        timer, self.timer = self.timer, None
        if timer is not None:
            timer.cancel()


class GroupListener:
    """Hears what happens by itself."""

    def __init__(self, permits: PermitQueue, notifier: Notifier) -> None:
        self._permits = permits
        self._notifier = notifier

    def changed(self) -> None:
        """There may be a grant for a request, or news to tell."""
        self._permits.changed()

    def refuse(self, ticket: int, error: BaseException) -> None:
        """The process that decides does not take it."""
        self._permits.fail(ticket, error)

    def shared_warning(self, code: str, message: str) -> None:
        """Something about the group."""
        self._notifier.shared(code, message)

    def moved(self) -> None:
        """Its stats have it."""


def make_engine(options: Options, clock: Clock) -> Any:
    """The engine, or what stands in for it where spiders share a limit."""
    if options.shared_url is None:
        return Engine(options.engine)
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        want = "the package redis: pip install autothrottle[redis]"
        raise ConfigError([Problem("THROTTLING_SHARED_REDIS", want, "none")]) from None
    from ..redis import Shared

    try:
        # The group asks anew where a command fails: a client that waits before it tries again is in its way.
        client = redis.Redis.from_url(
            options.shared_url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            health_check_interval=_HEALTH_S,
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:
        want = f"a URL of Redis: redis://host:6379/0 ({error})"
        raise ConfigError([Problem("THROTTLING_SHARED_REDIS", want, "another text")]) from None
    # The options of a process of another kind go into the log as well.
    logger.debug("%s shares these options: %s", options.shared_name, json.dumps(options.engine))
    offline: Offline | None = options.shared_offline  # type: ignore[assignment]
    shared = Shared(client, options.shared_name, offline, members=options.shared_members, owns_client=True)
    return shared.open_host(options.engine, ReactorScheduler(clock))


def leave(engine: Any) -> None:
    """Others go on at once. Waits for the store, for Scrapy ends its reactor next."""
    if not isinstance(engine, Engine):
        leaving = engine.leave()
        if leaving is not None:
            leaving.join(LEAVE_S)

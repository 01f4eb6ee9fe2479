"""``ThreadThrottle``: ``Throttle`` for threads, with the same behaviour, and ``acquire`` blocks.

.. code-block:: python

    throttle = ThreadThrottle(rate=5)
    with throttle.acquire("https://example.com/a") as permit:
        permit.settle(requests.get("https://example.com/a"))

Any number of threads may share one. There is no thread behind it: one of those that wait keeps the time for
all, and passes that on when it leaves. (With ``shared`` there are some, for the store is to be heard also
while no thread waits.) Listeners and managers are called by whichever thread it happens in,
one at a time.

Each thread that waits has a condition of its own, and only the one that keeps the time has a timer. One that
is interrupted gives its place back.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from ._base import BaseThrottle, refuse
from ._clock import NANOS, SystemClock
from ._exchange import run_now
from ._permit import Charge, Permit, Waiting, granted_by_hand
from ._requests import target_of, wait_of
from ._run import RunRetry, bound, check_function, run
from ._scheduler import Scheduler
from ._scopes import Scopes
from ._watch import abandon
from .errors import ConfigError, Problem

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._shared.transport import EventLoop
    from .options import Seconds, ThrottleOptions

__all__ = ["ThreadThrottle"]

P = ParamSpec("P")
T = TypeVar("T")

LEAVE_S = 5.0
"""How long the goodbye to the store may take, in seconds."""


class _ThreadWaiting(Waiting):
    """A thread waits."""

    __slots__ = ("condition",)

    condition: threading.Condition

    @property
    def is_over(self) -> bool:
        return self.permit is not None or self.error is not None

    def wake(self) -> None:
        self.condition.notify_all()


class ThreadScheduler(Scheduler):
    """The scheduler of any number of threads."""

    lock: Any

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # Of a clock in a test, who waits for a timer moves it.
        self.is_quiet = not isinstance(self.clock, SystemClock)
        self._idle = threading.Condition(self.lock)
        self._at: int | None = None
        self._keeper: _ThreadWaiting | None = None
        self._is_collecting = False

    def new_lock(self) -> AbstractContextManager[Any]:
        return threading.RLock()

    def forked(self) -> None:
        """This is another process, and no other thread came along: what they waited for and held is over."""
        self.lock = self.new_lock()
        self._idle = threading.Condition(self.lock)
        self._at = self._keeper = None
        self._is_collecting = False
        abandon(self)
        super().forked()

    def new_event_loop(self) -> EventLoop:
        from ._shared.transport import ThreadLoop

        return ThreadLoop(self.clock, self.lock)

    def new_waiting(self, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge) -> Waiting:
        waiting = _ThreadWaiting(ticket, scopes, target, charge)
        waiting.condition = threading.Condition(self.lock)
        return waiting

    def arm(self, at: int | None) -> None:
        if at != self._at:
            self._at = at
            if self._keeper is not None:
                self._keeper.condition.notify_all()

    def rest(self) -> None:
        super().rest()
        if self.is_idle:
            self._idle.notify_all()

    def lose(self, ticket: int, scopes: tuple[str, ...]) -> None:
        super().lose(ticket, scopes)
        if not self._is_collecting:
            self._is_collecting = True
            # A thread of its own: this one may be anywhere, with the lock or in `threading` itself.
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                _thread.start_new_thread(self._collect_now, ())

    def _collect_now(self) -> None:
        with self.lock:
            self._is_collecting = False
            self.collect()

    def wait(self, waiting: _ThreadWaiting) -> None:
        """Blocks until it has a permit or an error."""
        with self.lock:
            try:
                while not waiting.is_over:
                    if self._keeper is None:
                        self._keeper = waiting
                    if self._keeper is not waiting:
                        self.clock.wait(waiting.condition, None)
                        continue
                    left = None if self._at is None else (self._at - self.clock.now()) / NANOS
                    if left is None or left > 0:
                        self.clock.wait(waiting.condition, left)
                    if not waiting.is_over and self._at is not None and self.clock.now() >= self._at:
                        self._at = None
                        self.drain()
            finally:
                if self._keeper is waiting:
                    self._keeper = None
                    self._pass_on()

    def wait_idle(self) -> None:
        """Blocks until no request waits or is in flight."""
        self._rests(lambda: self.is_idle)

    def wait_over(self) -> None:
        """Blocks until all that was taken in is over."""
        self._rests(lambda: self.is_over)

    def _rests(self, is_it: Callable[[], bool]) -> None:
        with self.lock:
            while not is_it():
                self.clock.wait(self._idle, None)

    def _pass_on(self) -> None:
        """Another thread keeps the time."""
        for waiting in self.waiting.values():
            cast("_ThreadWaiting", waiting).condition.notify_all()
            return


class Wrapped(Protocol[P, T]):
    """The function that ``wrap`` makes."""

    __name__: str
    __wrapped__: Callable[P, T]
    """The function itself, for ``run``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __get__(self, instance: None, owner: Any, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any, /) -> Callable[..., T]: ...


class _PlainLock:
    """A lock of threads for code that is written for tasks too: it blocks and never suspends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


class ThreadThrottle(BaseThrottle):
    """Decides when the requests of threads leave.

    Takes the options of ``autothrottle.Throttle``; hooks are plain functions, and there is no
    ``request_timeout``: a thread cannot be stopped from outside, so set the client's own timeout.
    """

    _Scheduler = ThreadScheduler
    _is_plain = True
    _scheduler: ThreadScheduler

    def _new_lock(self) -> AbstractAsyncContextManager[Any]:
        return _PlainLock()

    def __init__(self, **options: Unpack[ThrottleOptions]) -> None:
        refuse(options, "request_timeout", _NO_TIMEOUT)
        super().__init__(options)

    def acquire(
        self,
        target: object = None,
        *,
        scopes: Scopes | None = None,
        priority: float = 0,
        cost: float = 1,
        delay: Seconds = 0,
        max_wait: Seconds | None = None,
    ) -> Permit:
        """Blocks until one request may be sent. ``with`` settles the permit at the end of the block.

        The arguments are those of ``autothrottle.Throttle.acquire``.
        """
        wait = wait_of(priority, cost, delay, max_wait)
        return granted_by_hand(run_now(self._enter(target, scopes, wait)))

    def run(
        self,
        target: object,
        fn: Callable[..., T],
        *args: Any,
        scopes: Scopes | None = None,
        priority: float = 0,
        cost: float = 1,
        delay: Seconds = 0,
        max_wait: Seconds | None = None,
        retry: bool | RunRetry | None = None,
    ) -> T:
        """Waits, calls ``fn(*args)``, and settles with what it returns or raises.

        It reads answers as ``autothrottle.Throttle.run`` does; ``permit`` and ``retry`` mean the same.
        """
        wait = wait_of(priority, cost, delay, max_wait)
        result: T = run_now(run(self, target, bound(fn, args), scopes, wait, retry))
        return result

    async def _call(self, call: Callable[[Permit], Any], permit: Permit, limit: float | None) -> Any:
        result = call(permit)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("run: want a plain function; for coroutines there is autothrottle.Throttle")
        return result

    @overload
    def wrap(self, fn: Callable[P, T], /) -> Wrapped[P, T]: ...
    @overload
    def wrap(self, *, target: object = None, **options: Any) -> Callable[[Callable[P, T]], Wrapped[P, T]]: ...
    def wrap(self, fn: Any = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """The same function, throttled: each call blocks, and settles with what it returns or raises.

        ``target``: what a call is for, or a function of the arguments. Default: the first argument. For
        many items give it to an executor: ``ThreadPoolExecutor(8).map(throttle.wrap(get), urls)``.
        """
        if fn is None:
            return functools.partial(self.wrap, **options)
        target = options.pop("target", None)
        check_function("wrap", fn)

        @functools.wraps(fn)
        def throttled(*args: Any, **kwargs: Any) -> Any:
            wanted = target_of(target, fn, args, kwargs)
            return self.run(wanted, functools.partial(fn, *args, **kwargs), **options)

        return throttled

    def idle(self) -> None:
        """Blocks until no request waits or is in flight."""
        self._scheduler.wait_idle()

    def drain(self) -> None:
        """Takes in no more: each new request is a ``ClosedError``. Blocks until all that was taken in is
        over, with its retries, redirects and functions; then the throttle is closed. ``close`` ends it early.
        """
        self._scheduler.takes_no_more = True
        self._scheduler.wait_over()
        self.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        self.idle()
        leaving = self._scheduler.leave()
        if leaving is not None:
            leaving.join(LEAVE_S)

    # For transports. No await here suspends.

    async def _wait(self, waiting: Waiting) -> Permit:
        try:
            self._scheduler.wait(cast("_ThreadWaiting", waiting))
        except BaseException as error:
            self._scheduler.give_up(waiting, error)
            raise
        return waiting.take()

    async def _within(self, limit: float, work: Awaitable[T]) -> T:
        if isinstance(work, Coroutine):
            work.close()
        raise ConfigError([Problem("request_timeout", _NO_TIMEOUT, f"{limit:g}")])


_NO_TIMEOUT = "no request_timeout: a thread cannot be stopped from outside; set the client's own timeout"

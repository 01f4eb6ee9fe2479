"""``Throttle`` for asyncio: decides when requests leave.

One timer of the loop serves all who wait. The throttle belongs to the loop on which it was first used, and
has no thread of its own.

If a task is cancelled between its permission and its send, its place and its cost go back. A throttle that
outlives its loop says so. With ``request_timeout`` a function that never ends gives its slots back.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import warnings
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from ._base import BaseThrottle
from ._clock import NANOS, Timer
from ._permit import Permit, Started, Wait, Waiting, enter_block, exit_block, granted_by_hand
from ._requests import seconds_of, target_of, wait_of
from ._run import RunRetry, bound, check_function, check_items, map_items, run
from ._scheduler import Scheduler
from ._scopes import Scopes
from .errors import ClosedError, ThrottleTimeoutError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._permit import Charge
    from ._shared.transport import EventLoop
    from .options import Seconds, ThrottleOptions

P = ParamSpec("P")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


class _TaskWaiting(Waiting):
    """A task waits."""

    __slots__ = ("future",)

    future: asyncio.Future[None]

    def wake(self) -> None:
        future = self.future
        if not future.done() and not future.get_loop().is_closed():
            future.set_result(None)


class _TaskScheduler(Scheduler, is_single=True):
    """The scheduler of one loop."""

    loop: asyncio.AbstractEventLoop | None = None
    _timer: Timer | None = None
    _timer_at: int | None = None
    _idle: asyncio.Event | None = None
    _is_asked_soon = False

    def bind(self) -> asyncio.AbstractEventLoop:
        """The loop that this belongs to, which must be the running one."""
        running = asyncio._get_running_loop() or _running_loop()
        if self.loop is not running:
            if self.loop is not None:
                if self.following is not None or not self.loop.is_closed():
                    raise RuntimeError("this throttle belongs to another event loop: make one for each loop")
                self._leave()
            self.loop = running
        return running

    def _leave(self) -> None:
        """Its loop is closed: tasks that waited there are over, and what it learned is for the next one."""
        now = self.clock.now()
        for waiting in tuple(self.waiting.values()):
            self.forget(waiting)
            self.engine.cancel(now, waiting.ticket)
        self._timer = self._timer_at = self._idle = None
        self._is_asked_soon = False

    def new_event_loop(self) -> EventLoop:
        from ._shared.transport import AsyncioLoop

        return AsyncioLoop(self.clock)

    def new_waiting(self, ticket: int, scopes: tuple[str, ...], target: object, charge: Charge) -> Waiting:
        waiting = _TaskWaiting(ticket, scopes, target, charge)
        waiting.future = self.bind().create_future()
        return waiting

    def submitted(self) -> None:
        # Requests of one turn of the loop are asked for together: a thousand tasks are one question.
        if not self._is_asked_soon:
            self._is_asked_soon = True
            self.bind().call_soon(self._ask)

    def _ask(self) -> None:
        self._is_asked_soon = False
        self.drain()

    def arm(self, at: int | None) -> None:
        # A timer that rings too early asks once more: cheaper than a new one for each request that leaves.
        is_in_time = at is not None and self._timer_at is not None and self._timer_at <= at
        if is_in_time or at == self._timer_at or (self.loop is not None and self.loop.is_closed()):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = at
        if at is not None:
            self._timer = self.clock.call_later(max(0, at - self.clock.now()) / NANOS, self._fire)

    def _fire(self) -> None:
        self._timer = self._timer_at = None
        self.drain()

    def rest(self) -> None:
        super().rest()
        if self._idle is not None and self.is_idle:
            self._idle.set()

    def lose(self, ticket: int, scopes: tuple[str, ...]) -> None:
        super().lose(ticket, scopes)
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.collect)

    @contextmanager
    def asking(self) -> Iterator[None]:
        self.bind()
        self.entering += 1
        try:
            yield
        finally:
            self.entering -= 1
            self.rest()

    async def idle(self) -> None:
        """Waits until no request waits or is in flight."""
        await self._rests(lambda: self.is_idle)

    async def over(self) -> None:
        """Waits until all that was taken in is over."""
        await self._rests(lambda: self.is_over)

    async def _rests(self, is_it: Callable[[], bool]) -> None:
        while not is_it():
            if self._idle is None or self._idle.is_set():
                self._idle = asyncio.Event()
            await self._idle.wait()


class Acquisition(Awaitable[Permit]):
    """``await`` it for a permit, or ``async with`` it for one that is settled at the end of the block."""

    __slots__ = ("_is_awaited", "_permit", "_scopes", "_target", "_throttle", "_wait")

    def __init__(self, throttle: Throttle, target: object, scopes: Scopes | None, wait: Wait) -> None:
        self._throttle = throttle
        self._target = target
        self._scopes = scopes
        self._wait = wait
        self._is_awaited = False

    def __await__(self) -> Generator[Any, Any, Permit]:
        self._is_awaited = True
        permit = yield from self._throttle._enter(self._target, self._scopes, self._wait).__await__()
        return granted_by_hand(permit)

    async def __aenter__(self) -> Permit:
        self._is_awaited = True
        throttle = self._throttle
        if self._scopes is None and throttle._settings.get_scopes is not None:
            permit = await throttle._enter(self._target, None, self._wait)
        else:
            entered = throttle._begin(self._target, self._scopes, self._wait)
            permit = entered if isinstance(entered, Permit) else await throttle._wait(entered)
        self._permit = permit
        enter_block(permit)
        return permit

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        permit = self._permit
        exit_block(permit)
        if not permit._is_settled:
            permit.end_block(error)

    def __del__(self) -> None:
        if not self._is_awaited:
            what = "throttle.acquire(…) was never awaited, so no request is queued"
            warnings.warn(f"{what}; use `async with throttle.acquire(url):`", RuntimeWarning, stacklevel=2)


class Wrapped(Protocol[P, T]):
    """The function that ``wrap`` makes."""

    __name__: str
    __wrapped__: Callable[P, Awaitable[T]]
    """The function itself, for ``run`` and ``map``."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...
    @overload
    def __get__(self, instance: None, owner: Any, /) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any, /) -> Callable[..., Coroutine[Any, Any, T]]: ...


class Throttle(BaseThrottle):
    """Decides when requests leave.

    .. code-block:: python

        throttle = Throttle(rate=5, scopes={"api.example": {"rate": "100/min"}})
        async with throttle.acquire("https://example.com/a") as permit:
            permit.settle(await client.get("https://example.com/a"))

    Raises ``ConfigError`` with every problem of the options, ``SnapshotError`` with those of the snapshot.
    """

    _Scheduler = _TaskScheduler
    _scheduler: _TaskScheduler

    def _new_lock(self) -> AbstractAsyncContextManager[Any]:
        return asyncio.Lock()

    def __init__(self, **options: Unpack[ThrottleOptions]) -> None:
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
    ) -> Acquisition:
        """Waits for the permit to send one request.

        * ``target``: its URL, or an object with a ``url``; its host is its scope.
        * ``scopes``: other scopes than that: a name, names, or a mapping of name to expected cost.
        * ``priority``: higher is first.
        * ``cost``: in units of the scopes' quotas.
        * ``delay``: the request's own, in seconds.
        * ``max_wait``: seconds that it may wait; then ``ThrottleTimeoutError``.

        The throttle reads an error in the block, too: a refusal that the client raised, a timeout, a lost
        connection. Other errors, and a cancelled task, change no pace.
        """
        return Acquisition(self, target, scopes, wait_of(priority, cost, delay, max_wait))

    @overload
    async def run(
        self,
        target: object,
        fn: Callable[..., Awaitable[T]],
        *args: Any,
        scopes: Scopes | None = ...,
        priority: float = ...,
        cost: float = ...,
        delay: Seconds = ...,
        max_wait: Seconds | None = ...,
        request_timeout: Seconds | None = ...,
        retry: bool | RunRetry | None = ...,
    ) -> T: ...
    @overload
    async def run(
        self,
        target: object,
        fn: Callable[..., T],
        *args: Any,
        scopes: Scopes | None = ...,
        priority: float = ...,
        cost: float = ...,
        delay: Seconds = ...,
        max_wait: Seconds | None = ...,
        request_timeout: Seconds | None = ...,
        retry: bool | RunRetry | None = ...,
    ) -> T: ...
    async def run(
        self,
        target: object,
        fn: Callable[..., Any],
        *args: Any,
        scopes: Scopes | None = None,
        priority: float = 0,
        cost: float = 1,
        delay: Seconds = 0,
        max_wait: Seconds | None = None,
        request_timeout: Seconds | None = None,
        retry: bool | RunRetry | None = None,
    ) -> Any:
        """Waits, calls ``fn(*args)``, and settles with what it returns or raises.

        It reads the responses of any client: ``status_code`` or ``status``, and ``headers``, of the result or
        of the error, of their ``response``, or of the error's cause. If ``fn`` sends through a transport of
        this throttle, that is the request that it was called for. A ``fn`` with a parameter ``permit`` is
        given its permit: ``permit.settle(response)`` tells of an answer that ``fn`` does not return.

        * ``retry``: ``True`` as the throttle's ``retry`` says, or ``{"limit": 3}``; ``fn`` is called again.
        * ``request_timeout``: seconds from the send until ``fn`` is done, then it is cancelled and backoff
          hears of a timeout.
        """
        limit = seconds_of("request_timeout", request_timeout)
        limit = self._settings.request_timeout if limit is None else limit
        wait = wait_of(priority, cost, delay, max_wait)
        return await run(self, target, bound(fn, args), scopes, wait, retry, limit)

    async def _call(self, call: Callable[[Permit], Any], permit: Permit, limit: float | None) -> Any:
        result = call(permit)
        if not inspect.isawaitable(result):
            return result
        started = Started(result, permit.started)
        return await (started if limit is None else self._within(limit, started))

    @overload
    def wrap(self, fn: Callable[P, Awaitable[T]], /) -> Wrapped[P, T]: ...
    @overload
    def wrap(
        self, *, target: object = None, **options: Any
    ) -> Callable[[Callable[P, Awaitable[T]]], Wrapped[P, T]]: ...
    def wrap(self, fn: Any = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """The same function, throttled: each call waits, and settles with what it returns or raises.

        ``target``: what a call is for, or a function of the arguments. Default: the first argument, which
        is a URL or an object with a ``url``. Further options are those of ``run``.
        """
        if fn is None:
            return functools.partial(self.wrap, **options)
        target = options.pop("target", None)
        check_function("wrap", fn)

        @functools.wraps(fn)
        async def throttled(*args: Any, **kwargs: Any) -> Any:
            wanted = target_of(target, fn, args, kwargs)
            return await self.run(wanted, functools.partial(fn, *args, **kwargs), **options)

        return throttled

    def map(
        self,
        items: Iterable[I] | AsyncIterable[I],
        fn: Callable[[I], Awaitable[T]] | Callable[[I, Permit], Awaitable[T]],
        *,
        target: Callable[[I], object] | None = None,
        scopes: Callable[[I], Scopes] | Scopes | None = None,
        ordered: bool = True,
        buffer: int = 100,
        errors: Literal["raise", "skip", "return"] = "raise",
        **options: Any,
    ) -> AsyncIterator[T]:
        """Runs ``fn`` for each item when its request may leave, and gives the results in their order.

        It pulls at most ``buffer`` items ahead: the source may be endless.

        * ``target``: what an item is for. Default: the item itself.
        * ``ordered``: results in the order of the items, or as they come.
        * ``buffer``: the most items that are held at a time: waiting, in flight, or done and not yet taken.
        * ``errors``: ``raise`` ends with the first one; ``skip`` leaves out what failed; ``return`` gives the
          exception in place of a result.
        """
        check_items(items)
        if isinstance(buffer, bool) or not isinstance(buffer, int) or buffer < 1:
            raise ValueError(f"map.buffer: want a whole number from 1; got {buffer!r}")
        if errors not in ("raise", "skip", "return"):
            raise ValueError(f'map.errors: want "raise", "skip" or "return"; got {errors!r}')

        async def work(item: I) -> T:
            named = scopes(item) if callable(scopes) else scopes
            wanted = item if target is None else target(item)
            return await self.run(wanted, fn, item, scopes=named, **options)

        return map_items(items, work, ordered=ordered, buffer=buffer, errors=errors)

    async def idle(self) -> None:
        """Waits until no request waits or is in flight."""
        await self._scheduler.idle()

    async def drain(self) -> None:
        """Takes in no more: each new request is a ``ClosedError``. Returns when all that was taken in is
        over, with its retries, redirects and functions; then the throttle is closed, as by ``aclose``.
        ``close`` ends it early.
        """
        self._scheduler.takes_no_more = True
        await self._scheduler.over()
        await self.aclose()

    async def aclose(self) -> None:
        """Closes, and waits until what is in flight has ended. Of a limit that processes share it leaves, so
        that others go on at once: before its client is closed.
        """
        self.close()
        await self.idle()
        leaving = self._scheduler.leave()
        if leaving is not None:
            await leaving.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    # For transports.

    def _begin(self, target: object, scopes: Scopes | None, wait: Wait) -> Permit | Waiting:
        scheduler = self._scheduler
        scheduler.bind()
        return scheduler.request(self._scopes_of(target, scopes), target, wait)

    async def _wait(self, waiting: Waiting) -> Permit:
        """The permit of one that waits."""
        try:
            if waiting.permit is None and waiting.error is None:
                await cast("_TaskWaiting", waiting).future
        except BaseException as error:
            self._scheduler.give_up(waiting, error)
            raise
        permit, waiting.permit = waiting.permit or waiting.take(), None
        # Other tasks may have had their turns first.
        permit.started()
        return permit

    async def _entering(self, asked: Awaitable[T], max_wait: float | None) -> T:
        scheduler = self._scheduler
        task = asyncio.ensure_future(asked)
        ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        def end(error: BaseException) -> None:
            if not ended.done():
                ended.set_result(error)

        scheduler.enders.add(end)
        alarm = None
        if max_wait is not None:
            alarm = scheduler.alarm(max_wait, lambda: end(ThrottleTimeoutError(max_wait)))
        either: set[asyncio.Future[Any]] = {task, ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ClosedError() if isinstance(ended.result(), ClosedError) else ended.result()
        finally:
            scheduler.enders.discard(end)
            if alarm is not None:
                scheduler.cancel(alarm)
            task.cancel()

    async def _within(self, limit: float, work: Awaitable[T]) -> T:
        """The result, unless it takes too long; then it is cancelled, without a wait for that."""
        task = asyncio.ensure_future(work)
        late: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ring() -> None:
            if not late.done():
                late.set_result(None)

        alarm = self._scheduler.alarm(limit, ring)
        either: set[asyncio.Future[Any]] = {task, late}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            task.add_done_callback(_forget)
            raise ThrottleTimeoutError(limit, True)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            raise
        finally:
            self._scheduler.cancel(alarm)
            late.cancel()


def _running_loop() -> asyncio.AbstractEventLoop:
    """The loop of asyncio that runs; where there is none, an error that says what to use."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        what = "no event loop of asyncio runs here: for threads there is ThreadThrottle"
        trio = sys.modules.get("trio")
    try:
        if trio is not None and trio.lowlevel.current_task():
            remedy = "use a ThreadThrottle in trio.to_thread.run_sync"
            what = f"this is trio, and a Throttle needs asyncio: {remedy}"
    except RuntimeError:  # imported, but not what runs here
        pass
    raise RuntimeError(what)


def _forget(task: asyncio.Future[Any]) -> None:
    """A late result is of no interest, also if it is an error."""
    if not task.cancelled():
        task.exception()

"""``run``: a function with a permit, and again where that was asked for. Once for tasks and for threads.

If a function tells its permit and fails afterwards, what it told counts, and decides whether it is called
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, TypedDict, TypeVar, cast

from ._clock import NANOS
from ._exchange import Core
from ._hooks import ask
from ._outcome import NOTHING, Outcome, answer_in, outcome_of_error
from ._permit import Permit, Verdict, Wait, Waiting, around
from ._requests import Settings
from ._scopes import Scopes
from .errors import ConfigError, Problem, RetryAfterTooLongError

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741

_END: Any = object()


class RunRetry(TypedDict):
    """How often a function is called again. After what, and when, the throttle's ``retry`` says."""

    limit: int
    """Calls after the first one."""


class Runner(Core, Protocol):
    """A throttle, and how it calls a function."""

    async def _call(self, call: Callable[[Permit], Any], permit: Permit, limit: float | None) -> Any: ...


async def run(
    core: Runner,
    target: object,
    call: Callable[[Permit], Any],
    scopes: Scopes | None,
    wait: Wait,
    retry: bool | RunRetry | None,
    limit: float | None = None,
) -> Any:
    """Calls with a permit, and settles with what that gives or raises."""
    with core._scheduler.job(wait) as wait:
        retries = retries_of(retry, core._settings)
        start = core._clock.now()
        permit = await core._enter(target, scopes, wait)
        if retries is not None:
            permit.charge.left = retries
        while True:
            if permit.charge.left:
                permit.again = wait.again(start)
            try:
                with around(permit):
                    result = await core._call(call, permit, limit)
            except BaseException as error:
                outcome = outcome_of_error(error)
                _report_retry(core, permit, outcome, retry)
                permit.end(outcome)
                permit = permit.heir or permit
                verdict = permit.verdict
                if not isinstance(error, Exception) and isinstance(verdict, Waiting):
                    core._scheduler.give_up(verdict, error)
                if not isinstance(error, Exception) or _is_over(verdict):
                    raise
            else:
                outcome = answer_in(result) or NOTHING
                if core._settings.when is not None and outcome.status is not None and not permit.is_settled:
                    outcome = await _asked_about(core, permit, result, outcome)
                _report_retry(core, permit, outcome, retry)
                permit.end(outcome)
                permit = permit.heir or permit
                verdict = permit.verdict
                if verdict == "too-long":
                    asked = (permit.asked or 0) / NANOS
                    raise RetryAfterTooLongError(asked, core._settings.max_retry_after, result)
                if _is_over(verdict):
                    return result
            if isinstance(verdict, Waiting):
                permit = await core._wait(verdict)
            else:
                # It was settled while the function ran: it begins anew.
                anew = wait.again(start)._replace(delay=permit.asked or 0)
                left = permit.charge.left or 1
                permit = await core._enter(target, permit.charge.expected_of, anew)
                permit.charge.left = left - 1


def _is_over(verdict: Verdict | None) -> bool:
    return verdict != "not-replayable" and not isinstance(verdict, Waiting)


async def _asked_about(core: Runner, permit: Permit, result: object, outcome: Outcome) -> Outcome:
    """The outcome, bad where the caller calls the answer so."""
    url = str(getattr(permit.target, "url", permit.target))
    try:
        is_bad = await ask("retry.when", url, lambda: core._settings.when(result), core._is_plain)
    except BaseException:
        permit.again = None
        permit.end(outcome)
        raise
    if is_bad:
        outcome.backoff = True
    return outcome


def retries_of(retry: object, settings: Settings) -> int | None:
    """How often a function is called again, checked; ``None`` where that is not said."""
    if retry is None or retry is False:
        return None
    if retry is True:
        if settings.retries == 0:
            got = "True, but the throttle has no retry"
            raise ConfigError([Problem("retry", 'retry={"limit": 3}, here or for the throttle', got)])
        return settings.retries
    others = [key for key in retry if key != "limit"] if isinstance(retry, Mapping) else []
    if others:
        raise ConfigError([Problem(f"retry.{others[0]}", _how_to_retry(others[0]), f"{retry!r:.60}")])
    limit = retry.get("limit") if isinstance(retry, Mapping) else None
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= 100:
        want = 'True, or {"limit": 3} (a whole number up to 100)'
        raise ConfigError([Problem("retry", want, f"{retry!r:.60}")])
    return limit


def _how_to_retry(key: object) -> str:
    """The advice for a word that the ``retry`` of a function does not take."""
    if key == "methods":
        return '{"limit": 3} alone: a function is called again whatever method it uses'
    if key in ("status_codes", "max_retry_after", "long_retry_after"):
        what = f'{{"limit": 3, "{key}": …}}'
        return f"it in the throttle's own retry, which is for functions as well: {what}"
    how = "raise an error with a status, 503 to be called again and 400 not to be"
    return f'{{"limit": 3}} alone, as status_codes in the retry of the throttle decides: {how}'


def check_function(method: str, fn: object) -> None:
    """Raises for what is no function."""
    if not callable(fn):
        started = "a coroutine, which was made already: put `lambda:` before it"
        raise TypeError(f"{method}: want a function; got {started if isawaitable(fn) else f'{fn!r:.60}'}")


def bound(fn: Any, args: tuple[Any, ...]) -> Callable[[Permit], Any]:
    """A call of a function with these arguments; with its permit, if it has a parameter of that name.

    Raises for what is no function: before anything waits for it.
    """
    check_function("run", fn)
    if not takes_permit(fn):
        return lambda _: fn(*args)
    return lambda permit: fn(*args, permit=permit)


def takes_permit(fn: Any) -> bool:
    """Whether a function has a parameter ``permit`` that is not given yet."""
    while isinstance(fn, partial):
        if "permit" in fn.keywords:
            return False
        fn = fn.func
    code = getattr(fn, "__code__", None)
    if code is None:
        return False
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return "permit" in names


def _report_retry(core: Runner, permit: Permit, outcome: Outcome, retry: object) -> None:
    """The throttle's own ``retry`` reaches what transports send, and not this."""
    if retry is None and core._settings.retries and not permit.is_settled and outcome.is_refusal:
        what = "retry of the throttle is for requests of transports"
        core._scheduler.warn("no-effect", f"{what}: run, wrap and map take retry=True", about="retry")


def check_items(items: object) -> None:
    """Raises for what gives no items, or gives letters."""
    is_text = isinstance(items, (str, bytes))
    if not is_text and isinstance(items, (Iterable, AsyncIterable)):
        return
    remedy = ": for one item put it in a list" if is_text else ""
    if isinstance(items, Awaitable):
        remedy = ": await it"
    elif callable(items):
        remedy = ": the items come before the function; what a generator gives is generator()"
    raise TypeError(f"map: want items, such as a list; got {items!r:.60}{remedy}")


async def map_items(
    items: Iterable[I] | AsyncIterable[I],
    work: Callable[[I], Awaitable[T]],
    *,
    ordered: bool,
    buffer: int,
    errors: str,
) -> AsyncIterator[T]:
    """Runs ``work`` for each item; when the caller stops, so does everything. No more items are held than
    ``buffer``, so an endless source is welcome and memory stays flat.
    """
    is_async = isinstance(items, AsyncIterable)
    source: Any = aiter(items) if isinstance(items, AsyncIterable) else iter(items)
    running: dict[int, asyncio.Task[T]] = {}
    done: dict[int, asyncio.Task[T]] = {}
    changed = asyncio.Event()
    pulled = taken = 0
    is_over = False
    pull: asyncio.Task[Any] | None = None

    async def run(item: I) -> T:
        return await work(item)

    def start(item: I) -> None:
        nonlocal pulled
        index = pulled
        pulled += 1

        def end(task: asyncio.Task[T]) -> None:
            running.pop(index, None)
            done[index] = task
            changed.set()

        running[index] = asyncio.ensure_future(run(item))
        running[index].add_done_callback(end)

    async def next_item() -> Any:
        try:
            return await anext(source)
        except StopAsyncIteration:
            return _END

    try:
        while True:
            while not is_over and pulled - taken < buffer:
                if not is_async:
                    item = next(source, _END)
                elif pull is None:
                    pull = asyncio.ensure_future(next_item())
                    pull.add_done_callback(lambda _: changed.set())
                    break
                elif pull.done():
                    item, pull = pull.result(), None
                else:
                    break
                if item is _END:
                    is_over = True
                else:
                    start(item)
            index = taken if ordered else next(iter(done), None)
            task = None if index is None else done.pop(index, None)
            if task is None:
                if is_over and taken == pulled:
                    return
                changed.clear()
                await changed.wait()
                continue
            taken += 1
            error = task.exception() if not task.cancelled() else asyncio.CancelledError()
            if error is None:
                yield task.result()
            elif errors == "return" and isinstance(error, Exception):
                yield cast("T", error)
            elif errors == "raise" or not isinstance(error, Exception):
                raise error
    finally:
        # No task of ours goes on after the caller has left the loop.
        left = [*running.values(), *([pull] if pull is not None and not pull.done() else [])]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        for task in (*done.values(), *left):
            if not task.cancelled():
                task.exception()
        close = getattr(source, "aclose" if is_async else "close", None)
        if close is not None:
            closed = close()
            if is_async:
                await closed

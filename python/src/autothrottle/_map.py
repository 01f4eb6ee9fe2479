"""Many items through one throttle, as an async iterator: pulls from its source only as fast as it can send.

The trap is ``gather`` over a million items: a million tasks before the first request has left. Here no more
items are held than ``buffer``, so an endless source is welcome and memory stays flat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741

_END: Any = object()


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
    """Runs ``work`` for each item; when the caller stops, so does everything."""
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

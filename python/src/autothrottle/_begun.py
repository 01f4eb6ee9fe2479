"""When a request is on its way: not when it was allowed, but when its client has made it.

A client builds a request, and perhaps its first connection, before it waits for anything. The trap is the gap
to the next request, which counts from the permission: the server would see both closer together.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ._native import Engine

T = TypeVar("T")

LATE = 500_000
"""How late after its permit a request may begin without a report, in nanoseconds."""


def left(engine: Engine, clock: Callable[[], int], ticket: int, at: int) -> int:
    """When a request that was let go at ``at`` really left. The driver tells the engine if that is later.

    It does so also where no request waits: the first of some tasks is on its way before the second asks. With
    a shared limit it tells only where a request waits.
    """
    now = clock()
    if now - at < LATE or not is_told(engine):
        return at
    engine.left(now, ticket)
    return now


def is_told(engine: Engine) -> bool:
    """Whether an engine is to know when a request really left."""
    return getattr(engine, "is_awaited", True)


class Begun(Coroutine[Any, Any, T]):
    """What is awaited gives the same; ``then`` is called once it waits for something.

    Not a function that awaits: a task that is cancelled before it begins would never have awaited the other.
    """

    __slots__ = ("_then", "_work")

    def __init__(self, given: Awaitable[T], then: Callable[[], object]) -> None:
        self._work: Coroutine[Any, Any, T] = given if inspect.iscoroutine(given) else _awaited(given)
        self._then: Callable[[], object] | None = then

    def send(self, value: Any) -> Any:
        """Goes on until it waits again."""
        awaited = self._work.send(value)
        then, self._then = self._then, None
        if then is not None:
            then()
        return awaited

    def throw(self, *error: Any) -> Any:
        """Goes on with an error."""
        return self._work.throw(*error)

    def close(self) -> None:
        """Ends it."""
        self._work.close()

    def __getattr__(self, name: str) -> Any:
        """In what state it is, and what its name: anyio looks at the coroutine of a task."""
        return getattr(self._work, name)

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)


async def _awaited(given: Awaitable[T]) -> T:
    return await given

"""Requests that leave past the throttle, although their client has one.

httpx and requests choose a transport for each URL, and never tell the one that was not chosen. So the method
that chooses is watched, from the first throttled transport on.

The trap is a release of the client's in which that method has another name: then no request is watched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def watch(client: type, method: str, chosen: Callable[[Any, Any, Any], None]) -> None:
    """Calls ``chosen(client, url, transport)`` whenever a client of this class has chosen. Once a class."""
    choose = getattr(client, method, None)
    if choose is None or hasattr(choose, "is_watched"):
        return

    @functools.wraps(choose)
    def watched(self: Any, url: Any) -> Any:
        transport = choose(self, url)
        chosen(self, url, transport)
        return transport

    watched.is_watched = True  # type: ignore[attr-defined]
    setattr(client, method, watched)


def expect(throttle: object, wanted: type, other: type, here: str, there: str) -> None:
    """Raises ``TypeError`` for what is not the kind of throttle that this needs."""
    if isinstance(throttle, wanted):
        return
    got = type(throttle).__name__
    remedy = f"; a {got} belongs to {there}" if isinstance(throttle, other) else ""
    raise TypeError(f"{here}: want a {wanted.__name__}; got a {got}{remedy}")

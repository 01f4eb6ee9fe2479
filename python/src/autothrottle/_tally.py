"""How many requests a throttle sent, and throttles in a row that sent one each: a limit that counts for none.

The trap is to cry wolf: a throttle for each host is as it should be, and so is one that is used again.
"""

from __future__ import annotations

from collections.abc import Callable

MANY = 20
"""After this many of them it is a function that makes them."""
SERVING = 100
"""After this many requests a warning names hosts that none met: a server is never closed."""


class Tally:
    """What one throttle sent."""

    __slots__ = ("scope", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self.scope: str | None = None

    def count(self, scope: str) -> bool:
        """One more; true where it is time to look for hosts that none met."""
        if self.sent == 0:
            self.scope = scope
        self.sent += 1
        return self.sent == SERVING


class Row:
    """The throttle that was made last, and those before it that are like it."""

    def __init__(self) -> None:
        self._last = Tally()
        self._scope: str | None = None
        self._count = 0

    def made(self, tally: Tally, warn: Callable[[str, str], None]) -> None:
        """Another throttle was made."""
        last, self._last = self._last, tally
        is_like = last.scope == self._scope
        self._scope = last.scope
        self._count = 0 if last.sent != 1 else self._count + 1 if is_like else 1
        if self._count == MANY:
            said = f"{MANY} throttles in a row sent one request each to {last.scope}"
            warn("no-effect", f"{said}, and none knows of the others: make one, outside of the function")


ROW = Row()

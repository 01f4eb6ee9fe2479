"""A throttle that takes in no more, and what it took in before: that goes on until it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ._permit import Wait, is_inside
from .errors import ClosedError


class Draining:
    """The end of a scheduler, and the work that it waits for."""

    closed: ClosedError | None = None
    takes_no_more = False
    jobs = 0
    """The number of open calls of transports and of ``run``."""
    lock: AbstractContextManager[Any]

    @property
    def is_idle(self) -> bool:
        """Whether no request waits or is in flight."""
        raise NotImplementedError

    def rest(self) -> None:
        """Everything that could be sent was."""

    def check_open(self, wait: Wait) -> None:
        """Raises unless a request may come in. While the throttle drains, what belongs to others may."""
        if self.closed is not None:
            raise ClosedError() from self.closed.__cause__
        if self.takes_no_more and not wait.is_taken and not is_inside(self):
            raise ClosedError(is_draining=True)

    @contextmanager
    def job(self, wait: Wait) -> Iterator[Wait]:
        """It is taken in, with all that belongs to it. Gives how that waits."""
        with self.lock:
            self.check_open(wait)
            self.jobs += 1
        try:
            yield wait if wait.is_taken else wait._replace(is_taken=True)
        finally:
            with self.lock:
                self.jobs -= 1
                if self.takes_no_more and self.is_over:
                    self.rest()

    @property
    def is_over(self) -> bool:
        """Whether all that was taken in is over."""
        return self.jobs == 0 and self.is_idle

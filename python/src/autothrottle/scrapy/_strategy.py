"""THROTTLING_SCOPE_MANAGER: a strategy of one's own for a scope, in place of backoff and rampup.

An event → the object's method → its ``delay`` and ``concurrency`` are read → what changed is configured. The
engine never hears of it. An error of the object fails the request that the call was about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.misc import build_from_crawler

from ..errors import ManagerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler

    from ._options import Options


@dataclass(frozen=True)
class ScopeAnswer:
    """How a request of a scope ended."""

    scope: str
    status: int | None
    """The status of the response, if there was one."""
    exception: BaseException | None
    """Why there was none."""
    latency: float | None
    """Seconds from send to response headers, if Scrapy's handler measured them."""


class ThrottlingScopeManagerProtocol(Protocol):
    """What a THROTTLING_SCOPE_MANAGER may have. ``delay`` and ``concurrency`` are read after each call."""

    delay: float | None
    """Seconds between two sends. None: the scope's own."""
    concurrency: int | None
    """Slots. None: the scope's own."""

    def on_send(self) -> None:
        """A request leaves."""

    def on_good(self, answer: ScopeAnswer) -> None:
        """An answer that is not bad."""

    def on_bad(self, answer: ScopeAnswer) -> None:
        """A bad answer: one of BACKOFF_HTTP_CODES or BACKOFF_EXCEPTIONS, or what a manager calls bad."""


class ThrottlingScopeManager:
    """The usual THROTTLING_SCOPE_MANAGER: the engine's own backoff and rampup. Subclasses replace both."""

    delay: float | None = None
    concurrency: int | None = None

    def __init__(self, crawler: Crawler, config: Mapping[str, Any]) -> None:
        self.crawler = crawler
        self.config = config

    @classmethod
    def from_crawler(cls, crawler: Crawler, config: Mapping[str, Any]) -> ThrottlingScopeManager:
        """`config`: what THROTTLING_SCOPES has for the scope, and its name as ``id``."""
        return cls(crawler, config)

    def on_send(self) -> None:
        """A request leaves."""

    def on_good(self, answer: ScopeAnswer) -> None:
        """An answer that is not bad."""

    def on_bad(self, answer: ScopeAnswer) -> None:
        """A bad answer."""


class Strategies:
    """The managers of scopes that have one."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
        self._crawler = crawler
        self._configs = options.configs
        self._managers: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._classes = options.managers

    @property
    def are_there(self) -> bool:
        """Whether any scope may have one."""
        return any(each is not None for each in self._classes.values())

    def begin(self, scope: str) -> dict[str, Any]:
        """What is to be configured when the scope is made."""
        known = self._managers.get(scope)
        if known:
            return known[1]
        made = self._classes.get(scope) or self._classes.get(None)
        if made is None:
            return {}
        config = {"id": scope, **self._configs.get(scope, {})}
        try:
            manager = build_from_crawler(made, self._crawler, config) if isinstance(made, type) else made
        except Exception as error:
            raise ManagerError("THROTTLING_SCOPE_MANAGER", f"of {scope} failed: {error!r}") from error
        told = _pace(scope, manager)
        self._managers[scope] = manager, told
        return told

    def forget(self, scope: str) -> None:
        """The scope is idle; one that the settings name keeps its manager and what that learned."""
        if scope not in self._classes:
            self._managers.pop(scope, None)

    def on_send(self, scope: str) -> dict[str, Any]:
        """Tells that a request leaves; gives what that changes."""
        return self._tell(scope, "on_send")

    def on_answer(self, answer: ScopeAnswer, is_bad: bool) -> dict[str, Any]:
        """Tells of an answer that the engine has judged; gives what that changes."""
        return self._tell(answer.scope, "on_bad" if is_bad else "on_good", answer)

    def _tell(self, scope: str, event: str, *arguments: Any) -> dict[str, Any]:
        known = self._managers.get(scope)
        if not known:
            return {}
        manager, told = known
        method = getattr(manager, event, None)
        if method is not None:
            try:
                method(*arguments)
            except Exception as error:
                raise ManagerError(event, f"of {scope} failed: {error!r}") from error
        pace = _pace(scope, manager)
        if pace == told:
            return {}
        self._managers[scope] = manager, pace
        return pace


def _pace(scope: str, manager: Any) -> dict[str, Any]:
    """What it says, in the engine's units."""
    try:
        delay, concurrency = getattr(manager, "delay", None), getattr(manager, "concurrency", None)
    except Exception as error:
        raise ManagerError("THROTTLING_SCOPE_MANAGER", f"of {scope} failed: {error!r}") from error
    pace: dict[str, Any] = {} if delay is None else {"delay": delay * 1000}
    return pace if concurrency is None else {**pace, "concurrency": concurrency}

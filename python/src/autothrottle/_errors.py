"""What the engine can say is wrong, as classes with a ``code``: the same codes and texts as in npm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with options or with a snapshot."""

    path: str
    """Where it is: ``scopes."api.example".backoff.factor``."""
    want: str
    """What it wants."""
    got: str
    """What it got."""


class ThrottleError(Exception):
    """The base of all errors that a throttle raises by itself."""

    code: ClassVar[str] = "ERR_THROTTLE"
    """Which error this is, for programs."""


class ThrottleWarning(UserWarning):
    """A warning without a listener: the throttle does something else than what was typed or promised."""


class ProblemsError(ThrottleError, ValueError):
    """Input that makes no sense, with all of its problems at once."""

    whole: ClassVar[str] = "input"

    def __init__(self, problems: Iterable[tuple[str, str, str]]) -> None:
        self.problems: list[Problem] = [Problem(*problem) for problem in problems]
        """Every problem."""
        self.path: str = self.problems[0].path if self.problems else ""
        """The path of the first problem."""
        super().__init__(
            "\n".join(f"{path or self.whole}: want {want}; got {got}" for path, want, got in self.problems)
        )

    def __reduce__(self) -> tuple[type[ProblemsError], tuple[list[Problem]]]:
        return type(self), (self.problems,)


class ConfigError(ProblemsError):
    """An option is wrong. ``problems`` lists all of them."""

    code = "ERR_CONFIG"
    whole = "options"


class SnapshotError(ProblemsError):
    """The snapshot is none, is damaged, or comes from a newer release. No part of it was used."""

    code = "ERR_SNAPSHOT"
    whole = "snapshot"


class QueueFullError(ThrottleError):
    """As many requests wait as ``maxWaiting`` allows."""

    code = "ERR_QUEUE_FULL"

    def __init__(self) -> None:
        super().__init__("as many requests wait as maxWaiting allows")


class CostExceedsQuotaError(ThrottleError, ValueError):
    """The request costs more than a scope's whole quota, or its rate's burst: it could never be sent."""

    code = "ERR_COST_EXCEEDS_QUOTA"

    def __init__(self, scope: str | None = None, path: str | None = None) -> None:
        self.scope = scope
        """The scope's name."""
        self.path = path
        """The setting that holds the quota: ``scopes."api.example".quota``."""
        place = "a scope" if scope is None else scope if path is None else f"{scope} ({path})"
        super().__init__(f"the request costs more than {place} ever allows")

    def __reduce__(self) -> tuple[type[CostExceedsQuotaError], tuple[str | None, str | None]]:
        return type(self), (self.scope, self.path)


class ScopeDownError(ThrottleError, ConnectionError):
    """No answer has come from a scope for ``down_after``, only failed connections and timeouts.

    One request at a time still leaves, to see whether the server is back.
    """

    code = "ERR_SCOPE_DOWN"

    def __init__(self, scope: str, seconds: float) -> None:
        self.scope = scope
        """The scope."""
        self.seconds = seconds
        """For how long no answer came."""
        super().__init__(f"{scope} is down: no answer has come for {round(seconds)} s")

    def __reduce__(self) -> tuple[type[ScopeDownError], tuple[str, float]]:
        return type(self), (self.scope, self.seconds)

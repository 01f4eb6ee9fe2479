"""Errors, a class for each; all are a :class:`ThrottleError`.

Each kind has its class and its ``code``, so no program reads a message. The classes are also Python's own
kinds (``ValueError``, ``TimeoutError``) where one says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

__all__ = ["Problem", "ThrottleError", "ThrottleWarning"]
# written by `cargo xtask write`: names of errors
__all__ += [
    "BodyNotReplayableError",
    "ClosedError",
    "ConfigError",
    "CostExceedsQuotaError",
    "DisallowedError",
    "ManagerError",
    "NestedError",
    "QueueFullError",
    "RetryAfterTooLongError",
    "ScopeDownError",
    "SharedError",
    "SnapshotError",
    "StalledError",
    "ThrottleTimeoutError",
]
# end of what is written


class Problem(NamedTuple):
    """One thing that is wrong with options or with a snapshot."""

    path: str
    """Where it is: ``scopes."api.example".backoff.factor``."""
    want: str
    """The expected value."""
    got: str
    """The value that was found."""


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


class ThrottleTimeoutError(ThrottleError, TimeoutError):
    """The request waited as long as its ``max_wait`` allows, or took longer than its ``request_timeout``."""

    code = "ERR_TIMEOUT"

    def __init__(self, seconds: float, is_sent: bool = False, held: float | None = None) -> None:
        self.seconds = seconds
        """The limit that was reached."""
        self.is_sent = is_sent
        """Whether the request had been sent."""
        super().__init__(
            f"the request was not answered within {seconds:g} s, its request_timeout"
            if is_sent
            else f"the request waited {seconds:g} s for permission, as long as its max_wait allows"
            if held is None
            else f"the request would be held for {held:.3g} s, longer than its max_wait, {seconds:g} s"
        )


class ClosedError(ThrottleError):
    """The throttle was closed, or drains. ``__cause__`` is what ``close`` was given."""

    code = "ERR_CLOSED"

    def __init__(self, is_draining: bool = False) -> None:
        super().__init__(
            "the throttle drains: it takes in no more" if is_draining else "the throttle is closed"
        )


class NestedError(ThrottleError):
    """A call inside a hook waits for the slot of the request that the hook is asked about."""

    code = "ERR_NESTED"

    def __init__(self, target: object) -> None:
        url = getattr(target, "url", target)
        super().__init__(f"{url} waits for a slot that its own hook holds: send by another client there")


class RetryAfterTooLongError(ThrottleError):
    """The server asked for a longer wait than ``retry.max_retry_after``."""

    code = "ERR_RETRY_AFTER_TOO_LONG"

    def __init__(self, retry_after: float, most: float, response: object = None) -> None:
        self.retry_after = retry_after
        """How long the server asked for, in seconds."""
        self.response = response
        """The response that asked, its body unread."""
        super().__init__(f"the server asks to wait {retry_after:g} s, more than max_retry_after ({most:g} s)")


class DisallowedError(ThrottleError):
    """robots.txt does not allow the URL, or could not be had. Only with the option ``robots``."""

    code = "ERR_DISALLOWED"

    def __init__(self, message: str, is_unavailable: bool = False) -> None:
        self.is_unavailable = is_unavailable
        """It could not be had: another try, a minute later, may allow the URL."""
        super().__init__(message)


class SharedError(ThrottleError):
    """The connection to the group is broken, and ``offline`` is ``"fail"``. ``__cause__`` says why."""

    code = "ERR_SHARED_OFFLINE"

    def __init__(self) -> None:
        super().__init__("the connection to the group is broken, and offline is fail: check the connection")


# written by `cargo xtask write`: errors


class QueueFullError(ThrottleError):
    """As many requests wait as ``max_waiting`` allows."""

    code = "ERR_QUEUE_FULL"

    def __init__(self) -> None:
        super().__init__("as many requests wait as max_waiting allows: send less, or pull work with map")


class BodyNotReplayableError(ThrottleError):
    """The request would be sent again, but its body is a stream that was read: give bytes or a text."""

    code = "ERR_BODY_NOT_REPLAYABLE"

    def __init__(self) -> None:
        super().__init__(
            "the request cannot be sent again: its body is a stream that was read; give bytes or a text"
        )


class ScopeDownError(ThrottleError, ConnectionError):
    """No answer has come from a scope for ``down_after``, only failed connections and timeouts. One request
    at a time still leaves, to see whether the server is back.
    """

    code = "ERR_SCOPE_DOWN"

    def __init__(self, scope: str, seconds: float) -> None:
        self.scope = scope
        """The scope."""
        self.seconds = seconds
        """For how long no answer came, in seconds."""
        super().__init__(f"{scope} is down: no answer has come for {round(seconds)} s")

    def __reduce__(self) -> tuple[type[ScopeDownError], tuple[str, float]]:
        return type(self), (self.scope, self.seconds)


class StalledError(ThrottleError):
    """The error of requests to a host that refuses all of them, after a ``stall`` listener called
    ``fail()``.
    """

    code = "ERR_STALLED"

    def __init__(self, scope: str, seconds: float) -> None:
        self.scope = scope
        """The scope."""
        self.seconds = seconds
        """For how long it has answered only badly, in seconds."""
        super().__init__(f"{scope} has answered only badly for {round(seconds)} s")

    def __reduce__(self) -> tuple[type[StalledError], tuple[str, float]]:
        return type(self), (self.scope, self.seconds)


class ManagerError(ThrottleError):
    """A hook or a manager of yours failed, or gave what makes no sense. It fails its own request only;
    ``__cause__`` is what it raised.
    """

    code = "ERR_MANAGER"

    def __init__(self, hook: str, what: str) -> None:
        self.hook = hook
        """Which hook."""
        super().__init__(f"{hook} {what}")


# end of what is written

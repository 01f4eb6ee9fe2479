"""Reads what servers say and what people typed, for hosts that decide for themselves.

These functions know no engine: one instance of the component serves all of them, one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ._documents import document
from ._errors import ConfigError
from ._headers import HeaderMap, Headers, fields_of, units_of
from ._numbers import span, text, whole
from ._state import HintsRead, hints_read_of
from ._wasmtime import READING, THROTTLING, Err, Function, Instance

_lock = threading.Lock()
_instance: Instance | None = None
_functions: dict[str, Function] = {}


def _call(interface: str, name: str, *values: Any) -> Any:
    global _instance
    with _lock:
        if _instance is None:
            _instance = Instance()
        function = _functions.get(name)
        if function is None:
            function = _functions[name] = _instance.function(interface, name)
        return function(*values)


def parse_hints(
    headers: Headers,
    *,
    status: int = 429,
    wall: int | None = None,
    header_map: HeaderMap | None = None,
) -> HintsRead:
    """What a response's headers say about limits: waits, quotas, resets, in all dialects of
    ``docs/hints.md``.

    :param status: the response's; on good ones an explicit wait means nothing.
    :param wall: wall time in nanoseconds since 1970, for responses without a ``Date``.
    """
    fields, units = fields_of(headers, header_map), units_of(header_map)
    status = min(whole("status", status), 2**16 - 1)
    return hints_read_of(_call(READING, "limits-of", status, fields, units, span("wall", wall)))


def parse_robots(robots: bytes | str, user_agent: str) -> int | None:
    """What a robots.txt asks of ``user_agent`` (a product token or a whole User-Agent header), the slower of
    ``Crawl-delay`` and ``Request-rate``, in nanoseconds; ``None`` if it asks for nothing.
    """
    content = robots.encode() if isinstance(robots, str) else bytes(robots)
    agent = text("user_agent", user_agent)
    return _call(READING, "crawl-delay", content, agent)  # type: ignore[no-any-return]


def check_driver_options(options: Mapping[str, object]) -> None:
    """Checks the options that only a driver reads; functions may be among them.

    :raises ConfigError: listing every problem.
    """
    checked = _call(THROTTLING, "check-driver-options", document(options))
    if isinstance(checked, Err):
        raise ConfigError(checked.error)


def nearest_name(typed: str, known: Sequence[str]) -> str | None:
    """The name that was meant by one that is not known, if one is near enough."""
    names = [text("known", name) for name in known]
    return _call(THROTTLING, "nearest", text("typed", typed), names)  # type: ignore[no-any-return]

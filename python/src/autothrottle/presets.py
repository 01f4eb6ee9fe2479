"""Limits that owners of public APIs state, as settings of scopes::

    from autothrottle import Throttle
    from autothrottle.presets import presets

    throttle = Throttle(scopes=presets("api.github.com", "nominatim.openstreetmap.org"))

``body_hints`` and ``async_body_hints`` are hooks for what owners say in bodies. The data is that of npm's
``autothrottle/presets``: each number has the owner's sentence, where it stands, and the day it was read
(``preset(host).sources``). Paces are 5 % below what is allowed: requests that leave evenly do not arrive
evenly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ._hooks import SomeHints
from ._presets import PRESETS
from .options import ScopeOptions

__all__ = [
    "Preset",
    "PresetSource",
    "async_body_hints",
    "body_hints",
    "preset",
    "preset_hosts",
    "presets",
]

_MOST_BODY = 262_144
"""A body that says it is longer is not read for a hint."""


@dataclass(frozen=True, slots=True)
class PresetSource:
    """A limit in its owner's words."""

    sentence: str
    """The sentence."""
    url: str
    """Where the owner says it."""
    read: str
    """When it was read: a day."""
    copy: str | None = None
    """It was read in this copy, not at the owner's address."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One host."""

    options: ScopeOptions
    """Settings of its scope. Times are seconds."""
    sources: tuple[PresetSource, ...]
    """The page that says so."""
    user_agent: str | None = None
    """The value that the owner wants in ``User-Agent``; requests without it may be refused."""


preset_hosts: tuple[str, ...] = tuple(PRESETS)
"""The hosts that have presets, in alphabetical order."""


def preset(host: str) -> Preset:
    """One host's settings with their sources. Raises ``ValueError`` if it has no preset."""
    if host not in PRESETS:
        raise ValueError(f"there is no preset for {host!r}; there are {', '.join(PRESETS)}")
    options, sources, user_agent = PRESETS[host]
    return Preset(options, tuple(PresetSource(*each) for each in sources), user_agent)


def presets(*hosts: str) -> dict[str, ScopeOptions]:
    """Settings for ``scopes``, by host. Your own settings come on top: ``{**presets("api.stripe.com"),
    "api.stripe.com": {"rate": 100}}``.

    Raises ``ValueError`` that names a host without a preset, and those that have one.
    """
    return {host: deepcopy(preset(host).options) for host in hosts}


def body_hints(response: Any) -> SomeHints | None:
    """Limits that owners state in bodies, for threads: ``ThreadThrottle(get_hints=body_hints)``.

    It reads the ``backoff`` of Stack Exchange, and the ``throttleStatus`` of Shopify's GraphQL, where less is
    left than the query asked for. It reads JSON of these two owners alone. Their answers arrive later, by the
    time of their bodies, keep their slots until then, and are kept by the client as after ``read``. A body of
    more than 256 KiB by its ``content-length`` is not read, and its hint is not heard.
    """
    owner = _owner(response)
    if owner is None:
        return None
    read = getattr(response, "read", None)
    body = response.content if read is None or hasattr(response, "iter_content") else read()
    return _hints_of(owner, body)


async def async_body_hints(response: Any) -> SomeHints | None:
    """The same for tasks, with httpx and aiohttp: ``Throttle(get_hints=async_body_hints)``."""
    owner = _owner(response)
    if owner is None:
        return None
    read = getattr(response, "aread", None) or response.read
    return _hints_of(owner, await read())


def _owner(response: Any) -> str | None:
    """The host of an answer, if its body may have a hint."""
    host = urlsplit(str(response.url)).hostname or ""
    owner = (
        "shopify" if host.endswith(".myshopify.com") else "stack" if host.startswith("api.stack") else None
    )
    headers = response.headers
    if owner is None or "json" not in headers.get("content-type", ""):
        return None
    length = headers.get("content-length", "0")
    return None if length.isdigit() and int(length) > _MOST_BODY else owner


def _hints_of(owner: str, body: bytes) -> SomeHints | None:
    parsed: Any
    try:
        parsed = json.loads(body)
    except ValueError:
        return None  # not what the header says it is
    if owner == "stack":
        seconds = parsed.get("backoff") if isinstance(parsed, Mapping) else None
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0:
            return {"delay": seconds}
        return None
    try:
        cost = parsed["extensions"]["cost"]
        left, rate = (cost["throttleStatus"][key] for key in ("currentlyAvailable", "restoreRate"))
        missing = cost["requestedQueryCost"] - left
        return {"delay": missing / rate} if missing > 0 and rate > 0 else None
    except (KeyError, TypeError):
        return None

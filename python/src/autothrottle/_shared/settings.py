"""What decides, as processes compare it and divide it: the options of the engine.

The traps: the same options in another order, or 500 that Python writes as ``500.0``, which are not other
options; and one slot that cannot be divided.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from .transport import Scheduler, Timer

_INDEX = re.compile(r"(?:0|[1-9]\d{0,9})\Z")


def hash_of(options: Mapping[str, Any]) -> str:
    """Of what decides: FNV-1a over the options, as ``hashOf`` of ``js/shared/group.ts`` has it."""
    units = written(options).encode("utf-16-le", "surrogatepass")
    value = 0x811C9DC5
    for at in range(0, len(units), 2):
        value = (value ^ (units[at] | units[at + 1] << 8)) * 0x01000193 & 0xFFFFFFFF
    return f"{value:x}"


def written(value: Any) -> str:
    """As ``JSON.stringify`` writes it, with the keys of objects in order."""
    if isinstance(value, Mapping):
        entries = {str(key): each for key, each in value.items()}
        # Objects have keys that are whole numbers first, whatever was said.
        keys = sorted(entries, key=lambda key: (0, int(key), "") if _is_index(key) else (1, 0, _units(key)))
        return "{" + ",".join(f"{_text(key)}:{written(entries[key])}" for key in keys) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(written(each) for each in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return _number(float(value))
    return _text(str(value))


def _is_index(key: str) -> bool:
    return _INDEX.match(key) is not None and int(key) < 2**32 - 1


def _units(text: str) -> Any:
    return text.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # Half a pair is written by its number.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):x}", quoted)


def _number(number: float) -> str:
    """The shortest digits that say it, as JavaScript has them."""
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    # The value is 0.DIGITS times 10^place.
    place = (len(whole) if whole != "0" else len(digits) - len(part)) + int(exponent or 0)
    digits = digits.rstrip("0")
    if len(digits) <= place <= 21:
        return sign + digits + "0" * (place - len(digits))
    if 0 < place <= 21:
        return f"{sign}{digits[:place]}.{digits[place:]}"
    if -6 < place <= 0:
        return f"{sign}0.{'0' * -place}{digits}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{mantissa}e{'+' if place > 0 else '-'}{abs(place - 1)}"


_WINDOW_MS = 60_000.0
"""A quota that names no window has this one."""


def divided(options: Mapping[str, Any], share: int) -> dict[str, Any]:
    """The part of one of ``share`` processes that go on alone: of slots, and of what a quota gives."""
    out = part(options, share)
    defaults = options.get("defaults") or {}
    if options.get("window") is None:
        window = (defaults.get("window") or _WINDOW_MS) / share
        out["defaults"] = {**part(defaults, share), "window": window}
    elif defaults:
        out["defaults"] = part(defaults, share)
    if options.get("scopes") is not None:
        out["scopes"] = {name: part(scope, share) for name, scope in options["scopes"].items()}
    return out


def part(limits: Mapping[str, Any], share: int) -> dict[str, Any]:
    """The same of a scope's settings. The clock runs slower, so a window is shorter to last as long."""
    out = dict(limits)
    slots, quota, window = (limits.get(name) for name in ("concurrency", "quota", "window"))
    if isinstance(slots, (int, float)):
        out["concurrency"] = max(math.floor(slots / share), 1)
    if quota is not None:
        out["quota"] = (
            [_quota(each, share) for each in quota] if isinstance(quota, list) else _quota(quota, share)
        )
    if window is not None:
        out["window"] = window / share
    return out


def _quota(quota: Any, share: int) -> Any:
    if not isinstance(quota, Mapping):
        return quota / share
    own = {} if quota.get("window") is None else {"window": quota["window"] / share}
    return {**quota, **own, "limit": quota["limit"] / share}


def divided_state(state: Mapping[str, Any], share: int) -> dict[str, Any]:
    """What was known of all, for one of them: its part of what was used, and spans by its slower clock."""
    scopes = {name: _divided_scope(scope, share) for name, scope in state["snapshot"]["scopes"].items()}
    settings = [[name, part(partial, share)] for name, partial in state["settings"]]
    # Alone it has its part of the slots, and the others theirs.
    return {**state, "snapshot": {**state["snapshot"], "scopes": scopes}, "settings": settings, "members": []}


def _divided_scope(scope: Mapping[str, Any], share: int) -> dict[str, Any]:
    out = dict(scope)
    if "hold" in scope:
        out["hold"] = scope["hold"] / share
    if "quotas" in scope:
        out["quotas"] = [
            {
                **spent,
                "window": spent["window"] / share,
                "sends": [[ago / share, cost / share] for ago, cost in spent["sends"]],
            }
            for spent in scope["quotas"]
        ]
    return out


class Slower:
    """A scheduler whose clock runs slower by ``share``: gaps and rates are divided by it."""

    def __init__(self, scheduler: Scheduler, share: int) -> None:
        self._scheduler = scheduler
        self._share = share
        self._from = scheduler.now()
        self.is_loop = scheduler.is_loop
        self.wall = scheduler.wall
        self.after_turn = scheduler.after_turn
        self.post = scheduler.post
        self.open = scheduler.open
        self.close = scheduler.close

    @property
    def is_running(self) -> bool:
        """See :class:`Scheduler`."""
        return self._scheduler.is_running

    def now(self) -> float:
        """Its clock."""
        return self._from + (self._scheduler.now() - self._from) / self._share

    def call_later(self, ms: float, call: Callable[[], object]) -> Timer:
        """Calls after so long of its time."""
        return self._scheduler.call_later(ms * self._share, call)

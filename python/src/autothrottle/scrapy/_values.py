"""Values of Scrapy's settings: what may be typed, and what it stands for. From the command line everything is
text.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from scrapy.utils.misc import load_object


class WantError(Exception):
    """What would have been right."""


def plain(value: Any) -> Any:
    """A value from the command line as what it stands for: ``-s DOWNLOAD_DELAY=0.5``."""
    if isinstance(value, str):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(value.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return value


def read_list(value: Any) -> list[Any]:
    """What may be typed as a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise WantError("a list")
    return list(value)


def read_flag(value: Any) -> bool:
    """Yes or no."""
    if value in (True, 1, "True", "true", "1"):
        return True
    if value in (False, 0, "False", "false", "0"):
        return False
    raise WantError("True or False")


def read_seconds(value: Any) -> float:
    """A time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 31_536_000:
        raise WantError("seconds from 0 to a year")
    return float(value)


def read_whole(value: Any) -> int:
    """A count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WantError("a whole number from 1")
    return value


def read_url(value: Any) -> str:
    """Where Redis is."""
    if not isinstance(value, str) or "://" not in value:
        raise WantError("a URL of Redis: redis://host:6379/0")
    return value


def read_name(value: Any) -> str:
    """A name."""
    if not isinstance(value, str) or not value:
        raise WantError("a name that is not empty")
    return value


def read_offline(value: Any) -> str:
    """What to do while the way is broken."""
    if value not in ("divide", "wait", "fail"):
        raise WantError('"divide", "wait" or "fail"')
    return str(value)


def load(value: Any) -> Any:
    """A class, or what its import path names."""
    try:
        return load_object(value) if isinstance(value, str) else value
    except (ImportError, NameError, ValueError, AttributeError) as error:
        raise WantError(f"a class or its import path ({error})") from None

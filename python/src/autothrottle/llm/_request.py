"""What a call asks of a model: whose it is, which model, how much goes in, and how much may come out.

A picture of 5 MB in base64 is 1,600 tokens and not 1,250,000. ``GET /models`` spends no tokens. With Azure
the model stands in the path. ``n`` asks for as many answers in one call.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

Vendor: TypeAlias = Literal["openai", "anthropic", "azure", "mistral", "groq", "openrouter", "gemini"]
Kind: TypeAlias = Literal["requests", "day", "tokens", "project", "input", "output"]


@dataclass(frozen=True)
class Rules:
    """How a vendor counts."""

    kinds: tuple[Kind, ...]
    """Budgets that a call may spend from."""
    is_actual: bool
    """Whether true usage is charged."""
    is_larger: bool = False
    """Whether ``tokens`` is the larger of input and output, not both."""
    is_max: bool = False
    """Reserve what may come out at most, not what usually does."""
    is_sliding: bool = False
    is_cached_free: bool = False
    is_even_day: bool = False
    """A day's requests come back evenly, not at midnight."""
    is_daily: bool = False
    """Its requests are of a day, where the headers leave that open."""
    is_spread: bool = False
    """Requests of a minute may be counted by the second."""
    is_by_characters: bool = False
    """It estimates input from characters, not from tokens."""
    rounding: float = 0
    """How far what the headers say may be off: Anthropic rounds tokens to thousands."""


_TOKENS: tuple[Kind, ...] = ("requests", "day", "tokens")
VENDORS: dict[Vendor, Rules] = {
    "openai": Rules(
        (*_TOKENS, "project"),
        is_actual=False,
        is_larger=True,
        is_max=True,
        is_by_characters=True,
        is_even_day=True,
    ),
    "azure": Rules(_TOKENS, is_actual=False, is_max=True, is_sliding=True, is_by_characters=True),
    "anthropic": Rules(
        ("requests", "input", "output"), is_actual=True, is_cached_free=True, is_spread=True, rounding=500
    ),
    "mistral": Rules(_TOKENS, is_actual=True),
    "groq": Rules(_TOKENS, is_actual=True, is_even_day=True, is_daily=True),
    "openrouter": Rules(_TOKENS, is_actual=True),
    "gemini": Rules(("requests", "day", "input", "tokens"), is_actual=True),
}
_HOSTS: tuple[tuple[str, Vendor], ...] = (
    ("azure.com", "azure"),
    ("anthropic.com", "anthropic"),
    ("mistral.ai", "mistral"),
    ("groq.com", "groq"),
    ("openrouter.ai", "openrouter"),
    ("googleapis.com", "gemini"),
)


@dataclass
class Asked:
    """A call, as far as its budgets are concerned."""

    vendor: Vendor
    host: str
    model: str | None = None
    """``None``: it asks no model."""
    characters: int = 0
    size: int = 0
    """UTF-8 bytes of text."""
    tokens: int = 0
    """Known as they are."""
    bound: int | None = 0
    """What may come out at most; ``None`` where the call does not say."""
    is_uncounted: bool = False
    """It holds files or sound, which only its vendor can count."""


# Paths that spend a model's requests and tokens.
_CALL = re.compile(
    r"/(?:completions|responses|embeddings|moderations|messages|(?:images|audio)/\w+)$|:\w*generateContent$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"/(?:deployments|models)/([^/:]+)")
_FORM_MODEL = re.compile(rb'name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]+)\r\n')
# A picture of which only the address is known, and the most that Anthropic counts for one.
_PICTURE = 1600
_BINARY = ("data", "file_data", "fileData", "b64_json")

Counter: TypeAlias = Callable[[str, str], float]


def asked_of(
    url: str, method: str, body: bytes | None, wanted: Vendor | None, counter: Counter | None
) -> Asked:
    """What a request asks. ``body`` is ``None`` where it is a stream."""
    parts = urlsplit(url)
    host, path = parts.netloc.rpartition("@")[2].lower(), parts.path
    found = next((vendor for end, vendor in _HOSTS if (parts.hostname or "").endswith(end)), None)
    asked = Asked(wanted or found or ("anthropic" if path.endswith("/messages") else "openai"), host)
    if method.upper() != "POST" or not _CALL.search(path):
        return asked
    try:
        told = json.loads(body or b"")
    except ValueError:
        told = None
    form = _FORM_MODEL.search(body[:100_000]) if body and told is None else None
    place = _PLACE.search(path)
    named = told.get("model") if isinstance(told, dict) else form and form[1].decode("utf-8", "replace")
    asked.model = place[1] if place else named if isinstance(named, str) else "*"
    if not isinstance(told, dict) or "/images/" in path or "/audio/" in path:
        return asked
    model = asked.model
    _count(told, asked, None if counter is None else lambda text: counter(text, model))
    asked.bound = _bound_of(told, path)
    return asked


def _bound_of(told: dict[str, Any], path: str) -> int | None:
    if path.endswith(("embeddings", "moderations")):
        return 0
    gemini = told.get("generationConfig")
    every: list[Any] = [
        told.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")
    ]
    every.append(gemini.get("maxOutputTokens") if isinstance(gemini, dict) else None)
    bound = next((each for each in every if _is_number(each)), None)
    several: Any = told.get("n")
    return None if bound is None else int(bound * (several if _is_number(several) and several > 1 else 1))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _count(value: Any, asked: Asked, counter: Callable[[str], float] | None, key: str = "") -> None:
    """Adds up all text; pictures by their pixels; lists of numbers are tokens already."""
    if isinstance(value, str):
        if value.startswith("data:image/"):
            asked.tokens += tokens_of_picture(value.partition(",")[2])
        elif value.startswith("data:") or key in _BINARY:
            asked.tokens += _PICTURE
            asked.is_uncounted = True
        elif counter is not None:
            asked.tokens += math.ceil(counter(value))
        else:
            asked.characters += len(value)
            asked.size += len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
    elif isinstance(value, list):
        if value and _is_number(value[0]):
            asked.tokens += len(value)
        else:
            for each in value:
                _count(each, asked, counter)
    elif isinstance(value, dict):
        kind, data = str(value.get("type", "")), value.get("data")
        address = value.get("url") or value.get("file_uri") or value.get("image_url")
        media = str(value.get("media_type") or value.get("mimeType") or "")
        is_picture = "image" in kind or key == "image_url" or (kind == "url" and key == "source")
        if media.startswith("image/") and isinstance(data, str):
            asked.tokens += tokens_of_picture(data)
        elif is_picture and value.get("detail") == "low":
            asked.tokens += 85
        elif is_picture and isinstance(address, str) and not address.startswith("data:"):
            asked.tokens += _PICTURE
        else:
            for name, each in value.items():
                _count(each, asked, counter, name)


def tokens_of_picture(text: str) -> int:
    """Pixels ÷ 750, as Anthropic says and OpenAI's tiles come to; 1,600 where the size is hidden."""
    head = text[:64_000]
    try:
        data = base64.b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return _PICTURE
    width = height = 0
    if data.startswith(b"\x89PNG"):
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    elif data.startswith(b"GIF8"):
        width, height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    elif data[12:16] == b"VP8X":
        width, height = int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    elif data[12:16] == b"VP8 ":
        width, height = int.from_bytes(data[26:28], "little"), int.from_bytes(data[28:30], "little")
    elif data.startswith(b"\xff\xd8"):
        at = 2
        while at + 9 <= len(data) and data[at] == 0xFF:
            if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):
                height = int.from_bytes(data[at + 5 : at + 7], "big")
                width = int.from_bytes(data[at + 7 : at + 9], "big")
                break
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return min(_PICTURE, math.ceil(width * height / 750)) if width * height > 0 else _PICTURE

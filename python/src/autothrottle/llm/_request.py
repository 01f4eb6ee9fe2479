"""Reads the request of a call: whose it is, which model, how much goes in, and how much may come out. Its
body is read in Rust (``crates/llm``), for every host alike; how vendors count stands here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import urlsplit

from .._native import llm_asked

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


@dataclass
class Asked:
    """A call, as far as its budgets are concerned."""

    vendor: Vendor
    host: str
    model: str | None = None
    """``None``: it asks no model."""
    characters: float = 0
    size: float = 0
    """UTF-8 bytes of text."""
    tokens: float = 0
    """Known as they are."""
    bound: float | None = 0
    """The most tokens that may come out; ``None`` where the call does not say."""
    is_uncounted: bool = False
    """It holds files or sound, which only its vendor can count."""


_FORM_MODEL = re.compile(rb'name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]+)\r\n')

Counter: TypeAlias = Callable[[str, str], float]


def asked_of(
    url: str, method: str, body: bytes | None, wanted: Vendor | None, counter: Counter | None
) -> Asked:
    """Reads a request. ``body`` is ``None`` where it is a stream."""
    parts = urlsplit(url)
    host, body = parts.netloc.rpartition("@")[2].lower(), body or b""
    form = None if body[:1] == b"{" else _FORM_MODEL.search(body[:100_000])
    named = form and form[1].decode("utf-8", "replace")
    read = llm_asked(host, parts.path, method, body, named, wanted, counter is not None)
    vendor, model, characters, size, tokens, bound, is_uncounted, texts = read
    if counter is not None:
        tokens += sum(counter(text, model or "*") for text in texts)
    return Asked(cast("Vendor", vendor), host, model, characters, size, tokens, bound, is_uncounted)

"""Reads the request of a call: whose it is, which model, how much goes in, and how much may come out. Its
body is read in Rust (``crates/llm``), for every host alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from .._native import llm_asked

Vendor: TypeAlias = Literal["openai", "anthropic", "azure", "mistral", "groq", "openrouter", "gemini"]
Kind: TypeAlias = Literal["other", "requests", "day", "tokens", "project", "input", "output"]
VENDORS: tuple[Vendor, ...] = get_args(Vendor)


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

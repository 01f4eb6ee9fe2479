"""Reads an answer: limits in its headers, usage in its body, and whether a refusal will ever end. They are
read in Rust (``crates/llm``), for every host alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple, cast

from .._clock import NANOS
from .._native import LlmBody, llm_refusal, llm_reported, parse_hints
from ._request import Kind, Vendor

DAY = 86_400.0


class ReportedLimit(NamedTuple):
    """A budget as the headers tell it: what is left of it, and its length in seconds."""

    kind: Kind
    limit: float
    left: float | None
    per: float


def limits_in(headers: Mapping[str, str], vendor: Vendor) -> list[ReportedLimit]:
    """The budgets that the headers tell."""
    limits = []
    # Azure says -1 for what it does not tell.
    for quota in parse_hints({name: value for name, value in headers.items() if value != "-1"}).quotas:
        reset = (quota.reset or 0) / NANOS
        own = llm_reported(vendor, quota.policy or "", quota.limit or 0, quota.remaining, reset)
        if own is not None:
            limits.append(ReportedLimit(cast("Kind", own[0]), *own[1:]))
    return limits


class Body:
    """Hears a body in passing, which may be compressed."""

    def __init__(self, is_stream: bool, is_cached_free: bool, encoding: str = "") -> None:
        self._reader = LlmBody(is_stream, is_cached_free)
        # 47: zlib or gzip. Others are not asked for.
        self._unpack = zlib.decompressobj(47) if encoding in ("gzip", "deflate") else None
        self._is_skipping = encoding not in ("", "identity", "gzip", "deflate")

    def hear(self, part: bytes) -> None:
        """A part was read."""
        if self._is_skipping:
            return
        if self._unpack is not None:
            try:
                part = self._unpack.decompress(part)
            except zlib.error:
                self._is_skipping = True
                return
        self._reader.hear(part)

    def end(self) -> None:
        """The body is over."""
        self._reader.end()

    @property
    def input(self) -> float | None:
        """The charged tokens of the input."""
        return self._reader.input

    @property
    def free(self) -> float:
        """The free tokens of the input, from the vendor's cache."""
        return self._reader.free

    @property
    def output(self) -> float | None:
        """The tokens of the output."""
        return self._reader.output

    @property
    def written(self) -> float:
        """Tokens that were written so far: characters of a stream ÷ 4, or what the vendor counts."""
        return self._reader.written

    @property
    def is_broken(self) -> bool:
        """The stream reported an error."""
        return self._reader.is_broken

    @property
    def is_whole(self) -> bool:
        """A stream was read to the event that ends it."""
        return self._reader.is_whole


class Refusal(NamedTuple):
    """A refusal, as read."""

    wait: float | None
    """Seconds to wait; ``None`` where it does not say."""
    is_final: bool
    """No wait helps."""
    kind: Kind | None
    """Which budget has no room, in the words of the refusal."""


def refusal_of(status: int, headers: Mapping[str, str], text: bytes, is_anthropic: bool) -> Refusal:
    """Reads a refusal: headers first, then what its body says."""
    hints = parse_hints(headers)
    wait = (hints.delay or 0) / NANOS if "after" in (hints.source or "") else 0
    is_told = headers.get("x-should-retry") == "false"
    read = llm_refusal(status, wait, "retry-after" in headers, is_told, is_anthropic, text)
    return Refusal(read[0], read[1], cast("Kind | None", read[2]))

"""What an answer says: limits in its headers, usage in its body or in the events of its stream, and whether a
refusal will ever end.

``reset`` is the time until a bucket is *full*, not until something is left. ``-requests`` may be a bucket of
a day. A streamed usage comes last, or never. A refusal may say how long to wait although no wait will help: a
quota is used up, or the request is above the whole limit.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from .._clock import NANOS
from .._native import parse_hints
from ._request import Kind, Rules

MINUTE, DAY = 60.0, 86_400.0
_WINDOWS = (1.0, 10.0, MINUTE, 3600.0, DAY)
_POLICY = re.compile(r"(.*?)(?:-tokens)?(?:-(minute|day))?")
_KINDS = get_args(Kind)


class ToldLimit(NamedTuple):
    """A budget as the headers tell it: what is left of it, and its length in seconds."""

    kind: Kind
    limit: float
    left: float | None
    per: float


def told_by(headers: Mapping[str, str], rules: Rules) -> list[ToldLimit]:
    """The budgets that the headers tell.

    The window follows from what is missing and the time until it is back; where too little is missing to
    tell, it is the usual one: a minute, and Groq's requests a day.
    """
    told = []
    # Azure says -1 for what it does not tell.
    for quota in parse_hints({name: value for name, value in headers.items() if value != "-1"}).quotas:
        match = _POLICY.fullmatch(quota.policy or "")
        what, window = match.groups() if match else ("", None)
        kind = "requests" if what == "req" else what
        if not quota.limit or kind not in rules.kinds or kind not in _KINDS:
            continue
        limit = float(quota.limit)
        left = None if quota.remaining is None else min(float(quota.remaining), limit)
        missing = limit - (limit if left is None else left)
        is_requests = kind == "requests"
        per = DAY if window == "day" or (rules.is_daily and is_requests) else MINUTE
        if missing > 0 and quota.reset and not window and not rules.is_spread:
            guess = math.log(quota.reset / NANOS * limit / missing)
            per = min(_WINDOWS, key=lambda each: abs(math.log(each) - guess))
        is_day = is_requests and per > MINUTE and "day" in rules.kinds
        told.append(ToldLimit("day" if is_day else kind, limit, left, per))
    return told


def _number(*values: Any) -> float | None:
    return next((each for each in values if isinstance(each, (int, float))), None)


def _written(value: Any) -> int:
    """The characters that an event of a stream adds to the answer."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(_written(each) for each in value)
    if isinstance(value, dict):
        return sum(_written(each) for key, each in value.items() if key not in _NO_TEXT)
    return 0


_NO_TEXT = {
    *("id", "type", "role", "name", "index", "finish_reason", "stop_reason", "signature", "object", "model")
}
# Beyond it a body is not kept: its usage is estimated.
_MOST = 4_000_000
_ENDS = ("message_stop", "response.completed", "response.incomplete", "response.failed")


class Body:
    """Hears a body in passing."""

    def __init__(self, is_stream: bool, is_cached_free: bool, encoding: str = "") -> None:
        self.input: float | None = None
        """What is charged of the input."""
        self.free: float = 0
        """What of it came from the vendor's cache, and is free."""
        self.output: float | None = None
        self.written: float = 0
        """Tokens that were seen to be written: characters of a stream ÷ 4, or what the vendor counts so far.
        """
        self.is_broken = False
        """The stream told an error."""
        self.is_whole = False
        """A stream was read to the event that ends it."""
        self._is_stream = is_stream
        self._is_cached_free = is_cached_free
        # 47: zlib or gzip. Others are not asked for.
        self._unpack = zlib.decompressobj(47) if encoding in ("gzip", "deflate") else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._characters = 0
        self._is_skipping = encoding not in ("", "identity", "gzip", "deflate")

    def hear(self, part: bytes) -> None:
        """A part was read."""
        if self._is_skipping and not self._is_stream:
            return
        if self._unpack is not None:
            try:
                part = self._unpack.decompress(part)
            except zlib.error:
                self._is_skipping, self._is_stream = True, False
                return
        text = self._text + self._decoder.decode(part)
        if not self._is_stream:
            self._text, self._is_skipping = (text, False) if len(text) <= _MOST else ("", True)
            return
        *lines, self._text = re.split(r"\r\n|\r|\n", text)
        for line in lines:
            if not self._is_skipping and line.startswith("data:"):
                self._event(line[5:])
            self._is_skipping = False
        if len(self._text) > _MOST:
            self._text, self._is_skipping = "", True

    def end(self) -> None:
        """The body is over."""
        if self._is_stream:
            if self._text.startswith("data:"):
                self._event(self._text[5:])
        elif not self._is_skipping:
            try:
                self._read_usage(json.loads(self._text))
            except ValueError:
                return

    def _event(self, data: str) -> None:
        if data.strip() == "[DONE]":
            self.is_whole = True
            return
        try:
            told = json.loads(data)
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        kind = told.get("type")
        self.is_broken |= bool(told.get("error")) or kind == "error"
        self.is_whole |= kind in _ENDS
        # Anthropic's first event counts one token of output, its ``message_delta`` all of them.
        before = self.output
        self._read_usage(told)
        if kind == "message_start":
            self.output = before
        self._characters += _written(told.get("delta"))
        for each in told.get("choices") or told.get("candidates") or ():
            if isinstance(each, dict):
                self._characters += _written(each.get("delta") or each.get("content"))
        self.written = max(self._characters / 4, self.output or 0)

    def _read_usage(self, told: Any) -> None:
        """Reads ``usage`` wherever vendors put it, over what was known before."""
        if not isinstance(told, dict):
            return
        places = (told, told.get("response"), told.get("message"))
        found = [each.get("usage") for each in places if isinstance(each, dict)]
        usage = next((each for each in [*found, told.get("usageMetadata")] if isinstance(each, dict)), None)
        if usage is None:
            return
        taken = _number(*map(usage.get, ("prompt_tokens", "input_tokens", "promptTokenCount")))
        # Anthropic counts cached input beside; the others count it as a part.
        beside = _number(usage.get("cache_read_input_tokens")) or 0
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
        within = _number(details.get("cached_tokens"), usage.get("cachedContentTokenCount")) or 0
        if taken is not None:
            self.free = (within or beside) if self._is_cached_free else 0
            made = _number(usage.get("cache_creation_input_tokens")) or 0
            self.input = taken + made + beside - self.free
        given = _number(*map(usage.get, ("completion_tokens", "output_tokens", "candidatesTokenCount")))
        if given is not None:
            self.output = given + (_number(usage.get("thoughtsTokenCount")) or 0)


class Refusal(NamedTuple):
    """What a refusal says."""

    wait: float | None
    """Seconds to wait; ``None`` where it does not say."""
    is_final: bool
    """No wait helps."""
    kind: Kind | None
    """Which budget has no room, in the words of the refusal."""


_WORDS: dict[str, Kind] = {"input": "input", "output": "output", "token": "tokens", "request": "requests"}
_LONGEST = 2.0**31 / 1000


def _wait_of(headers: Mapping[str, str]) -> float:
    hints = parse_hints(headers)
    return (hints.delay or 0) / NANOS if "after" in (hints.source or "") else 0


def refusal_of(status: int, headers: Mapping[str, str], text: str, is_anthropic: bool) -> Refusal:
    """Reads a refusal: headers first, then what its body says."""
    wait = _wait_of(headers)
    if not wait:
        match = re.search(r'(?:try again in |"retryDelay":\s*")([\dhm.]*\d[\d.]*m?s)\b', text)
        wait = _wait_of({"retry-after": match[1]}) if match else 0
    never = r'insufficient_quota|Request too large|"limit":\s*"?0\b|limit: 0\b'
    is_over = re.search(never, text) is not None or (
        is_anthropic and status == 429 and "retry-after" not in headers
    )
    is_final = headers.get("x-should-retry") == "false" or (status < 500 and is_over)
    # "This request would exceed … 10,000 input tokens": the first word is not the budget. A rise that is too
    # steep ("usage increase rate for input tokens") says no word of a level.
    word = re.search(r"(?:out|in)put(?=.token)|token|request(?!.would|_id)", text, re.IGNORECASE)
    kind = _WORDS.get(word[0].lower()) if word and "increase rate" not in text else None
    return Refusal(min(wait, _LONGEST) or None, is_final, kind)

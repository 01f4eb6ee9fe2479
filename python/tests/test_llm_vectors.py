"""The cases of ``tests/vectors/llm.jsonl``, which every host plays: bodies, refusals, requests. Those of
``llm-names.jsonl``: the scopes of accounts and models, which a group's hosts share.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autothrottle import ThreadThrottle, llm
from autothrottle.llm._answer import Body, refusal_of
from autothrottle.llm._request import asked_of
from autothrottle.testing import FakeClock

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "llm.jsonl"


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line] if file.exists() else []


CASES, NAMES = lines(VECTORS), lines(VECTORS.with_name("llm-names.jsonl"))


def text_of(parts: Any) -> bytes:
    text = parts if isinstance(parts, str) else "".join(text * times for text, times in parts)
    return text.encode("utf-8", "surrogatepass")


def body_of(case: Any) -> dict[str, Any]:
    body = Body(case["stream"], case["cachedFree"])
    told = text_of(case["body"])
    # Pieces of a prime length, and one whole where it is long.
    piece = 65_537 if len(told) > 10_000 else 7
    for at in range(0, len(told), piece):
        body.hear(told[at : at + piece])
    body.end()
    seen = {"input": body.input, "free": body.free, "output": body.output, "written": body.written}
    return {**seen, "broken": body.is_broken, "whole": body.is_whole}


def refusal(case: Any) -> dict[str, Any]:
    headers = {"x-should-retry": "false"} if case["toldFinal"] else {}
    if case["retryAfter"]:
        headers["retry-after"] = f"{case['waitMs'] / 1000:g}"
    elif case["waitMs"]:
        headers["retry-after-ms"] = str(case["waitMs"])
    read = refusal_of(case["status"], headers, text_of(case["refusal"]), case["anthropic"])
    wait = None if read.wait is None else round(read.wait * 1000, 6)
    return {"waitMs": wait, "final": read.is_final, "kind": read.kind}


def request(case: Any) -> dict[str, Any]:
    texts: list[str] = []

    def count(text: str, _: str) -> float:
        texts.append(text)
        return 0

    body = text_of(case["request"])
    if "formModel" in case:
        head = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
        body = head + case["formModel"].encode() + b"\r\n--x--"
    url = f"https://{case['host']}{case['path']}"
    is_counted = "texts" in case["is"]
    asked = asked_of(url, case["method"], body, case.get("vendor"), count if is_counted else None)
    read = {
        "vendor": asked.vendor,
        "model": asked.model,
        "characters": asked.characters,
        "bytes": asked.size,
        "tokens": asked.tokens,
        "bound": asked.bound,
        "uncounted": asked.is_uncounted,
    }
    return {**read, "texts": texts} if is_counted else read


@pytest.mark.skipif(not CASES, reason="an sdist has no vectors")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_is_read_as_it_says(case: Any) -> None:
    read = body_of if "body" in case else refusal if "refusal" in case else request
    assert read(case) == case["is"]


@pytest.mark.skipif(not NAMES, reason="an sdist has no vectors")
@pytest.mark.parametrize("case", NAMES, ids=[case["name"] for case in NAMES])
def test_the_scopes_of_an_account_and_a_model(case: Any) -> None:
    httpx = pytest.importorskip("httpx")
    throttle = ThreadThrottle(clock=FakeClock(), warnings=False)
    inner = httpx.MockTransport(lambda _: httpx.Response(200, json={}))
    client = httpx.Client(transport=llm.transport(throttle, inner, vendor=case["vendor"]))
    headers = {name: value.encode("latin-1") for name, value in case["headers"].items()}
    client.post("https://h/v1/messages", json={"model": case["model"], "messages": []}, headers=headers)
    scopes = [name for name in throttle.stats().scopes if name.endswith("#requests")]
    assert scopes == [f"llm:h/{case['is']}#requests"]

"""The cases of ``tests/vectors/llm-budgets.jsonl``: what budgets plan, charge, correct and learn."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autothrottle import ThreadThrottle
from autothrottle._permit import Wait
from autothrottle.llm._answer import ReportedLimit
from autothrottle.llm._budgets import BudgetOptions, Budgets
from autothrottle.llm._request import Asked
from autothrottle.testing import FakeClock

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "llm-budgets.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()] if VECTORS.exists() else []


def entered(throttle: Any, scopes: dict[str, float]) -> Any:
    """A permit of these scopes; a call of a case leaves at once."""
    try:
        throttle._enter("https://h/", scopes, Wait()).send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError("it waits")


def played(case: Any) -> list[dict[str, Any]]:
    clock = FakeClock()
    throttle: Any = ThreadThrottle(clock=clock, jitter=False, warnings=False)
    options = BudgetOptions(
        headroom=case.get("headroom", 0.98),
        is_max=case.get("isMax"),
        is_counted=case.get("isCounted", False),
        concurrency=16,
    )
    budgets = Budgets(throttle, "m", case["vendor"], case.get("limit", {}), options)
    calls: dict[str, Any] = {}
    seen = []
    for step in case["steps"]:
        clock.jump(step["at"] / 1000 - clock.seconds)
        made: dict[str, Any] = {}
        if "begin" in step:
            asked = Asked(
                case["vendor"],
                "h",
                "m",
                characters=step["characters"],
                size=step["bytes"],
                tokens=step["tokens"],
                bound=step["bound"],
            )
            plan = budgets.plan(asked)
            made["costs"] = {name[2:]: cost for name, cost in plan.scopes.items()}
            permit = entered(throttle, plan.scopes)
            calls[step["begin"]] = budgets.begin(asked, permit, plan)
            permit.settle()
        if "report" in step:
            limits = [
                ReportedLimit(kind, limit, left, per / 1000) for kind, limit, left, per in step["limits"]
            ]
            wait = step.get("wait")
            budgets.on_limits(calls[step["report"]], limits, None if wait is None else wait / 1000)
        if "answered" in step:
            budgets.answered(calls[step["answered"]], step.get("isStream", False))
        if "wrote" in step:
            budgets.wrote(calls[step["wrote"]], step["input"], step["written"])
        if "refused" in step:
            wait = step["wait"]
            budgets.refused(calls[step["refused"]], step["kind"], None if wait is None else wait / 1000)
        if "gone" in step:
            budgets.gone(calls[step["gone"]], step["wasSent"])
        if "ended" in step:
            body: Any = SimpleNamespace(
                input=step["input"],
                free=step.get("free", 0),
                output=step["output"],
                written=step.get("written", 0),
            )
            call = calls[step["ended"]]
            made["estimated"] = budgets.ended(call, body, step.get("isWhole", True))
        made["waits"] = {}
        for kind, cost in case.get("asks", {}).items():
            at = throttle.peek(scopes=f"m#{kind}", cost=cost).at
            made["waits"][kind] = (
                (at - clock.seconds) * 1000 if at is not None and math.isfinite(at) else None
            )
        made["known"] = [budgets.is_known, budgets.needs_usage]
        seen.append(made)
    return seen


@pytest.mark.skipif(not CASES, reason="an sdist has no vectors")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_case_is_played_as_it_says(case: Any) -> None:
    for at, (step, seen) in enumerate(zip(case["steps"], played(case), strict=True)):
        want = step["is"]
        assert seen.get("costs") == (want.get("costs") and pytest.approx(want["costs"])), f"step {at}"
        assert seen["waits"] == pytest.approx(want["waits"], abs=0.1), f"step {at}"
        assert (seen["known"], seen.get("estimated")) == (want["known"], want.get("estimated")), f"step {at}"

"""``docs/python-api.md`` is what the sources say, and has every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "api.py"
spec = importlib.util.spec_from_file_location("api", SCRIPT)
assert spec is not None
assert spec.loader is not None
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)

# Names of types that another page or a signature explains.
ELSEWHERE = {
    # settings.md has each option.
    *("AutoThrottleOptions", "BackoffOptions", "QuotaOptions", "RampupOptions", "RateOptions"),
    *("RetryOptions", "RobotsOptions", "ScopeOptions", "ThrottleOptions"),
    # A list of words.
    *("Reason", "Event"),
}


def test_the_page_is_what_the_sources_say() -> None:
    assert api.PAGE.read_text(encoding="utf-8") == api.api(), "python python/scripts/api.py writes it anew"


def test_every_public_name_is_on_the_page() -> None:
    page = api.PAGE.read_text(encoding="utf-8")
    names = api.public_names()
    assert len(names) > 60
    rows = {
        name for row in re.findall(r"^\| `(.*?)`", page, re.MULTILINE) for name in re.findall(r"\w+", row)
    }
    assert names - rows - ELSEWHERE == set()

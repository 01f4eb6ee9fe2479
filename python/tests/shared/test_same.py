"""What all languages have to say alike: the scripts of the store. What is said between processes is the
machine's, which is one.

The trap is one that drifts: processes of all kinds are in one group.
"""

from __future__ import annotations

import re
from pathlib import Path

from autothrottle._shared import scripts

ROOT = Path(__file__).resolve().parents[3]


def test_the_scripts_of_python_and_rust_are_those_of_javascript() -> None:
    source = (ROOT / "js/shared/redis/scripts.ts").read_text(encoding="utf-8")
    found = re.findall(
        r"^(?:export )?const (\w+) = (?:\(place: number\) => )?`([^`]*)`", source, re.MULTILINE
    )
    texts = dict(found)

    def whole(text: str) -> str:
        placed = re.sub(
            r"\$\{(\w+)\((\d)\)\}", lambda call: texts[call[1]].replace("${place}", call[2]), text
        )
        return re.sub(r"\$\{(\w+)\}", lambda name: whole(texts[name[1]]), placed)

    assert whole(texts["TELL"]) == scripts.TELL
    for name in ("COMPETE", "RENEW", "SEND", "RELEASE"):
        assert getattr(scripts, name) == whole(texts[name]), name
        rust = ROOT / f"tower/src/scripts/{name.lower()}.lua"
        assert rust.read_text(encoding="utf-8").strip() == whole(texts[name]).strip(), rust.name

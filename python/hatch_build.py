"""Refuses to build a package without its engine, which would fail at the first throttle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ENGINE = "src/autothrottle/engine.wasm"
REMEDY = (
    "the engine is not built: run `npm ci && node scripts/component.mjs` at the top of the repository first "
    "(needs Node 20, and Rust with the target wasm32-unknown-unknown)"
)


class EngineIsThere(BuildHookInterface[Any]):
    """Looks for the engine before anything is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel, an sdist or an editable install."""
        if not (Path(self.root) / ENGINE).is_file():
            raise FileNotFoundError(f"{ENGINE} is missing: {REMEDY}")

"""The package is built with its engine, or not at all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent.parent


def test_without_the_engine_nothing_is_built(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", HERE / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.EngineIsThere(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    with pytest.raises(FileNotFoundError, match=r"run `npm ci && node scripts/component\.mjs`"):
        hook.initialize("standard", {})
    engine = tmp_path / module.ENGINE
    engine.parent.mkdir(parents=True)
    engine.touch()
    hook.initialize("standard", {})

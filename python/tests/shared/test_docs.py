"""The code in docs/shared.md, as it stands there, with a Redis of the test's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .servers import BINARY, RedisServer

ROOT = Path(__file__).resolve().parents[3]
IS_ALL = os.environ.get("TEST_ALL") == "true"
PAGE = (ROOT / "docs" / "shared.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(BINARY is None and not IS_ALL, reason="no redis-server")


def test_the_blocks_run() -> None:
    assert BLOCKS
    store = RedisServer()
    try:
        for block in BLOCKS:
            assert "redis.Redis()" in block
            program = block.replace("redis.Redis()", f"redis.Redis(port={store.port})")
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
            command = [sys.executable, "-W", "error", "-c", program]
            subprocess.run(command, env=environment, check=True, timeout=60)
    finally:
        store.stop()

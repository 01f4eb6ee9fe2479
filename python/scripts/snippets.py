"""Runs the examples of the README as they stand, against a server on this machine.

Each block is a program of its own; its host is replaced by the server's.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests"))

from helpers import server  # noqa: E402

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Runs them all, also after one has failed."""
    blocks = BLOCK.findall((HERE / "README.md").read_text(encoding="utf-8"))
    failed = 0
    with server() as told, tempfile.TemporaryDirectory() as folder:
        host = told.url.split("/")[2]
        for block in blocks:
            text = block.replace("https://api.example", f"http://{host}").replace("api.example", host)
            program = Path(folder, "example.py")
            program.write_text(text, encoding="utf-8")
            command = [sys.executable, "-W", "error", str(program)]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
            )
            if done.returncode != 0:
                failed += 1
                print(f"{block}\n{done.stdout}{done.stderr}", file=sys.stderr)
    if failed or not blocks:
        raise SystemExit(f"{failed} of {len(blocks)} examples failed")
    print(f"    {len(blocks)} examples ran")


if __name__ == "__main__":
    main()

"""Everything about the Python package: ``python python/scripts/check.py``. Does its own set-up.

Makes ``python/.venv`` from the committed versions, and builds the sdist and from it the wheel. Its native
module goes into the sources, and ruff, mypy and pytest look at them. Last it looks at the packages as the
package index would, installs the wheel in an empty environment and runs the README there. ``--oldest`` runs
the tests with the oldest versions that are allowed.

The environment is made anew when the committed versions change. Needs only Python and Rust.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
REQUIREMENTS = HERE / "requirements"
NEWEST = REQUIREMENTS / "newest.txt"
OLDEST = REQUIREMENTS / "oldest.txt"
SOURCE = HERE / "src" / "autothrottle"
DIST = HERE / "dist"
CLIENTS = "httpx,aiohttp,crawlee,llm,redis,requests,robots"
TOOLS = (
    *("aiohttp", "anthropic", "build", "crawlee", "maturin", "httpx", "httpx2", "import-linter", "mypy"),
    *("openai", "opentelemetry-sdk", "pytest", "redis", "requests", "ruff", "scrapy", "twine"),
    *("types-requests", "typing_extensions"),
)
"""The packages that the checks need; which versions, the files in ``requirements`` say (as constraints)."""
TESTED = ("aiohttp", "httpx", "pytest", "redis", "requests", "scrapy", "typing_extensions")
COMPILED = {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(HERE.parent / "target"))}
LOCKED = "# The newest of everything that is allowed. Written by: python scripts/check.py --lock\n"


def step(name: str, *command: object, **environment: str) -> None:
    """Runs a program to its end and says how long it took."""
    start = time.monotonic()
    usual = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=HERE, env={**os.environ, **usual, **environment}, check=False)
    print(f"    {name}: {time.monotonic() - start:.1f} s", flush=True)
    if done.returncode != 0:
        raise SystemExit(f"{name}: exit code {done.returncode}")


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    is_windows = sys.platform == "win32"
    return environment / ("Scripts/python.exe" if is_windows else "bin/python")


def beside(python: Path, program: str) -> Path:
    """A program of the same environment."""
    return python.with_name(program + python.suffix)


def install(python: Path, constraints: Path, *packages: str) -> None:
    """Installs packages in the versions that are committed."""
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", constraints]
    step(f"install into {python.parent.parent.name}", *pip, *packages)


def environment_of(name: str, constraints: Path, packages: Sequence[str]) -> Path:
    """An environment with these packages, made anew when what it is made of has changed."""
    folder = HERE / name
    made_of = f"{sys.version} {' '.join(packages)} {constraints.read_text()}"
    mark, digest = folder / "made-of", hashlib.sha256(made_of.encode()).hexdigest()
    if not mark.exists() or mark.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install(python_of(folder), constraints, *packages)
        mark.write_text(digest)
    return python_of(folder)


def lock() -> None:
    """Writes the newest versions that there are."""
    NEWEST.write_text(LOCKED)
    python = environment_of(".venv", NEWEST, TOOLS)
    freeze = [str(python), "-m", "pip", "freeze"]
    frozen = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    NEWEST.write_text(LOCKED + "".join(f"{line}\n" for line in frozen.splitlines() if "==" in line))


def native() -> None:
    """Compiles the native module into the sources, where tests and type checks find it."""
    crate = ["--package", "autothrottle-python", "--profile", "python", "--locked", "--quiet"]
    step("native module", "cargo", "build", *crate, **COMPILED)
    made, name = {
        "win32": ("autothrottle_python.dll", "_native.pyd"),
        "darwin": ("libautothrottle_python.dylib", "_native.abi3.so"),
    }.get(sys.platform, ("libautothrottle_python.so", "_native.abi3.so"))
    put(name, Path(COMPILED["CARGO_TARGET_DIR"], "python", made).read_bytes())


def put(name: str, module: bytes) -> None:
    """Writes the native module. A file of its own each time: a process that has the old one open keeps it."""
    (SOURCE / name).unlink(missing_ok=True)
    (SOURCE / name).write_bytes(module)


def package(python: Path) -> None:
    """Builds what is published; the native module of the wheel is what is tested."""
    shutil.rmtree(DIST, ignore_errors=True)
    # Files in an sdist have no times: cargo would take a module of older sources for theirs.
    for made in Path(COMPILED["CARGO_TARGET_DIR"], "python", ".fingerprint").glob("autothrottle*"):
        shutil.rmtree(made)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    step("build", python, "-m", "build", "--no-isolation", "--outdir", DIST, PATH=path, **COMPILED)
    with zipfile.ZipFile(next(DIST.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.startswith("autothrottle/_native."))
        put(name.split("/")[1], wheel.read(name))


def published(python: Path) -> None:
    """Uses the packages in an empty environment, as a new user would."""
    step("twine", python, "-m", "twine", "check", "--strict", *DIST.iterdir())
    with zipfile.ZipFile(next(DIST.glob("*.whl"))) as wheel:
        files = {name.rpartition("/")[2]: name for name in wheel.namelist()}
        described = wheel.read(files["METADATA"]).decode().partition("\n\n")[2]
    # A crate's README of the same name took its place in the sdist that the wheel is made from.
    if described.strip() != (HERE / "README.md").read_text(encoding="utf-8").strip():
        raise SystemExit("the wheel's description is not python/README.md")
    if "NOTICE-THIRD-PARTY.md" not in files:
        raise SystemExit("the wheel lacks the licences of what is compiled in")
    folder = HERE / ".venv-empty"
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    install(python_of(folder), NEWEST, f"{next(DIST.glob('*.whl'))}[{CLIENTS}]")
    step("the README's examples", python_of(folder), __file__, "--readme")


def readme() -> None:
    """Runs each example of the README as a program, its host replaced by a server on this machine."""
    sys.path.insert(0, str(HERE / "tests"))
    from helpers import server

    text = (HERE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    failed = 0
    with server() as told, tempfile.TemporaryDirectory() as folder:
        host = told.url.split("/")[2]
        program = Path(folder, "example.py")
        for block in blocks:
            here = block.replace("https://api.example", f"http://{host}").replace("api.example", host)
            program.write_text(here, encoding="utf-8")
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


def main() -> None:
    """Runs the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", action="store_true", help="write the newest versions that there are")
    parser.add_argument("--quick", action="store_true", help="leave the package out")
    parser.add_argument("--prepare", action="store_true", help="only set up and build")
    parser.add_argument("--prepared", action="store_true", help="what is left after --prepare")
    parser.add_argument("--oldest", action="store_true", help="only the tests, with the oldest versions")
    parser.add_argument("--readme", action="store_true", help="only the README's examples, with this Python")
    arguments = parser.parse_args()
    if arguments.readme:
        readme()
        return
    if arguments.lock:
        lock()
        return
    if arguments.oldest:
        native()
        oldest = environment_of(".venv-oldest", OLDEST, TESTED)
        step("pytest, the oldest versions", oldest, "-m", "pytest")
        return
    python = environment_of(".venv", NEWEST, TOOLS)
    if arguments.quick:
        native()
    elif not arguments.prepared:
        package(python)
    if arguments.prepare:
        return
    step("ruff", python, "-m", "ruff", "check", "--quiet", ".")
    step("ruff format", python, "-m", "ruff", "format", "--check", "--quiet", ".")
    step("imports", beside(python, "lint-imports"), "--no-cache", "--no-logo", PYTHONPATH="src")
    step("mypy", python, "-m", "mypy", "--no-error-summary")
    scrapys = sorted((HERE / "tests" / "with_scrapy").glob("*.py"))
    step("mypy, Scrapy's tests", python, "-m", "mypy", "--no-error-summary", *scrapys)
    step("pytest", python, "-m", "pytest")
    if not arguments.quick:
        published(python)


if __name__ == "__main__":
    main()

"""Builds the package's wheels for every platform on this one: ``python python/scripts/wheels.py``.

maturin compiles with zig as the linker, for which neither another machine nor an SDK is needed. Names after
the command choose some: ``wheels.py windows-x86_64``. The wheels lie in ``python/dist/wheels``; a table says
what each weighs, and what runs here is installed in an empty environment and asked for a permit.

The workflow ``python.yml`` builds each one where it belongs and runs it (Windows' with Microsoft's linker,
which cannot be had here).
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import venv
import zipfile
from pathlib import Path

from check import COMPILED, HERE, NEWEST, environment_of, python_of, step

OUT = HERE / "dist" / "wheels"
ZIG = "ziglang==0.17.1"
MANYLINUX = "--zig --compatibility manylinux2014 --strip"
MUSLLINUX = "--zig --compatibility musllinux_1_2 --strip"
FREE = f"{MANYLINUX} --no-default-features -i python3.14t"
WHEELS = {
    "manylinux-x86_64": ("x86_64-unknown-linux-gnu", MANYLINUX),
    "manylinux-aarch64": ("aarch64-unknown-linux-gnu", MANYLINUX),
    "musllinux-x86_64": ("x86_64-unknown-linux-musl", MUSLLINUX),
    "musllinux-aarch64": ("aarch64-unknown-linux-musl", MUSLLINUX),
    "windows-x86_64": ("x86_64-pc-windows-gnu", "--zig --strip"),
    # Not stripped: that takes the signature away, and Apple's processors want one.
    "macos-arm64": ("aarch64-apple-darwin", "--zig"),
    "macos-x86_64": ("x86_64-apple-darwin", "--zig"),
    "free-threaded-x86_64": ("x86_64-unknown-linux-gnu", FREE),
    "free-threaded-aarch64": ("aarch64-unknown-linux-gnu", FREE),
}
"""A name of the workflow's, its target, and options of maturin."""
PROGRAM = (
    "from autothrottle import ThreadThrottle\n"
    "with ThreadThrottle().acquire('https://a.example/') as permit:\n"
    "    print('    a permit of', permit.sent_at >= 0 and permit.scopes)\n"
)


def build(python: Path, name: str) -> Path:
    """The wheel of one platform."""
    target, options = WHEELS[name]
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    step(f"{name}: rustup", "rustup", "target", "add", target)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    build = [python, "-m", "maturin", "build", "--locked", "--quiet", "--target", target, "--out", folder]
    step(name, *build, *options.split(), PATH=path, **COMPILED)
    return next(folder.glob("*.whl"))


def is_here(name: str) -> bool:
    """Whether the interpreter that runs this can load the wheel."""
    here = {"linux": "manylinux", "darwin": "macos", "win32": "windows"}[sys.platform]
    return name == f"{here}-{platform.machine()}" and platform.libc_ver()[0] != ""


def try_out(wheel: Path) -> None:
    """Installs it where neither Rust nor anything else is."""
    empty = HERE / ".venv-empty"
    shutil.rmtree(empty, ignore_errors=True)
    venv.create(empty, with_pip=True)
    step("install", python_of(empty), "-m", "pip", "install", "--quiet", wheel)
    step("run", python_of(empty), "-I", "-c", PROGRAM, PATH="")


def main() -> None:
    """Builds them one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *WHEELS], help="which, if not all")
    names = parser.parse_args().names or list(WHEELS)
    python = environment_of(".venv-wheels", NEWEST, ["maturin", ZIG])
    rows = []
    for name in names:
        wheel = build(python, name)
        if is_here(name):
            try_out(wheel)
        with zipfile.ZipFile(wheel) as files:
            module = max(files.infolist(), key=lambda file: file.file_size)
            installed = sum(file.file_size for file in files.infolist())
        tag = wheel.stem.split("-", 2)[2]
        sizes = [wheel.stat().st_size, module.file_size, installed]
        rows.append(f"| {name} | `{tag}` | {' | '.join(f'{size / 1e6:.2f}' for size in sizes)} |")
    print("| platform | tag | wheel, MB | module | installed |\n|---|---|---|---|---|", *rows, sep="\n")


if __name__ == "__main__":
    sys.dont_write_bytecode = True

    main()

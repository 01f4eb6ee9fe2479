"""Tests that need Scrapy run where it is. Warnings of its own and Twisted's are not ours to fail for."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HAS_SCRAPY = importlib.util.find_spec("scrapy") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return None if HAS_SCRAPY else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "with_scrapy" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("default"))

"""Scrapy's requests leave when the engine says so.

.. code-block:: python

    # settings.py
    DOWNLOADER = "autothrottle.scrapy.Downloader"
    THROTTLING_SCOPES = {"api.example": {"rampup": True}}

All settings of Scrapy's draft on throttling and of AutoThrottle are read by their own names: docs/scrapy.md.
"""

from __future__ import annotations

from ._downloader import Downloader
from ._managers import (
    Backoffs,
    ScopeAnswer,
    Scopes,
    ThrottlingManager,
    ThrottlingManagerProtocol,
    ThrottlingScopeManager,
    ThrottlingScopeManagerProtocol,
    add_scope,
    scope_cache,
    update_scope_backoff,
)

__all__ = [
    "Backoffs",
    "Downloader",
    "ScopeAnswer",
    "Scopes",
    "ThrottlingManager",
    "ThrottlingManagerProtocol",
    "ThrottlingScopeManager",
    "ThrottlingScopeManagerProtocol",
    "add_scope",
    "scope_cache",
    "update_scope_backoff",
]

"""Failing fast: hosts that are down, and stalls that somebody hears of."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

from autothrottle import ScopeDownError
from autothrottle.testing import FakeClock

from .helpers import plain

URL = "https://example.com/"

"""What was learned, kept in JOBDIR: a crawl that goes on goes on at its pace.

The trap is a file that was cut short: it is replaced as a whole, and one that makes no sense costs the
learned pace, not the crawl.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SnapshotError

if TYPE_CHECKING:
    from ._desk import Desk

logger = logging.getLogger(__name__)

_NAME = "throttling.json"


def restore(desk: Desk, jobdir: str) -> bool:
    """Goes on where the job was; False if there is no state to go on with."""
    path = Path(jobdir, _NAME)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    try:
        desk.engine.restore(json.loads(text), desk.clock.now(), desk.clock.wall())
    except (ValueError, RecursionError, SnapshotError) as error:
        logger.warning("%s is no snapshot, so all paces are learned anew: %s", path, error)
        return False
    return True


def save(desk: Desk, jobdir: str) -> None:
    """Keeps what was learned."""
    path = Path(jobdir, _NAME)
    snapshot = desk.engine.snapshot(desk.clock.now(), desk.clock.wall())
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(snapshot), encoding="utf-8")
    os.replace(new, path)

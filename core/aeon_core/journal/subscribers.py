"""Those who follow a run: they get each line after it was written, and cannot harm the run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from aeon_core.journal.writer import LineListener

logger = logging.getLogger("aeon")


def as_dicts(on_record: Callable[[dict[str, Any]], None] | None) -> LineListener | None:
    """Return a listener that hands each line on as a dict."""
    return None if on_record is None else lambda line: on_record(json.loads(line))


def fan_out(listeners: Iterable[LineListener | None]) -> LineListener | None:
    """Return one listener for all of them, None where there are none; one that fails is logged and passed over."""
    present = [listener for listener in listeners if listener is not None]
    if not present:
        return None

    def listen(line: bytes) -> None:
        for listener in present:
            try:
                listener(line)
            except Exception:
                logger.exception("a record listener failed; the run goes on")

    return listen

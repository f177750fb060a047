"""What Aeon logs, on stderr where a person asks for it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def diagnostics(debug: bool) -> Iterator[None]:
    """Send what Aeon logs to stderr with --debug, else nowhere: what a person needs stands in the records."""
    logger = logging.getLogger("aeon")
    handler = logging.StreamHandler() if debug else logging.NullHandler()
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate

"""What Aeon logs, on stderr where a person asks for it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


def diagnostics(debug: bool) -> contextlib.AbstractContextManager[None]:
    """Send what Aeon logs to stderr with --debug, else nowhere: what a person needs stands in the records."""
    return logged_to(logging.StreamHandler() if debug else logging.NullHandler())


@contextlib.contextmanager
def logged_to(handler: logging.Handler) -> Iterator[None]:
    """Send what Aeon logs meanwhile to a handler, and nowhere else."""
    logger = logging.getLogger("aeon")
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate

"""What Aeon logs, on stderr where a person asks for it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator


def diagnostics(debug: bool) -> contextlib.AbstractContextManager[None]:
    """Send what Aeon logs to stderr with --debug, else nowhere: what users need is in the records."""
    return logged_to(logging.StreamHandler() if debug else logging.NullHandler())


class _Redacted(logging.Formatter):
    """Puts tokens in place of secrets in a line and in the traceback that comes with it."""

    def __init__(self, inner: logging.Formatter | None) -> None:
        super().__init__()
        self._inner = inner if inner is not None else logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        from aeon_core.redaction import redact_text

        return redact_text(self._inner.format(record))


@contextlib.contextmanager
def logged_to(handler: logging.Handler) -> Iterator[None]:
    """Send what Aeon logs meanwhile to a handler, without secrets, and nowhere else."""
    logger = logging.getLogger("aeon")
    handler.setFormatter(_Redacted(handler.formatter))
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate

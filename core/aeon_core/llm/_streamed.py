"""What putting a streamed reply together has in common: parts come as events, and there is an end that must come."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from aeon_core.errors import AeonError, LLMError
from aeon_core.json_safe import json_safe
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm.base import Usage
from aeon_core.llm.errors import unusable
from aeon_core.llm.wire import Deltas

logger = logging.getLogger("aeon")


class StreamedReply(ABC):
    """The parts that have come so far. A subclass says how an event is taken, and what document they make."""

    def __init__(self, place: Endpoint) -> None:
        self._place = place
        self._stop: str | None = None

    def read(self, events: Iterable[Any], deltas: Deltas) -> dict[str, Any]:
        """Return the whole reply, as if unstreamed. Raises LLMError, retryable, for one that is cut before its end.

        The stop reason is the end; what breaks after it costs at most the usage.
        """
        try:
            for event in events:
                self._take(json_safe(event), deltas)
        except AeonError:
            raise
        except Exception as error:
            if self._stop is None:
                raise self._failed(error) from None
            logger.warning("%s: the stream broke after its reply: %s", self._place.model, type(error).__name__)
        if self._stop is None:
            raise self._unusable("the stream ended before its end event")
        return self._whole()

    def _unusable(self, why: str) -> LLMError:
        return unusable(self._place, why, self._tokens())

    @abstractmethod
    def _take(self, event: Any, deltas: Deltas) -> None:
        """Take one event. Raises LLMError for one that is none, or that tells an error."""

    @abstractmethod
    def _whole(self) -> dict[str, Any]:
        """Return the document that the parts make."""

    @abstractmethod
    def _tokens(self) -> Usage | None:
        """Return the usage that has come so far."""

    @abstractmethod
    def _failed(self, error: Exception) -> LLMError:
        """Return the LLMError for what the SDK raised."""

"""Shares a provider's rate limit among processes: one that has to wait holds back all others that use the model.

They share a small file in the runs directory, replaced as a whole: the seconds to wait since it was written. Both times
come from the file system, so that machines with different clocks agree.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import tempfile
import threading
from pathlib import Path

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ModelChain
from aeon_core.llm.errors import MAX_WAIT
from aeon_core.regular_file import read_start, replace_file

DEFAULT_WAIT = 1.0
"""Seconds that all wait if a provider refuses a request because of the rate without saying for how long."""
SPREAD = 0.25
"""Seconds over which waiting processes return at random and not all at once; longer after a long wait."""
_TOO_MANY = (429, 529)


class RateGate:
    """The time until which no process calls one model at one server, kept in `directory`.

    Nothing here raises: if the file cannot be written or read, each run waits on its own, as it does anyway.
    """

    def __init__(self, directory: Path, model: str, base_url: str | None = None) -> None:
        readable = re.sub(r"[^a-z0-9]+", "-", model.lower())[:40].strip("-")
        digest = hashlib.sha256(f"{model}\n{base_url or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
        self.path: Path = directory / f".rate-{readable}-{digest}"
        self._passed = -1

    def hold(self, seconds: float) -> None:
        """Make every process wait this many seconds from now, at most 60; a longer wait stays."""
        seconds = min(max(seconds, 0.0), MAX_WAIT)
        if seconds <= self.remaining():
            return
        with contextlib.suppress(OSError):
            replace_file(self.path, f"{seconds:.3f}".encode(), durable=False)

    def remaining(self) -> float:
        """Return the seconds left to wait; 0 if there is no wait."""
        try:
            stat = self.path.stat()
            if stat.st_mtime_ns == self._passed:
                return 0.0
            seconds = min(float(read_start(self.path, 100)), MAX_WAIT)
            left = seconds - max(0.0, self._now() - stat.st_mtime)
        except (OSError, ValueError):
            return 0.0
        if left > 0:
            return left
        # From now on, checking the file once is enough.
        self._passed = stat.st_mtime_ns
        return 0.0

    def _now(self) -> float:
        """Return the time by the clock that stamps the directory's files. Raises OSError."""
        with tempfile.TemporaryFile(dir=self.path.parent) as probe:
            probe.write(b"?")
            probe.flush()
            return os.fstat(probe.fileno()).st_mtime


class RateLimitedModel(LLMAdapter):
    """A model that is not called while the provider makes any run of the batch wait. The reply's notices say so."""

    def __init__(self, model: LLMAdapter, gate: RateGate) -> None:
        self.model: str = model.model
        self.simulated: bool = model.simulated
        self.context_window: int | None = model.context_window
        self._inner = model
        self._gate = gate
        self._cut = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply, requested once no process has to wait. Raises LLMError, also if a wait is cut
        short.
        """
        waited = self._wait()
        try:
            reply = self._inner.complete(request)
        except LLMError as error:
            if (seconds := _requested_wait(error)) is not None:
                self._gate.hold(seconds)
                # Other runs used up the provider's rate: this run waits as for a server that is starting.
                error.context["unavailable"] = True
            raise
        if not waited:
            return reply
        notice = f"{self.model}: waited {waited:.1f} s because the provider limits the rate of this batch's requests"
        return reply.model_copy(update={"notices": [notice, *reply.notices]})

    def check(self) -> None:
        """Check the model. Raises ModelUnavailableError."""
        self._inner.check()

    def close(self) -> None:
        """Close the model and cut a wait short."""
        cut, self._cut = self._cut, threading.Event()
        cut.set()
        self._inner.close()

    def _wait(self) -> float:
        """Wait until no process has to; return the seconds waited."""
        cut, waited = self._cut, 0.0
        while left := self._gate.remaining():
            left += random.uniform(0, max(SPREAD, left / 2))
            if cut.wait(left):
                raise LLMError(f"{self.model}: the call was interrupted because the adapter was closed")
            waited += left
        return waited


def rate_limited(model: LLMAdapter, directory: Path, base_url: str | None) -> LLMAdapter:
    """Return the model, or each model of a chain, held back by the gates in `directory`; a simulated one unchanged."""
    if isinstance(model, ModelChain):
        judge = None if model.judge is None else rate_limited(model.judge, directory, base_url)
        agents = {agent: rate_limited(one, directory, base_url) for agent, one in model.agents.items()}
        return ModelChain([rate_limited(one, directory, base_url) for one in model.models], judge, agents)
    return model if model.simulated else RateLimitedModel(model, RateGate(directory, model.model, base_url))


def _requested_wait(error: LLMError) -> float | None:
    """Return the seconds for which the provider wants no requests; None if the error is not about the rate."""
    wish = error.retry_after
    if isinstance(wish, int | float) and wish > 0:
        return float(wish)
    return DEFAULT_WAIT if error.status_code in _TOO_MANY else None

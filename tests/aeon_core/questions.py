"""A run that waits with a question, as its journal tells it."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from aeon_core.approval_inbox import Inbox, inbox_of
from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.config.schema import RunConfig
from aeon_core.journal.records import ApprovalPoint, ApprovalRecord, RunStarted
from aeon_core.journal.writer import JournalWriter
from tests.waiting import wait_until

CALL = {"tool_name": "erase", "arguments": {"path": "notes.txt"}, "description": "erase it", "reason": "a rule"}


class Asking:
    """The process that writes a journal and asks; `end` lets go of the journal, as the end of a process does."""

    def __init__(self, path: Path, workflow: dict[str, Any] | None = None) -> None:
        self.path = path
        self.writer = JournalWriter(path, path.stem)
        self._asked: ApprovalRequest | None = None
        told: dict[str, Any] = {"config": RunConfig().model_dump(mode="json"), "workflow": workflow}
        self.writer.append(
            RunStarted(task="clean up", model="simulated:default", tools=[], versions={}, memory={}, **told)
        )

    def ask(
        self, point: ApprovalPoint, subject: dict[str, Any] | None = None, step_id: str | None = None
    ) -> ApprovalRequest:
        told = CALL if subject is None else subject
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        self._asked = request = ApprovalRequest(
            point=point, pass_number=1, step_id=step_id, subject=told, digest=digest
        )
        self.writer.append(ApprovalRecord(state="asked", **request.model_dump()))
        return request

    def decide(self, decision: ApprovalDecision) -> None:
        assert self._asked is not None
        asked = self._asked.model_dump(exclude={"subject"})
        self.writer.append(ApprovalRecord(state="decided", **asked, **decision.model_dump()))

    def end(self) -> None:
        self.writer.close()


class Asked:
    """A run that waits with a question, in this process; what it hears is decided at once."""

    def __init__(self, path: Path, workflow: dict[str, Any] | None = None) -> None:
        self.asking = Asking(path, workflow)
        self.heard: list[Any] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def ask(self, request: ApprovalRequest) -> None:
        self._thread = threading.Thread(target=self._wait, args=(request,))
        self._thread.start()
        wait_until(lambda: inbox_of(self.asking.path).exists())

    def _wait(self, request: ApprovalRequest) -> None:
        with Inbox(self.asking.path, request) as inbox:
            while not self._ended.wait(0.01):
                if (decision := inbox.take()) is not None:
                    inbox.settle(decision)
                    self.heard.append(decision)
                    break
        if self.heard:
            self.asking.decide(self.heard[0])

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self.asking.end()

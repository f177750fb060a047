"""The history of one agent: roles in turn, and a result for every tool use, whatever happens in between (REQ-051)."""

from __future__ import annotations

from system2.converse import ConverseTurn, ToolResult, Turn, use_ids

SUMMARIZED = "[CONTEXT SUMMARIZED]"
"""Marks a history that was compressed, for the agent (REQ-055)."""
NOT_CARRIED_OUT = "not carried out: the orchestrator ended this part of the work before"


class Conversation:
    """What was said, and what is to be said next; the caller sends it.

    A turn of the user that is not sent yet holds the results of the last reply's tool uses first, then texts. What was
    left without a result is answered as not carried out when the next turn is asked for.
    """

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._results: dict[str, ToolResult] = {}
        self._texts: list[str] = []

    @property
    def turns(self) -> list[Turn]:
        """The turns that were sent and answered, oldest first; not to be changed."""
        return self._turns

    @property
    def open_uses(self) -> list[str]:
        """The ids of the last reply's tool uses that have no result yet."""
        return [use_id for use_id in self._last_uses() if use_id not in self._results]

    def say(self, text: str) -> None:
        """Have the user say something in the next turn."""
        self._texts.append(text)

    def answer(self, result: ToolResult) -> None:
        """Give a tool use of the last reply its result. Raises ValueError for any other, or a second result."""
        if result.tool_use_id not in self.open_uses:
            raise ValueError(f"{result.tool_use_id!r} is no open tool use; open are {self.open_uses}")
        self._results[result.tool_use_id] = result

    def outgoing(self) -> list[Turn]:
        """Return the conversation to send: the history and the user's next turn. Raises ValueError for an empty one."""
        for use_id in self.open_uses:
            self._results[use_id] = ToolResult(use_id, NOT_CARRIED_OUT, is_error=True)
        content = [self._results[use_id].block() for use_id in self._last_uses()]
        content += [{"text": text} for text in self._texts if text.strip()]
        if not content:
            raise ValueError("there is nothing to say to the agent")
        return [*self._turns, {"role": "user", "content": content}]

    def replied(self, turn: ConverseTurn) -> None:
        """Take the reply to what was outgoing."""
        self._turns = [*self.outgoing(), turn.raw_message]
        self._results, self._texts = {}, []

    def summarized(self, summary: str) -> None:
        """Put a summary in the place of all that was said; the task stays, and what was to be said besides results."""
        first = self._turns[0]["content"] if self._turns else []
        task = [block["text"] for block in first if "text" in block and SUMMARIZED not in block["text"]]
        kept = [text for text in self._texts if SUMMARIZED not in text and text not in task]
        self._turns, self._results = [], {}
        self._texts = [*task, f"{SUMMARIZED}\n\nWhat was said and done so far:\n\n{summary.strip()}", *kept]

    def _last_uses(self) -> list[str]:
        return use_ids(self._turns[-1]) if self._turns else []

"""What the step pane shows beyond the view: elided texts, quotes of the judge, the reply in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.screen import Screen

from aeon_core.journal.values import str_of
from aeon_core.journal.view.draft import STRUCTURED, Draft, read_draft
from aeon_core.journal.view.incremental import RecordOf
from aeon_core.journal.view.model import CallView, RunView
from aeon_core.judge.quote import find_quote
from aeon_tui.platform.background_tasks import LatestWorker
from aeon_widgets.call_rows import RowKey
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.reply_text import VerdictBlocks, draft_blocks
from aeon_widgets.step_text import StepDetail, step_detail
from aeon_widgets.text import Block

if TYPE_CHECKING:
    from aeon_tui.sessions.stream import Stream


class ReplyStream:
    """The part of a reply that has arrived; always empty for runs of other processes."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream
        self._version = 0
        self._text = ""
        self.draft: Draft | None = None
        """The content of a structured reply so far; None if there is none, or it cannot be parsed yet."""

    @property
    def is_new(self) -> bool:
        """Whether more has arrived since it was read."""
        return self._stream is not None and self._stream.version != self._version

    @property
    def tokens_per_second(self) -> float | None:
        """Its speed; None if unknown."""
        return self._stream.tokens_per_second if self._stream is not None else None

    def read(self) -> None:
        """Read what has arrived. A part that cannot be parsed leaves the previous state."""
        if self._stream is None:
            return
        self._version = self._stream.version
        text, before = self._stream.text, self._text
        self._text = text
        last = self.draft if text.startswith(before) and before else None
        structured = text and self._stream.purpose in STRUCTURED
        self.draft = (read_draft(self._stream.purpose, text) or last) if structured else None

    def blocks(self, key: RowKey | None, view: RunView) -> list[Block]:
        """Return what has arrived for the step or calls of a row; nothing if the reply belongs elsewhere."""
        stream = self._stream
        if stream is None or key is None or not self._text:
            return []
        if stream.step_id != (key.name if key.kind == "step" else None):
            return []
        if stream.purpose in STRUCTURED:
            return draft_blocks(stream.purpose, self.draft, view.requirements or [view.task])
        return [("", f"{self._text}▌")]


Take = Callable[[], None]


class StepDetailReader:
    """Holds the selected row with its long texts. `on_change` is called when they have been read."""

    def __init__(self, screen: Screen[None], on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._reading = LatestWorker(screen, "opened")
        self._wanted: tuple[RunView, int, RowKey | None] | None = None
        self._filled: StepDetail | None = None

    def filled(
        self, view: RunView, key: RowKey | None, calls: Sequence[CallView], record_of: RecordOf
    ) -> StepDetail | None:
        """Return the row's step or calls with long texts; None if the view has them, or until they are read."""
        found = step_detail(view, key, calls)
        if not found.lean:
            return None
        wanted = (view, view.last_seq, key)
        if self._wanted is None or self._wanted[0] is not view or self._wanted[1:] != wanted[1:]:
            self._wanted, self._filled = wanted, None

            def read() -> Take:
                filled = found.filled(record_of)
                return lambda: take(filled)

            def take(filled: StepDetail) -> None:
                if wanted is self._wanted:
                    self._filled = filled
                    self._on_change()

            self._reading.submit(read)
        return self._filled


class _Candidate(NamedTuple):
    key: RowKey
    opened: StepDetail


class QuoteFinder:
    """Looks for one quote at a time, on a thread. `show` is called with its row, `notify` with a message."""

    def __init__(
        self, screen: Screen[None], show: Callable[[RowKey, str], None], notify: Callable[[str], None]
    ) -> None:
        self._show, self._notify = show, notify
        self._looking = LatestWorker(screen, "quote")

    def find(self, verdict: VerdictBlocks, view: RunView, tree: PlanTree, record_of: RecordOf) -> None:
        """Look for a verdict's quote in the run's results."""
        if not verdict.quote:
            self._notify("The judge quotes nothing for this.")
            return
        candidates = list(_candidates(verdict.about, view, tree))
        others = {"the task": view.task, **{f"requirement {n}": each for n, each in enumerate(view.requirements, 1)}}

        def look() -> Take:
            for candidate in candidates:
                whole = candidate.opened.filled(record_of) if candidate.opened.lean else candidate.opened
                if any(find_quote(text, verdict.quote) for text in _texts(whole)):
                    return lambda: self._show(candidate.key, verdict.quote)
            named = next((name for name, text in others.items() if find_quote(text, verdict.quote)), None)
            message = f"These words are from {named}." if named else "No answer, output or step contains these words."
            return lambda: self._notify(message)

        self._looking.submit(look)


def _candidates(about: str, view: RunView, tree: PlanTree) -> Iterator[_Candidate]:
    """Yield the places where the quote may be, likeliest first: the last answer, then the steps."""
    answers = [_Candidate(key, step_detail(view, key, tree.calls_of(key))) for key in tree.answers]
    steps = [
        _Candidate(RowKey("step", step_id), step_detail(view, RowKey("step", step_id), [])) for step_id in view.steps
    ]
    yield from (*steps, *answers) if about in ("step", "plan") else (*answers, *steps)


def _texts(place: StepDetail) -> Iterator[str]:
    """Yield the texts of a step, or of the answer's last reply; outputs also with their values side by side."""
    if place.step is not None:
        yield place.step.description
        yield " ".join(_flat(place.step.output))
        yield place.step.tool or ""
        yield " ".join(_flat(place.step.arguments))
        yield from place.step.errors
    for call in reversed(place.calls):
        if call.response is not None:
            yield str_of(call.response.get("text"))
            return


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _flat(item)
    elif isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)

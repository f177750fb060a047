"""The selected step, opened: output, prompts, tool calls, repairs, changes, one tab each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive, var
from textual.widget import Widget

from aeon_core.journal.view.model import CallView, RunView, StepView, refinements_of
from aeon_widgets.call_rows import Activity, RowKey, call_label
from aeon_widgets.icons import ROW_ICONS, shown_status
from aeon_widgets.issues import calls_change_blocks, for_a_person, profile_blocks, step_change_blocks
from aeon_widgets.pane import Item, Pane, message, pane_css
from aeon_widgets.rendered_text import form_of
from aeon_widgets.step_text import (
    StepDetail,
    calls_output_blocks,
    output_blocks,
    pass_blocks,
    prompt_blocks,
    repair_blocks,
    step_detail,
    tool_blocks,
)
from aeon_widgets.text import GAP, Block, one_line, readable, spaced
from aeon_widgets.text_view import TextView

TABS = ("Output", "Prompt", "Tool call", "Repairs", "Changes")
"""The last one is shown only in adaptive runs."""
_READ_BY_THE_RUN = frozenset({"profile", "review", "judge", "refine"})
"""The purposes of calls whose replies are not meant for people; their result is shown first."""


class TabBar(Widget):
    """One line of tab names; a click chooses one."""

    DEFAULT_CSS = """
    TabBar { height: 1; background: $background; padding: 0 1; }
    """

    active: reactive[int] = reactive(0)
    labels: reactive[tuple[str, ...]] = reactive(TABS[:-1])

    @message
    class Chosen(Message):
        """The person clicked a tab."""

        index: int

    def _tabs(self) -> list[str]:
        shorter = [label.replace("Tool call", "Tool") for label in self.labels]
        shortest = [label.replace("Repairs", "Rep.").replace("Changes", "Chg.") for label in shorter]
        tabs = [[f" {label} " for label in self.labels], [*self.labels], shorter, shortest]
        return next((each for each in tabs if len(" ".join(each)) <= self.size.width), shortest)

    def render(self) -> Content:
        parts: list[tuple[str, str]] = []
        for index, tab in enumerate(self._tabs()):
            style = "bold $aeon-accent on $aeon-cursor" if index == self.active else "$aeon-muted"
            parts += [(tab, style), (" ", "")]
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        left = 0
        for index, tab in enumerate(self._tabs()):
            if offset is not None and left <= offset.x < left + len(tab):
                self.post_message(self.Chosen(index))
            left += len(tab) + 1


class StepText(TextView):
    """The text of the active tab; left and right go through the tabs."""

    HELP_TITLE = "Step"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "tab(-1)", "Tab left", show=False, id="step.tab_left"),
        Binding("right,l", "tab(1)", "Tab right", show=False, id="step.tab_right"),
        Binding("v", "raw", "Raw", show=False, tooltip="Show raw or formatted text", id="text.raw"),
    ]

    @message
    class TabMoved(Message):
        """The person wants to go to a neighbouring tab."""

        by: int

    @property
    def item(self) -> Item | None:
        """None, so that the surrounding pane's item is copied."""
        return None

    def action_tab(self, by: int) -> None:
        """Go to a neighbouring tab."""
        self.post_message(self.TabMoved(by))


class StepPane(Vertical, Pane):
    """Shows one step, or calls that belong to no step. It follows a running step until the person scrolls."""

    RECORDS: ClassVar[frozenset[str]] = frozenset(
        {"plan", "step", "llm", "tool", "supervisor", "run_finished", "profile", "validation", "refinement", "notice"}
        | {"approval"}
    )
    ALLOW_MAXIMIZE = True

    DEFAULT_CSS = pane_css("StepPane") + "StepPane > StepText { height: 1fr; }"

    tab: var[int] = var(0)

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._key: RowKey | None = None
        self._opened = StepDetail()
        self._streamed: Sequence[Block] = ()
        self._activity: Activity | None = None
        self._live = True
        self._instead: Sequence[Block] | None = None
        self._shown: tuple[object, ...] | None = None
        self._quote: tuple[RowKey, int, str] | None = None
        self._title = self.pane_title = "Step"

    @property
    def item(self) -> Item | None:
        """The output of the step or the model's reply if it is for people; on other tabs, all their text."""
        step, tab = self._opened.step, TABS[self.tab].lower()
        place = f"of {one_line(step.step_id, 30)}" if step is not None else "of these calls"
        if self.tab:
            return Item(f"the {tab} {place}", self.query_one(StepText).source, ".md")
        if step is not None and step.output is not None:
            text = readable(step.output)
            return Item(f"the output {place}", text, ".json" if form_of(text) == "json" else ".md")
        replies = [call.response["text"] for call in self._opened.calls if call.response and call.response.get("text")]
        reply = str(replies[-1]) if replies and self._key is not None and self._key.kind != "pass" else ""
        if reply and form_of(reply) != "json":
            return Item(f"the reply {place}", reply, ".md")
        return Item(f"the output {place}", self.query_one(StepText).source, ".md")

    def compose(self) -> ComposeResult:
        yield TabBar()
        yield StepText()

    def update_view(
        self,
        view: RunView,
        key: RowKey | None,
        calls: Sequence[CallView],
        streamed: Sequence[Block] = (),
        live: bool = True,
        *,
        filled: StepDetail | None = None,
        instead: Sequence[Block] | None = None,
    ) -> None:
        """Show what `key` names; `calls` are its model calls if it is not a step, `streamed` its reply so far.

        `live` says whether the run is live; `filled` is the step with what the view left in the journal. `instead`
        replaces the step's own changes.
        """
        if self._quote is not None and self._quote[0] != key:
            self._quote = None
        self._view, self._key, self._streamed, self._live, self._instead = view, key, streamed, live, instead
        self._opened = filled or step_detail(view, key, calls)
        self._show()

    def show_quote(self, key: RowKey, tab: int, quote: str) -> None:
        """Highlight a quote in a tab of a row while that row is shown; an empty one highlights nothing."""
        self._quote = key, tab, quote
        self.tab = tab

    def watch_tab(self, tab: int) -> None:
        if self.is_mounted:
            self.query_one(TabBar).active = tab
            self._show()

    def _show(self) -> None:
        step = self._opened.step
        text = self.query_one(StepText)
        self._label(step)
        instead = list(self._instead or ()) if self.tab == TABS.index("Changes") else []
        if self._opened.lean and not instead and self._shown is not None and self._shown[:2] == (self._key, self.tab):
            return  # keep the content until the rest has been read
        blocks = instead or self._blocks(step)
        came_back = self._came_back()
        shown = ("instead", *instead[:1]) if instead else (self._key, self.tab, came_back)
        if shown == self._shown:
            text.show(blocks)
        else:
            self._shown = shown
            running = self._live and not came_back and (step is None or step.status == "running")
            text.start(blocks, follow=running and self.tab == 0)
        is_quoted = self._quote is not None and self._quote[:2] == (self._key, self.tab)
        text.mark(self._quote[2] if self._quote is not None and is_quoted else "")

    def _label(self, step: StepView | None) -> None:
        self.query_one(TabBar).labels = self._tabs(step)
        if step is not None:
            status = shown_status(step.status, self._live, self._view.asked)
            title = f"Step {one_line(step.step_id, 30)} · {ROW_ICONS.get(status, '?')} {status}"
        elif self._key is not None:
            label = call_label(self._key, with_pass=self._view.adaptive)
            title = label[:1].upper() + label[1:]
        else:
            title = "Step"
        self._title = title
        self._show_title()

    def update_activity(self, activity: Activity | None) -> None:
        """Show the call that the run waits for in the title, if it is one of those shown."""
        if activity != self._activity:
            self._activity = activity
            self._show_title()

    def _show_title(self) -> None:
        activity, step, calls = self._activity, self._opened.step, self._opened.calls
        ours = (step is not None and step.status == "running") or (bool(calls) and not calls[-1].finished)
        if activity is not None and ours and activity.step_id == (step.step_id if step is not None else None):
            state_words = activity.words(named=step is not None)
            self.pane_title = f"{self._title} · {state_words}" if state_words else self._title
        else:
            self.pane_title = self._title

    def _tabs(self, step: StepView | None) -> tuple[str, ...]:
        repairs = f"{TABS[3]} {len(step.repairs)}" if step is not None and step.repairs else TABS[3]
        if not self._view.adaptive:
            return (*TABS[:3], repairs)
        touched = len(refinements_of(self._view, step.step_id)) if step is not None else 0
        return (*TABS[:3], repairs, f"{TABS[4]} {touched}" if touched else TABS[4])

    def _blocks(self, step: StepView | None) -> list[Block]:
        if self._opened.lean:
            return [("muted", "Reading the journal …")]
        blocks: list[Block] = []
        if self._opened.earlier and self.tab in (1, 2, 3):
            blocks = [("muted", f"… {self._opened.earlier:,} earlier ones: find them with `/`"), GAP]
        blocks += self._tab_blocks(step) if self._key is not None else [("muted", "No steps yet.")]
        return [*blocks, GAP, ("muted", "Still loading what came earlier …")] if self._view.whole_from else blocks

    def _tab_blocks(self, step: StepView | None) -> list[Block]:
        shown, view, live = self._opened, self._view, self._live
        match TABS[self.tab]:
            case "Prompt":
                return prompt_blocks(shown.calls if step is None else step.calls, live)
            case "Tool call":
                return [("muted", "No tool was called.")] if step is None else tool_blocks(step, live)
            case "Repairs":
                return repair_blocks(shown.repairs if step is None else step.repairs)
            case "Changes":
                return calls_change_blocks(view, shown.calls) if step is None else step_change_blocks(view, step)
        if step is not None:
            return [*for_a_person(view, step), *output_blocks(step, self._streamed, live, view.asked)]
        return self._calls_output(self._key) if self._key is not None else []

    def _calls_output(self, key: RowKey) -> list[Block]:
        if key.kind == "pass":
            return pass_blocks(self._view, key.pass_number, self._opened.calls)
        label = call_label(key, with_pass=False).capitalize()
        wanted = self._view.requirements or [self._view.task]
        output = calls_output_blocks(label, self._opened.calls, self._streamed, self._live, wanted)
        found: list[Block] = []
        if self._came_back():
            # Only the run reads such a reply; a person reads its result.
            found = calls_change_blocks(self._view, self._opened.calls)
            found = profile_blocks(self._view.profiles) if key.name == "profile" else found
        return spaced([found, output])

    def _came_back(self) -> bool:
        """Return whether the selected calls have ended and their result is shown before the reply."""
        key, calls = self._key, self._opened.calls
        has_calls = key is not None and key.kind != "step" and (key.kind == "pass" or key.name in _READ_BY_THE_RUN)
        return has_calls and bool(calls) and calls[-1].finished

    def on_tab_bar_chosen(self, event: TabBar.Chosen) -> None:
        event.stop()
        self.tab = event.index
        self.screen.set_focus(self.query_one(StepText))

    def on_step_text_tab_moved(self, event: StepText.TabMoved) -> None:
        event.stop()
        self.tab = (self.tab + event.by) % len(self._tabs(None))

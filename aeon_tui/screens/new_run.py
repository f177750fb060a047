"""The form for a new run: task, model, approvals, tools and budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Label, Static, TextArea
from textual.worker import get_current_worker
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.tools import TOOL_SETS
from aeon_tui.messages import KeepDraft, Start
from aeon_tui.screens.context import context_of
from aeon_tui.screens.filterable_list import KeptRows
from aeon_tui.screens.item_actions import SelectableScreen
from aeon_tui.sessions.run_jobs import APPROVAL_TITLES, FIELD_TITLES, NewRunForm, new_run_of
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.pane import Problem
from aeon_widgets.tally import HeadLine
from aeon_widgets.text import Piece, both_ends, fit, one_line
from aeon_widgets.text_fields import LineInput

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import RunConfig


@dataclass(frozen=True)
class ModelChoice:
    """A model, or a provider whose models the user names. `step` makes it usable; empty if it is."""

    name: str
    about: str
    step: str = ""

    @property
    def usable(self) -> bool:
        """Whether a run could use it."""
        return not self.step


def model_choices(config: RunConfig) -> list[ModelChoice]:
    """Return the configured models, then others, likely ones first. Reads files, so call it on a thread."""
    configured = [_configured(model, config) for model in config.models]
    offered = [choice for choice in _offered(config) if choice.name not in config.models]
    return [*configured, *sorted(offered, key=_unlikely)]


def _configured(model: str, config: RunConfig) -> ModelChoice:
    from aeon_core.runs.factory import connect_model

    try:
        connect_model(config.model_copy(update={"model": model})).close()
    except AeonError as error:
        return ModelChoice(model, "configured", error.message)
    return ModelChoice(model, "configured")


def _offered(config: RunConfig) -> Iterator[ModelChoice]:
    from aeon_core.llm.simulated import SIMULATED_MODELS
    from aeon_tui.health import providers

    for finding in providers(config):
        if finding.name == "simulated":
            for name, what in SIMULATED_MODELS.items():
                yield ModelChoice(f"simulated:{name}", f"no key, no network: {what}")
        elif finding.step is None:
            usable = finding.text.removeprefix("usable: ")
            example = usable.partition("--model ")[2]
            how = f"type {example}" if example else f"type a name; {usable}"
            yield ModelChoice(f"{finding.name}:", how)
        else:
            yield ModelChoice(f"{finding.name}:", finding.text, finding.step)


def _unlikely(choice: ModelChoice) -> int:
    if choice.step:
        return 3
    order = {"simulated:default": 1, "llama-cpp:": 2}
    return order.get(choice.name, 4 if choice.name.startswith("simulated:") else 0)


LABEL = 11
"""The width of field names, in cells."""
MODELS = 5
"""The least number of models in sight; the list scrolls."""
_OTHER_LINES = 25
"""Lines of the screen besides the list of models."""


class Field(Horizontal):
    """A field after its name."""

    DEFAULT_CSS = f"""
    Field {{ height: auto; }}
    Field > Label {{ width: {LABEL}; color: $aeon-muted; }}
    Field > .hint {{ color: $aeon-muted; width: 1fr; padding: 0 0 0 2; }}
    Field.-here > Label {{ color: $aeon-accent; text-style: bold; }}
    """

    def __init__(self, name: str, *fields: Widget, hint: str = "") -> None:
        super().__init__()
        self._hint = hint
        self._called = name
        self._fields = fields

    def compose(self) -> ComposeResult:
        yield Label(Content(self._called))
        yield from self._fields
        if self._hint:
            yield Static(self._hint, classes="hint", markup=False)

    def on_descendant_focus(self) -> None:
        self.add_class("-here")

    def on_descendant_blur(self) -> None:
        self.remove_class("-here")


class TextField(LineInput):
    """One line of a form. Down and Up move to the next and previous field."""

    HELP_TITLE = "Field"
    DEFAULT_CSS = """
    TextField, TextField.-textual-compact { background: $panel; color: $aeon-text; width: 1fr; }
    TextField>.input--placeholder { color: $aeon-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", "Next field", show=False, id="field.next"),
        Binding("up", "app.focus_previous", "Previous field", show=False, id="field.previous"),
    ]

    def __init__(self, placeholder: str, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(placeholder=placeholder, compact=True, id=id, select_on_focus=False)


class Tick(Checkbox):
    """A check box that shows its state with a sign, not only a colour."""

    HELP_TITLE = "Field"
    BUTTON_LEFT = BUTTON_RIGHT = ""
    DEFAULT_CSS = """
    Tick, Tick.-textual-compact {
        background: $background; color: $aeon-text; padding: 0 2 0 0; border: none;
        & > .toggle--button, &.-on > .toggle--button { color: $aeon-text; background: $background; }
        & > .toggle--label { color: $aeon-text; background: $background; text-style: none; }
        &:focus, &:hover { border: none; background-tint: $background 0%; }
        &:focus > .toggle--label, &.-textual-compact:focus > .toggle--label {
            color: $aeon-text; background: $aeon-cursor; text-style: bold;
        }
        &:disabled, &:disabled > .toggle--label, &:disabled > .toggle--button { color: $aeon-muted; opacity: 100%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "toggle_button", "Tick", key_display="space", id="tick.toggle"),
        Binding("right,down", "app.focus_next", "Next field", show=False, id="field.next"),
        Binding("left,up", "app.focus_previous", "Previous field", show=False, id="field.previous"),
    ]

    def __init__(self, name: str, id: str) -> None:  # noqa: A002
        super().__init__(Content(escape_controls(name)), compact=True, id=id)
        self.BUTTON_INNER = "[ ]"

    @override
    def watch_value(self) -> None:
        self.BUTTON_INNER = "[✔]" if self.value else "[ ]"
        super().watch_value()


class ModelList(KeptRows[ModelChoice]):
    """Models, one per line: which are usable, and what makes the others usable."""

    HELP_TITLE = "Models"
    DEFAULT_CSS = f"ModelList {{ height: 1; margin: 0 0 1 {LABEL - 3}; background: $background; }}"
    reading = "finding models …"
    nothing = "cannot list models"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Choose", id="lines.choose")]

    @override
    def update_rows(self, rows: Sequence[ModelChoice]) -> None:
        super().update_rows(rows)
        self.fit_height()

    def fit_height(self) -> None:
        """Use the height that the screen has to spare."""
        most = max(MODELS, self.screen.size.height - _OTHER_LINES)
        self.styles.height = min(most, max(1, len(self.rows)))

    def on_click(self, event: events.Click) -> None:
        """Choose with one click, as in any form."""
        event.prevent_default()
        if (index := self.line_at(event)) >= 0:
            self.move_to(index)
            self.action_choose()

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        choice = self.rows[index]
        icon, style = ("✔", "complete") if choice.usable else ("✖", "muted")
        label_width = max(16, min(34, max(cell_len(one_line(each.name, 60)) for each in self.rows)))
        name = set_cell_size(fit(one_line(choice.name, 60), label_width), label_width)
        about = choice.about if choice.usable else f"{choice.about} → {choice.step}"
        return [
            (f" {icon} ", style),
            (f"{name}  ", "" if choice.usable else "muted"),
            (fit(one_line(about), max(0, width - label_width - 5)), "muted"),
        ]


TOOLS = tuple(TOOL_SETS)
HINTS = {
    "model": "PROVIDER:NAME; add fallbacks after commas",
    "criteria": "YAML file with convergence criteria; if empty, the built-in ones",
}
_RANGES = {"ttl": "maximum number of cycles", "budget": "maximum cost in US dollars; if empty, no limit"}
PROBLEM_SECONDS = 20
UNASKED = "You are not asked about tool calls: those that need approval are refused, unless a rule allows them."
KEPT = "Your text is kept until you quit: {} brings it back. Press {} again to leave."


class TaskArea(TextArea):
    """The field for the task. Tab moves on; a line may have any length."""

    HELP_TITLE = "Task"
    DEFAULT_CSS = """
    TaskArea, TaskArea.-textual-compact {
        height: 5; width: 1fr; background: $panel; color: $aeon-text; border: none; padding: 0;
        & .text-area--cursor-line { background: $panel; }
        & .text-area--placeholder { color: $aeon-muted; }
        & .text-area--cursor { background: $aeon-text; color: $background; }
    }
    """

    def __init__(self) -> None:
        hint = "What should be done, and what is a good result?"
        super().__init__(
            id="task", compact=True, placeholder=hint, highlight_cursor_line=False, theme="css", max_checkpoints=200
        )


class NewRunScreen(SelectableScreen[None]):
    """A form filled in from the configuration. F5 starts the run; Escape closes the form, after a warning."""

    HELP_TITLE = "New run"
    OPENED_BY = "new_run"
    DEFAULT_CSS = f"""
    NewRunScreen {{ background: $background; }}
    NewRunScreen VerticalScroll {{ height: 1fr; padding: 1 2 0 2; background: $background; scrollbar-gutter: stable; }}
    NewRunScreen Field {{ margin: 0 0 1 0; }}
    NewRunScreen Problem {{ offset: 0 -1; padding: 0 0 0 {LABEL}; }}
    NewRunScreen #model-field {{ margin: 0; }}
    NewRunScreen #problem-model {{ offset: 0 0; }}
    NewRunScreen #ttl, NewRunScreen #budget {{ width: 10; }}
    NewRunScreen #said {{ height: auto; padding: 0 1; color: $severity-high; display: none; }}
    NewRunScreen #said.-shown {{ display: block; }}
    NewRunScreen #said.-note {{ color: $foreground; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,ctrl+s,ctrl+enter", "start", "Start", key_display="F5", priority=True, id="new.start"),
        # With priority, the focus moves before the next key is passed on, even if both arrive at once.
        Binding("tab", "app.focus_next", "Next field", priority=True, id="new.next"),
        Binding("shift+tab", "app.focus_previous", "Previous field", show=False, priority=True, id="new.previous"),
        Binding("escape,q", "leave", "Back", key_display="esc", id="new.leave"),
        Binding("f1,question_mark", "app.keys", "Help", key_display="F1", id="app.keys"),
    ]

    def __init__(self, draft: NewRunForm | None = None) -> None:
        super().__init__()
        self._draft = draft
        self._asked_to_leave = False
        self._filled_in = NewRunForm()
        self._starting = False
        self._own_tools: list[str] = []
        """The configured tools besides the built-in ones."""

    def compose(self) -> ComposeResult:
        yield HeadLine("New run")
        with VerticalScroll(can_focus=False):
            yield Field("Task", TaskArea())
            yield Problem("problem-task")
            model = Field("Model", TextField(HINTS["model"], "model"))
            model.id = "model-field"
            yield model
            yield Problem("problem-model")
            yield ModelList()
            yield Field("Ask about", *(Tick(text, f"ask-{point}") for point, text in APPROVAL_TITLES.items()))
            yield Field("Tools", *(Tick(name, f"tool-{name}") for name in TOOLS))
            for key in ("ttl", "budget", "criteria"):
                yield Field(FIELD_TITLES[key], TextField(HINTS.get(key, ""), key), hint=_RANGES.get(key, ""))
                yield Problem(f"problem-{key}")
            yield Field("Passes", Tick("only one: no evaluation, no refinement", "single"))
        yield Static("", id="said", markup=False)
        yield KeyFooter()

    def on_mount(self) -> None:
        if not self.query(TaskArea):
            return  # the app ends before the screen is composed
        self.query_one(TaskArea).focus()
        self._look()

    def on_resize(self) -> None:
        for models in self.query(ModelList):
            models.fit_height()

    @work(thread=True, exclusive=True, group="models", exit_on_error=False)
    def _look(self) -> None:
        """Read the configuration, and find the usable models."""
        worker = get_current_worker()
        try:
            today = context_of(self).today()
        except AeonError as error:
            self.app.call_from_thread(self._cannot_look, error.message)
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self.call_later, self._fill, today)
        choices = model_choices(today.config)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show_models, choices)

    def _cannot_look(self, why: str) -> None:
        if self.is_attached:
            self.query_one(ModelList).update_rows([])
            self._say(why)

    async def _fill(self, today: LoadedConfig) -> None:
        if not self.is_attached:
            return
        self._filled_in = new_run_of(today)
        await self._offer_tools(today.config.tools, bool(today.config.mcp_servers))
        form = self._draft or replace(self._filled_in, task=self.query_one(TaskArea).text)
        if not self.query_one(TaskArea).text:
            self.query_one(TaskArea).text = form.task
        for key in FIELD_TITLES:
            field = self.query_one(f"#{key}", Input)
            # Keep what was typed meanwhile.
            field.value = field.value or getattr(form, key)
        for tick in self.query(Tick):
            kind, _, name = str(tick.id).partition("-")
            chosen = {"ask": form.approve, "tool": self._ids(form.tools), "single": ("",) * form.single_pass}[kind]
            tick.value = name in chosen and not tick.disabled

    async def _offer_tools(self, configured: Iterable[str], servers: bool) -> None:
        """Offer configured tools of packages too, and MCP only if a server is configured."""
        self._own_tools = [spec for spec in configured if spec not in TOOLS]
        last = self.query_one("#tool-mcp", Tick)
        last.disabled = not servers
        if not servers:
            last.label = "mcp (none yet)"
        fields = [Field("", Tick(spec, f"tool-own{number}")) for number, spec in enumerate(self._own_tools)]
        for above in [last.query_ancestor(Field), *fields][:-1]:
            above.styles.margin = 0
        form = self.query_one(VerticalScroll)
        await form.mount_all(fields, after=form.children.index(last.parent))

    def _ids(self, tools: Iterable[str]) -> list[str]:
        return [f"own{self._own_tools.index(spec)}" if spec in self._own_tools else spec for spec in tools]

    def _show_models(self, choices: list[ModelChoice]) -> None:
        if self.is_attached:
            self.query_one(ModelList).update_rows(choices)

    @property
    def form(self) -> NewRunForm:
        """The current content of the form."""
        ticked = [str(tick.id).partition("-")[2] for tick in self.query(Tick) if tick.value]
        texts = {key: self.query_one(f"#{key}", Input).value for key in FIELD_TITLES}
        own = {f"own{number}": spec for number, spec in enumerate(self._own_tools)}
        return NewRunForm(
            task=self.query_one(TaskArea).text,
            **texts,
            approve=tuple(point for point in APPROVAL_TITLES if point in ticked),
            tools=tuple(own.get(name, name) for name in ticked if name in TOOLS or name in own),
            single_pass=self.query_one("#single", Tick).value,
        )

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _look_at_field(self, event: Input.Changed | TextArea.Changed) -> None:
        """Show what is wrong while the user types; an empty field is reported only at the start."""
        key = str(event.control.id)
        typed = event.control.value if isinstance(event.control, Input) else event.control.text
        self.query_one(f"#problem-{key}", Problem).show_problem(
            self.form.problems().get(key) if typed.strip() else None
        )
        self._asked_to_leave = False
        self._say("")

    def on_checkbox_changed(self) -> None:
        """Say what happens to calls that nobody is asked about."""
        form = self.form
        self._asked_to_leave = False
        self._say(UNASKED if form.tools and "tool" not in form.approve else "", problem=False)

    def on_rows_view_chosen(self) -> None:
        choice = self.query_one(ModelList).selected
        if choice is None:
            return
        if not choice.usable:
            self.query_one("#problem-model", Problem).show_problem(f"{choice.name} is not usable: {choice.step}")
            return
        model = self.query_one("#model", Input)
        model.value = choice.name
        if choice.name.endswith(":"):
            model.focus()
            model.cursor_position = len(choice.name)
        else:
            self.query_one("#ask-plan", Tick).focus()

    def action_start(self) -> None:
        """Start the run, or show what is wrong."""
        form = self.form
        problems = form.problems()
        for key in ("task", *FIELD_TITLES):
            self.query_one(f"#problem-{key}", Problem).show_problem(problems.get(key))
        if problems:
            self.query_one(f"#{next(iter(problems))}").focus()
        elif not self._starting:
            self._starting = True
            self._say("")
            self.query_one(HeadLine).title = "New run · starting …"
            self.app.post_message(Start(form, self._started))

    def _started(self, problem: str | None) -> None:
        self._starting = False
        if problem is None:
            return
        if self.is_attached:
            self.query_one(HeadLine).title = "New run"
            self._say(problem)
        else:
            self.app.notify(escape_controls(problem), severity="warning", timeout=PROBLEM_SECONDS, markup=False)

    def action_leave(self) -> None:
        """Go back; if a task was typed, warn first."""
        form = self.form
        if form == (self._draft or self._filled_in) or not form.task.strip() or self._asked_to_leave:
            self.app.post_message(KeepDraft(form if form.task.strip() else None))
            self.dismiss()
            return
        self._say(KEPT.format(key_of(self.app, "app.new_run"), key_of(self, "new.leave")), problem=False)
        self._asked_to_leave = True

    def _say(self, text: str, *, problem: bool = True) -> None:
        status_line = self.query_one("#said", Static)
        status_line.update(escape_controls(both_ends(text)))
        status_line.set_class(bool(text), "-shown")
        status_line.set_class(not problem, "-note")

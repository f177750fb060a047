"""Dialogs: the box that all share, the question before something irreversible, and the dialogs of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.journal.values import dict_of, str_of
from aeon_core.paths import PROJECT_FOLDER, expanded
from aeon_core.units import count
from aeon_tui.platform.background_tasks import reason
from aeon_tui.reports import ExportFormat
from aeon_tui.screens.item_actions import SelectableModal
from aeon_widgets.keys import TOO_SOON, KeyGuard, key_of
from aeon_widgets.pane import HangingText, Problem
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.text_fields import LineInput
from aeon_widgets.virtual_list import ChoiceRows, RowsView

if TYPE_CHECKING:
    from aeon_core.journal.records import AllowedRule, Scope, Verdict


Answer = TypeVar("Answer")


class Box(Vertical):
    """The frame of a dialog, with a title and the keys on its border."""

    def __init__(self, title: str, keys: str) -> None:
        super().__init__()
        self.border_title, self.border_subtitle = Content(escape_controls(title)), keys


class Dialog(SelectableModal[Answer]):
    """A Box over the screen. A `Problem` shows what is wrong. Escape closes it with None."""

    FIRST: ClassVar[str]
    """The selector of the widget that gets the focus."""
    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > Vertical {
            width: 72; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; overflow-y: auto;
            border: round $aeon-accent; background: $background;
            border-title-color: $aeon-accent; border-subtitle-color: $aeon-muted;
        }
        Input { background: $panel; color: $aeon-text; }
        Button.-style-default.-textual-compact {
            min-width: 8; width: auto; height: 1; border: none; padding: 0;
            background: $background; color: $aeon-text; text-style: none;
            &:focus { background: $background; color: $aeon-text; text-style: bold reverse; }
        }
        #hint { color: $aeon-muted; height: auto; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.guard = KeyGuard()
        """Ignores keys typed before the dialog could be read."""
        self._has_notified = False

    def on_mount(self) -> None:
        if (first := getattr(self, "FIRST", None)) is not None:
            self.query(first).focus()
        self.guard.arm()

    def is_read(self) -> bool:
        """Return whether the dialog could be read before this answer; otherwise tell the user, once, to wait."""
        if self.guard.is_open:
            return True
        if not self._has_notified:
            self._has_notified = True
            self.notify(TOO_SOON, markup=False)
        return False

    def show_problem(self, problem: str) -> None:
        """Show a problem, or none for an empty text."""
        if self.is_attached:
            self.query_one(Problem).show_problem(problem)

    def action_cancel(self) -> None:
        """Close the dialog without a change."""
        self.dismiss(None)


class ConfirmDialog(Dialog[bool]):
    """Asks whether to do something; Escape means False. Enter presses the highlighted button."""

    HELP_TITLE = "Question"
    FIRST = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "refuse", "No", id="confirm.no"),
        Binding("y", "accept", "Yes", id="confirm.yes"),
        Binding("left,up,h,k", "app.focus_previous", "Other button", show=False, id="confirm.previous"),
        Binding("right,down,l,j", "app.focus_next", "Other button", show=False, id="confirm.next"),
    ]
    DEFAULT_CSS = """
    ConfirmDialog {
        & > Vertical { width: 64; border: round $severity-high; border-title-color: $severity-high; }
        .line { color: $aeon-text; height: auto; }
        Horizontal { height: 1; align-horizontal: right; margin: 1 0 0 0; }
        Button { margin: 0 0 0 2; }
    }
    """

    def __init__(self, title: str, lines: Sequence[str], yes: str, no: str = "No") -> None:
        super().__init__()
        self._title, self._lines, self._yes, self._no = title, lines, yes, no

    def compose(self) -> ComposeResult:
        yes, no = key_of(self, "confirm.yes", ConfirmDialog), key_of(self, "confirm.no", ConfirmDialog)
        with Box(self._title, f"{yes} yes · {no} no · tab other button"):
            for line in self._lines:
                yield HangingText(escape_controls(line), classes="line", markup=False)
            with Horizontal():
                yield Button(Content(f"[ {self._no} ]"), id="no", compact=True)
                yield Button(Content(f"[ {self._yes} ]"), id="yes", compact=True)

    @on(Button.Pressed, "#yes")
    def action_accept(self) -> None:
        if self.is_read():
            self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_refuse(self) -> None:
        self.dismiss(False)


_TASKS, _TASK_CELLS = 5, 56


class QuitDialog(ConfirmDialog):
    """Asks whether to abort what is running and quit. Pressing the same key again means yes.

    So the binding has the id of the app's, and changes with it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "accept", "Quit", show=False, id="app.quit")]

    def __init__(self, running: Sequence[tuple[str, str]], resumes: str) -> None:
        """`running` holds the kind (`run` or `workflow`) and task of each; `resumes` is the key that resumes one."""
        kinds = Counter(kind for kind, _ in running)
        them, are = ("it", "is") if len(running) == 1 else ("them", "are")
        title = f"{' and '.join(count(number, kind) for kind, number in kinds.items())} {are} running"
        tasks = [f"· {fit(one_line(task), _TASK_CELLS)}" for _, task in running[:_TASKS]]
        more = [f"· {len(running) - _TASKS} more"] if len(running) > _TASKS else []
        lines = [f"Abort {them} and quit?", *tasks, *more, f"All work so far is kept; {resumes} resumes {them} later."]
        super().__init__(title, lines, "Abort and quit", no="Stay")

    async def action_quit_now(self) -> None:
        """Quit; this key is not typed by accident."""
        self.dismiss(True)


_VERDICTS: dict[Verdict, list[Piece]] = {
    "good": [("good  it does what was asked", "")],
    "bad": [("bad   it does not, or it is wrong", "")],
}
_HINT = "Saved in the run's journal; the last label counts. The settings show how often the judge agreed with you."


@dataclass(frozen=True)
class LabelAnswer:
    """A person's verdict on a result; `why` may be empty."""

    verdict: Verdict
    why: str


class LabelDialog(Dialog[LabelAnswer | None]):
    """Asks for a verdict. Enter saves it; Escape means None. `before` is the last label."""

    HELP_TITLE = "Label"
    FIRST = "ChoiceRows"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="label.cancel"),
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="label.next"),
    ]
    DEFAULT_CSS = """
    LabelDialog {
        & > Vertical { width: 64; }
        Input { margin: 1 0 0 0; }
        ChoiceRows { height: 2; }
        #hint { margin: 1 0 0 0; }
    }
    """

    def __init__(self, run_id: str, before: LabelAnswer | None = None) -> None:
        super().__init__()
        self._run_id = run_id
        self._before = before if before is not None else LabelAnswer("good", "")

    def compose(self) -> ComposeResult:
        cancel = key_of(self, "label.cancel")
        with Box(f"Label {self._run_id[:40]}", f"⏎ saves · ↑↓ choose · tab why · {cancel} cancels"):
            yield ChoiceRows(_VERDICTS, self._before.verdict)
            yield LineInput(escape_controls(self._before.why), placeholder="why (optional)", compact=True, id="why")
            yield Static(_HINT, id="hint", markup=False)

    @on(RowsView.Chosen)
    @on(Input.Submitted)
    def _keep(self, event: RowsView.Chosen | Input.Submitted) -> None:
        event.stop()
        if self.is_read():
            self.dismiss(LabelAnswer(self.query_one(ChoiceRows).value, self.query_one("#why", Input).value.strip()))


FORMS: dict[ExportFormat, str] = {"md": "Markdown", "html": "web page", "json": "JSON, the full history"}


class ExportDialog(Dialog[Path | None]):
    """Asks for a file. Enter writes it; Escape means None."""

    HELP_TITLE = "Export"
    FIRST = "#file"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="export.cancel"),
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="export.next"),
    ]
    DEFAULT_CSS = """
    ExportDialog {
        ChoiceRows { height: 3; margin: 1 0 0 0; }
        #hint { margin: 1 0 0 0; }
    }
    """

    def __init__(self, run_id: str, folder: Path) -> None:
        super().__init__()
        self._run_id, self._folder = run_id, folder

    def compose(self) -> ComposeResult:
        cancel = key_of(self, "export.cancel")
        with Box(f"Export {self._run_id[:40]}", f"⏎ writes · tab format · {cancel} cancels"):
            yield LineInput(f"{self._run_id}.md", compact=True, id="file", select_on_focus=False)
            yield ChoiceRows({form: [(f".{form:<6}{words}", "")] for form, words in FORMS.items()})
            yield Static(f"in {escape_controls(str(self._folder))}", id="hint", markup=False)
            yield Problem()

    def on_rows_view_moved(self) -> None:
        """Give the file the extension of the chosen format."""
        line, wanted = self.query_one("#file", Input), self.query_one(ChoiceRows).value
        path = Path(line.value.strip() or self._run_id)
        if form_of(path) != wanted:
            line.value = f"{path.with_suffix('') if form_of(path) is not None else path}.{wanted}"

    def on_rows_view_chosen(self) -> None:
        self._answer(self.query_one("#file", Input).value)

    @on(Input.Changed)
    def _name_typed(self) -> None:
        """Highlight the format of the file's extension."""
        self.show_problem("")
        if (form := form_of(Path(self.query_one("#file", Input).value.strip()))) is not None:
            self.query_one(ChoiceRows).choose(form)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(event.value)

    def _answer(self, line: str) -> None:
        name = line.strip()
        if form_of(Path(name)) is None:
            self.show_problem(f"the file is {name[:40]!r}; its name must end in .md, .html or .json")
            return
        try:
            file = self._folder / expanded(name, "the file")
        except UsageError as error:
            self.show_problem(error.message)
        else:
            self.dismiss(file)


def form_of(path: Path) -> ExportFormat | None:
    """Return the format of a file's extension, None if it has none."""
    ending = path.suffix.lower().removeprefix(".")
    return ending if ending in FORMS else None


class OpenJournalDialog(Dialog[Path | None]):
    """Asks for a journal and returns its path; Escape means None. Other files are refused."""

    HELP_TITLE = "Open a journal"
    FIRST = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", id="open.cancel")]

    def compose(self) -> ComposeResult:
        with Box("Open a journal", f"⏎ opens · {key_of(self, 'open.cancel')} cancels"):
            yield LineInput(placeholder="path of a run's .jsonl file", compact=True)
            yield Problem()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if name := event.value.strip():
            self._check(name)

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def _check(self, name: str) -> None:
        from aeon_core.journal.reader import head

        try:
            path = Path.cwd() / expanded(name, "the file")
            if head(path) is None:
                raise UsageError(f"{str(path)!r} is not a journal; expected the .jsonl file of a run")
        except (AeonError, OSError) as error:
            self.app.call_from_thread(self.show_problem, reason(error))
        else:
            self.app.call_from_thread(self.dismiss, path)


class TtlDialog(Dialog[int | None]):
    """Asks for the TTL of a run that has used up its own. Enter returns it, in cycles; Escape means None."""

    HELP_TITLE = "Resume"
    FIRST = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", id="ttl.cancel")]

    def __init__(self, run_id: str, used: int) -> None:
        super().__init__()
        self._run_id, self._used = run_id, used

    def compose(self) -> ComposeResult:
        with Box(f"Resume {self._run_id[:40]}", f"⏎ resumes · {key_of(self, 'ttl.cancel')} cancels"):
            hint = f"Its TTL of {count(self._used, 'cycle')} is used up. How many may it use in all?"
            yield HangingText(hint, id="hint", markup=False)
            yield LineInput(str(self._used * 2 or 50), compact=True, type="integer", id="ttl")
            yield Problem()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        from aeon_core.config.loading import checked_text

        event.stop()
        if not self.is_read():
            return
        try:
            ttl = checked_text("ttl", event.value, "TTL")
        except UsageError as error:
            self.show_problem(error.message)
            return
        if ttl > self._used:
            self.dismiss(ttl)
        else:
            self.show_problem(f"TTL is {ttl}, and {self._used} are used up; give it more than that")


def _scopes(root: Path) -> dict[Scope, list[Piece]]:
    made = (root / PROJECT_FOLDER).is_dir()
    in_project = f"in {PROJECT_FOLDER}/config.yml" if made else f"makes {PROJECT_FOLDER}/, where later runs are kept"
    return {
        "run": [("this run      ", ""), ("until it ends, also when it is resumed", "muted")],
        "project": [("this project  ", ""), (in_project, "muted")],
        "always": [("always        ", ""), ("in your own settings, for every project", "muted")],
    }


class RuleDialog(Dialog["AllowedRule | None"]):
    """Asks for a rule and its scope. Enter saves the rule and returns it; Escape means None.

    A rule that is invalid or cannot be saved stays in the field, with the reason.
    """

    HELP_TITLE = "Always allow"
    FIRST = "#rule"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scope(-1)", "Scope", show=False, id="rule.previous"),
        Binding("down", "scope(1)", "Scope", show=False, id="rule.next"),
        Binding("escape", "cancel", "Cancel", id="rule.cancel"),
    ]
    DEFAULT_CSS = """
    RuleDialog {
        Input { margin: 0 0 1 0; }
        ChoiceRows { height: 3; }
    }
    """

    def __init__(self, subject: Mapping[str, Any], arguments: Sequence[str], root: Path) -> None:
        """`arguments` are those of the tool whose call `subject` describes; `root` is the run's project."""
        super().__init__()
        proposal = dict_of(subject.get("proposal")) or {}
        self._rule, self._tool_name = str_of(proposal.get("rule")), str_of(subject.get("tool_name"))
        self._about = about if isinstance(about := proposal.get("about"), str) else None
        """The text that rules are matched against, if known."""
        self._arguments, self._root = arguments, root
        self._is_saving = False

    def compose(self) -> ComposeResult:
        keys = f"⏎ approves and saves · ↑↓ scope · {key_of(self, 'rule.cancel')} back"
        with Box("Always allow calls that match this rule?", keys):
            yield LineInput(self._rule, compact=True, select_on_focus=False, id="rule")
            yield ChoiceRows(_scopes(self._root))
            yield Problem()

    @on(RowsView.Chosen)
    @on(Input.Submitted)
    def _allow(self, event: RowsView.Chosen | Input.Submitted) -> None:
        event.stop()
        if self._is_saving or not self.is_read():
            return
        from aeon_core.policy import rule_problem

        rule = self.query_one("#rule", Input).value.strip()
        if problem := rule_problem(rule, self._tool_name, self._about, self._arguments):
            self._show(problem)
        else:
            self._is_saving = True
            self._save(rule, self.query_one(ChoiceRows).value)

    @work(thread=True, exclusive=True, group="rule", exit_on_error=False)
    def _save(self, rule: str, scope: Scope) -> None:
        from aeon_core.config.editing import save_rule
        from aeon_core.journal.records import AllowedRule

        try:
            if scope != "run":
                save_rule(rule, scope, self._root)
        except AeonError as error:
            self.app.call_from_thread(self._show, error.message)
        else:
            self.app.call_from_thread(self._leave, AllowedRule(rule=rule, scope=scope))

    def _leave(self, rule: AllowedRule) -> None:
        if self.is_attached:
            self.dismiss(rule)

    def _show(self, problem: str) -> None:
        self._is_saving = False
        self.show_problem(problem)

    def action_scope(self, by: int) -> None:
        self.query_one(ChoiceRows).action_cursor(by)


class AnswersDialog(Dialog[dict[str, str]]):
    """A field for each question. Enter moves to the next one, and from the last back to the decision.

    However it is closed, it returns the fields by question: it decides nothing and can be reopened.
    """

    HELP_TITLE = "Open questions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="answers.back"),
        Binding("up", "app.focus_previous", "Previous question", show=False, id="answers.previous"),
        Binding("down", "app.focus_next", "Next question", show=False, id="answers.next"),
    ]
    DEFAULT_CSS = """
    AnswersDialog {
        & > Vertical { width: 76; }
        Static { color: $aeon-text; height: auto; }
        Input { margin: 0 0 1 0; }
    }
    """

    def __init__(self, questions: Sequence[str], answers: Mapping[str, str]) -> None:
        super().__init__()
        self._questions, self._answers = list(questions), dict(answers)

    def compose(self) -> ComposeResult:
        follows = "next" if len(self._questions) > 1 else "keeps it"
        keys = f"⏎ {follows} · {key_of(self, 'answers.back')} back to the decision"
        with Box("Your answers go with your decision", keys):
            for question in self._questions:
                yield HangingText(escape_controls(f"? {question}"), markup=False)
                yield LineInput(self._answers.get(question, ""), compact=True)

    def on_mount(self) -> None:
        fields = list(self.query(Input))
        for field in [*(each for each in fields if not each.value), *fields][:1]:
            field.focus()

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        fields = list(self.query(Input))
        place = fields.index(event.input)
        if place + 1 < len(fields):
            fields[place + 1].focus()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the decision with the answers typed."""
        typed = (field.value.strip() for field in self.query(Input))
        self.dismiss({question: words for question, words in zip(self._questions, typed, strict=True) if words})

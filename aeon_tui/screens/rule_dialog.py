"""The dialog of a rule that always allows calls like the one that waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from aeon_core.errors import AeonError
from aeon_core.journal.records import Scope
from aeon_core.journal.values import dict_of, str_of
from aeon_core.paths import PROJECT_FOLDER
from aeon_tui.screens.dialogs import ChoiceRows, Dialog
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.key_names import key_of
from aeon_widgets.text import Piece
from aeon_widgets.virtual_list import RowsView

if TYPE_CHECKING:
    from aeon_core.approvals.pending import AllowedRule


@dataclass(frozen=True)
class RuleSubject:
    """The call that a rule is proposed for."""

    rule: str
    tool_name: str
    about: str | None
    """The text that a rule is held against, where that is known."""
    arguments: Sequence[str]
    """The names of the tool's arguments, in order."""
    root: Path
    """The project of the run."""


def ask_for_rule(
    screen: Screen[None],
    subject: Mapping[str, Any],
    arguments: Sequence[str],
    root: Path,
    given: Callable[[AllowedRule | None], None],
) -> None:
    """Ask for the rule that allows calls like the one a question's `subject` is about; `given` gets it, or None."""
    proposal, name = dict_of(subject.get("proposal")) or {}, str_of(subject.get("tool_name"))
    about = proposal.get("about")
    rule = str_of(proposal.get("rule"))
    proposed = RuleSubject(rule, name, about if isinstance(about, str) else None, arguments, root)

    def answered(rule: AllowedRule | None) -> None:
        given(rule)
        if rule is not None and rule.scope != "run":
            screen.notify(f"Saved: {rule.rule}. The settings list it; remove it there.", markup=False)

    screen.app.push_screen(RuleDialog(proposed), answered)


class ScopeRows(ChoiceRows[Scope]):
    """Where a rule holds."""

    HELP_TITLE = "Scope"


def _scopes(root: Path) -> dict[Scope, list[Piece]]:
    made = (root / PROJECT_FOLDER).is_dir()
    in_project = f"in {PROJECT_FOLDER}/config.yml" if made else f"makes {PROJECT_FOLDER}/, where later runs are kept"
    return {
        "run": [("this run      ", ""), ("until it ends, also when it is resumed", "muted")],
        "project": [("this project  ", ""), (in_project, "muted")],
        "always": [("always        ", ""), ("in your own settings, for every project", "muted")],
    }


class RuleDialog(Dialog["AllowedRule | None"]):
    """Asks for the rule and where it holds. Enter saves it there and gives it back; None where it is left with escape.

    A rule that cannot be used, or saved, stays in the field, with a line that says why.
    """

    HELP_TITLE = "Always allow"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scope(-1)", "Scope", show=False, id="rule.previous"),
        Binding("down", "scope(1)", "Scope", show=False, id="rule.next"),
        Binding("escape", "cancel", "Cancel", id="rule.cancel"),
    ]
    DEFAULT_CSS = """
    RuleDialog {
        Input { margin: 0 0 1 0; }
        ScopeRows { height: 3; }
    }
    """

    def __init__(self, subject: RuleSubject) -> None:
        super().__init__()
        self._subject = subject
        self._guard = KeyGuard()
        self._is_saving = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Always allow calls that match this rule?"
            box.border_subtitle = f"enter approves and saves · ↑↓ scope · {key_of(self, 'rule.cancel')} back"
            yield Input(self._subject.rule, compact=True, select_on_focus=False, id="rule")
            yield ScopeRows(_scopes(self._subject.root))
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        self.query("#rule").focus()
        self._guard.arm()

    @on(RowsView.Chosen)
    @on(Input.Submitted)
    def _allow(self, event: RowsView.Chosen | Input.Submitted) -> None:
        event.stop()
        if not self._guard.is_open or self._is_saving:
            return
        from aeon_core.policy import rule_problem

        subject, rule = self._subject, self.query_one("#rule", Input).value.strip()
        if problem := rule_problem(rule, subject.tool_name, subject.about, subject.arguments):
            self._show(problem)
        else:
            self._is_saving = True
            self._save(rule, self.query_one(ScopeRows).value)

    @work(thread=True, exclusive=True, group="rule", exit_on_error=False)
    def _save(self, rule: str, scope: Scope) -> None:
        from aeon_core.approvals.pending import AllowedRule
        from aeon_core.config.saved_rules import save_rule

        try:
            if scope != "run":
                save_rule(rule, scope, self._subject.root)
        except AeonError as error:
            self.app.call_from_thread(self._show, error.message)
        else:
            self.app.call_from_thread(self._leave, AllowedRule(rule=rule, scope=scope))

    def _leave(self, rule: AllowedRule) -> None:
        if self.is_attached:
            self.dismiss(rule)

    def _show(self, problem: str) -> None:
        self._is_saving = False
        self.say(problem)

    def action_scope(self, by: int) -> None:
        """Choose another scope."""
        self.query_one(ScopeRows).action_cursor(by)

    def action_cancel(self) -> None:
        """Go back to the question."""
        self.dismiss(None)

"""Every setting: its value, source and meaning; files open in the user's editor."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel
from rich.cells import cell_len, set_cell_size
from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker
from typing_extensions import override

from aeon_core.config.keys import CONFIG_KEYS
from aeon_core.config.loading import DEFAULT, ENVIRONMENT_PREFIX, user_config_file
from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.paths import PROJECT_FOLDER
from aeon_core.redaction import redact_text
from aeon_core.units import count
from aeon_tui.messages import RevokeTrust, TrustFolder
from aeon_tui.screens.context import context_of
from aeon_tui.screens.filterable_list import FilterableListScreen, KeptRows, ListFilter
from aeon_tui.sessions.run_options import approval_points
from aeon_widgets.footer import KeyFooter
from aeon_widgets.keys import key_of
from aeon_widgets.tally import HeadLine
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.text_view import TextView
from aeon_widgets.virtual_list import RowsView

if TYPE_CHECKING:
    from aeon_core.config.editing import SavedRule, SavedScope
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.judge.agreement import JudgedLabel
    from aeon_core.tools.base import Answer


_TRUST = "Whether this folder's files may run code, redirect requests or widen access. Press T to change."
_HERE = "working directory"


@dataclass(frozen=True)
class Setting:
    """A key of the configuration. `source` is the origin of its value."""

    key: str
    value: str
    source: str
    meaning: str
    expected: str
    how: str
    """How it can be set besides in a configuration file."""
    rule: SavedRule | None = None
    """The rule of the key `policy` that this row is."""

    @property
    def name(self) -> str:
        """Its full key."""
        return self.key if self.rule is None else f"policy.{self.rule.answer}"

    @property
    def text(self) -> str:
        """The text that the filter searches."""
        return f"{self.name} {self.value} {self.source} {self.meaning} {self.expected}"

    @property
    def is_set(self) -> bool:
        """Whether it has been set."""
        return self.source not in (DEFAULT, _HERE)


def settings_of(loaded: LoadedConfig, rules: Sequence[SavedRule] = ()) -> list[Setting]:
    """Return all settings: first those of runs, in the order of the configuration, then the app's.

    The `rules` of the files follow the key that contains them.
    """
    found = []
    for key, spec in CONFIG_KEYS.items():
        value, source = _text(loaded.value_of(key)), " and ".join(map(_short, loaded.sources_of(key)))
        if key == "approve" and source == DEFAULT:
            value = f"{', '.join(approval_points(loaded, in_app=True))} (headless: none)"
        if key == "project_root" and key not in loaded.sources:
            source = _HERE
        how = "only in files" if spec.is_mapping else f"{ENVIRONMENT_PREFIX}{key.upper()}, or files"
        how = "files or the keys screen" if key == "keys" else how
        found.append(Setting(key, value, source, spec.meaning, spec.expected, how))
        if key == "policy":
            found += [_rule(each, loaded) for each in rules]
    return [*found, _trust(loaded)]


_RULES: Mapping[Answer, str] = {
    "allow": "Calls that match this rule run without asking.",
    "ask": "You are asked about calls that match this rule, even if another rule allows them.",
    "deny": "Calls that match this rule are refused.",
}


def _rule(saved: SavedRule, loaded: LoadedConfig) -> Setting:
    ignored = saved.scope == "project" and saved.answer == "allow" and "policy" in loaded.ignored
    source = f"{_SCOPES[saved.scope]}{', not trusted' if ignored else ''}"
    expected = "TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB)"
    how = f"{saved.file}; Delete removes it"
    return Setting(f"  {saved.answer}", saved.rule, source, _RULES[saved.answer], expected, how, saved)


_SCOPES: Mapping[SavedScope, str] = {"always": "own file: always", "project": "project's file"}


def _trust(loaded: LoadedConfig) -> Setting:
    trust = loaded.trust
    values = {
        "nothing_asked": "nothing to trust",
        "trusted": "trusted",
        "untrusted": f"not trusted; ignored: {', '.join(loaded.ignored) or 'nothing'}",
        "changed": f"changed since it was trusted; ignored: {', '.join(loaded.ignored) or 'nothing'}",
    }
    source = DEFAULT if trust.state == "nothing_asked" else "project's file"
    how = "T here, or `aeon-tui trust`"
    return Setting("trust", values[trust.state], source, _TRUST, "your decision", how)


def agreement_lines(comparisons: Sequence[JudgedLabel]) -> list[str]:
    """Return for each model how often its verdict agreed with the person's, those with the most results first."""
    from aeon_core.judge.agreement import agreement_by_group

    found = sorted(agreement_by_group(comparisons).items(), key=lambda each: -each[1].results)
    return [
        f"Judge {one_line(model, 60)} agreed with you on {each.agreed} of {count(each.results, 'result')}"
        for model, each in found
    ]


def _text(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if value is None or value in ({}, []):
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return redact_text(", ".join(map(str, value)))
    if isinstance(value, (str, Path)):
        return redact_text(str(value))
    if isinstance(value, float):
        return f"{value:g}"
    return redact_text(json.dumps(value, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_defaults=True) if isinstance(value, BaseModel) else str(value)


def _short(source: str) -> str:
    """Return a source without the words that all of them share."""
    for before in ("the file ", "the environment variable ", "the option "):
        if source.startswith(before):
            return _named(source.removeprefix(before).strip("'\""))
    return source


def _named(name: str) -> str:
    """Return a variable or an option as it is, a file by its owner."""
    if name == str(user_config_file(os.environ)):
        return "own file"
    if name.endswith(f"/{PROJECT_FOLDER}/config.yml"):
        return "project's file"
    home = str(Path.home())
    return f"~{name.removeprefix(home)}" if name.startswith(f"{home}/") else name


PROBLEM_SECONDS = 30
_KEY = 16
_WIDEST = 120
"""The cells that a row uses at most, so that a setting's source stays near its value."""
Whose = Literal["own", "project"]


class SettingsList(KeptRows["Setting"]):
    """Settings, one per line; changed ones are highlighted."""

    HELP_TITLE = "Settings"
    nothing = "no setting matches"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Details", id="lines.choose")]

    @override
    def name_of(self, row: Setting) -> object:
        return row.key, row.rule

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        setting, width = self.rows[index], min(width - 1, _WIDEST)
        source = fit(one_line(setting.source), max(7, width // 3))
        left = max(4, width - _KEY - 5 - cell_len(source))
        value = set_cell_size(fit(one_line(setting.value), left), left)
        return [
            (" ● " if setting.is_set else "   ", "accent"),
            (f"{setting.key:<{_KEY}} ", "bold" if setting.is_set else ""),
            (f"{value} ", "" if setting.is_set else "muted"),
            (source, "muted"),
        ]


class SettingsScreen(FilterableListScreen[Setting]):
    """All current settings. e and E open the files that set them, and errors in these are shown."""

    HELP_TITLE = "Settings"
    OPENED_BY = "settings"
    DEFAULT_CSS = """
    SettingsScreen TextView { height: 7; max-height: 38%; padding: 0 2; border-top: solid $aeon-border; }
    SettingsScreen #agreement { height: auto; max-height: 3; padding: 0 1; color: $aeon-muted; display: none; }
    SettingsScreen TextView:focus { border-top: solid $aeon-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("delete", "remove_rule", "Remove rule", id="settings.remove_rule"),
        Binding("e", "edit('own')", "Edit file", id="settings.edit"),
        Binding("E", "edit('project')", "Project file", id="settings.edit_project"),
        Binding("slash", "filter", "Filter", id="settings.filter"),
        Binding("v", "app.change_theme", "Theme", id="settings.theme"),
        Binding("T", "trust", "Trust", tooltip="Trust this folder, or revoke it", id="settings.trust"),
        Binding("tab", "app.focus_next", "Next part", show=False, id="settings.next"),
        Binding("escape", "back", "Back", id="settings.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._loaded: LoadedConfig | None = None

    def compose(self) -> ComposeResult:
        yield HeadLine("Settings")
        yield Static("", id="agreement", markup=False)
        yield ListFilter("a key, a value, a file, a word of the description")
        yield SettingsList()
        yield TextView()
        yield KeyFooter()

    def on_screen_resume(self) -> None:
        self._read()
        self._read_agreement()

    @work(thread=True, exclusive=True, group="settings", exit_on_error=False)
    def _read(self) -> None:
        from aeon_core.config.editing import saved_rules

        worker = get_current_worker()

        def show(shown: Callable[..., object], *args: object) -> None:
            # Another thread reads what has changed since, and may have been faster.
            if not worker.is_cancelled:
                self.app.call_from_thread(shown, *args)

        try:
            loaded = context_of(self).today()
            rules = saved_rules(loaded.config.project_root or Path())
        except AeonError as error:
            show(self._show_problem, error.message)
        else:
            show(self._apply, loaded, settings_of(loaded, rules))

    @work(thread=True, exclusive=True, group="agreement", exit_on_error=False)
    def _read_agreement(self) -> None:
        """Read the labels from the journals; journals that have not changed since are not read again."""
        worker = get_current_worker()
        try:
            found = context_of(self).labelled_runs.comparisons(lambda: not worker.is_cancelled)
        except (AeonError, OSError):
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show_agreement, agreement_lines(found))

    def _show_agreement(self, lines: Sequence[str]) -> None:
        if self.is_attached:
            shown = self.query_one("#agreement", Static)
            shown.display = bool(lines)
            shown.update(escape_controls("\n".join(lines), keep="\n"))

    def _apply(self, loaded: LoadedConfig, settings: Sequence[Setting]) -> None:
        if self.is_attached:
            self._loaded = loaded
            changed = sum(each.is_set for each in settings)
            files = ", ".join(str(file) for file in loaded.files) or "no file"
            self.update_rows(settings, f"Settings  {changed} set · {files}")

    def _show_problem(self, problem: str) -> None:
        if self.is_attached:
            own, project = key_of(self, "settings.edit"), key_of(self, "settings.edit_project")
            self.query_one(HeadLine).title = "Settings  not valid"
            self.query_one(TextView).show(
                [("high", f"✖ {problem}"), ("", f"{own} or {project} opens the file to fix it.")]
            )

    @override
    def show_rows(self) -> None:
        super().show_rows()
        self._explain()

    @on(RowsView.Moved)
    def _explain(self) -> None:
        setting = self.query_one(SettingsList).selected
        self.refresh_bindings()
        if setting is None:
            self.query_one(TextView).start([], follow=False)
            return
        self.query_one(TextView).start(
            [
                ("accent bold", setting.name),
                ("", setting.meaning),
                ("muted", f"Expected  {setting.expected}"),
                ("muted", f"Set in    {setting.how}"),
                ("", f"Now       {setting.value}   ({setting.source})"),
            ],
            follow=False,
        )

    @on(RowsView.Chosen)
    def _to_text(self) -> None:
        self.query_one(TextView).focus()

    @override
    def action_back(self) -> None:
        """Go back from the details to the list, then clear the filter, then leave."""
        if self.query_one(TextView).has_focus:
            self.query_one(SettingsList).focus()
        else:
            super().action_back()

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "remove_rule":
            shown = next(iter(self.query(SettingsList)), None)
            return shown is not None and shown.selected is not None and shown.selected.rule is not None
        return super().check_action(action, parameters)

    def action_remove_rule(self) -> None:
        """Remove the selected rule from its file after asking."""
        from aeon_tui.screens.dialogs import ConfirmDialog

        setting = self.query_one(SettingsList).selected
        rule = setting.rule if setting is not None else None
        if rule is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.query_one(SettingsList).action_cursor(-1)  # the following row stays near
                self._remove_rule(rule)

        lines = [f"{rule.answer}: {rule.rule}", f"In {rule.file}"]
        if rule.answer == "allow":
            lines += ["", "You are asked about such calls again. Runs that have started keep the rule."]
        self.app.push_screen(ConfirmDialog("Remove this rule?", lines, "Remove", no="Keep"), answered)

    @work(thread=True, exclusive=True, group="rules", exit_on_error=False)
    def _remove_rule(self, saved: SavedRule) -> None:
        from aeon_core.config.editing import remove_rule

        root = self._loaded.config.project_root if self._loaded is not None else None
        try:
            remove_rule(saved, root or Path())
        except AeonError as error:
            self.app.call_from_thread(self._warn, error.message)
        self.app.call_from_thread(self._read)

    def action_trust(self) -> None:
        """Ask whether to trust the folder, or to revoke that trust."""
        if self._loaded is None or self._loaded.trust.state != "trusted":
            self.app.post_message(TrustFolder(self._read))
            return
        from aeon_tui.screens.dialogs import ConfirmDialog

        lines = [str(self._loaded.trust.root), "Settings that need trust no longer apply; you are asked again."]
        dialog = ConfirmDialog("No longer trust this folder?", lines, "Revoke trust")
        self.app.push_screen(dialog, self._revoke_trust)

    def _revoke_trust(self, yes: bool | None) -> None:
        if yes:
            self.app.post_message(RevokeTrust(self._read))

    def action_edit(self, whose: Whose) -> None:
        """Open the user's own file or the project's in an editor, creating it if needed; then read it."""
        from aeon_core.config.editing import check_project_file
        from aeon_tui.platform.editor import config_file_of, has_own_editor

        root = self._loaded.config.project_root if self._loaded is not None else None
        file = config_file_of(whose, root)
        problem = None
        try:
            if whose == "project" and root is not None:
                check_project_file(file)
            if not has_own_editor():
                self._edit_here(file, whose)
                return
            problem = self._edited(file, whose)
        except SuspendNotSupported:
            self._edit_here(file, whose)
            return
        except AeonError as error:
            self._warn(error.message)
            return
        if problem is not None:
            from aeon_tui.screens.dialogs import ConfirmDialog

            lines = [problem, "Correct it to start a run."]
            dialog = ConfirmDialog("This file is not valid", lines, "Open it again", "Leave it")
            self.app.push_screen(dialog, lambda again: self.action_edit(whose) if again else None)
        else:
            self._read()

    def _edited(self, file: Path, whose: Whose) -> str | None:
        """Return what is wrong with the edited file, None if nothing is.

        Raises UsageError, and SuspendNotSupported if the app cannot give its terminal away.
        """
        from aeon_tui.platform.editor import edit_config, make_sure_it_is_there, terminal_given

        with terminal_given(self.app):
            make_sure_it_is_there(file, whose)
            return edit_config(file)

    def _edit_here(self, file: Path, whose: Whose) -> None:
        """Open the file in the app's own editor; when it closes, the saved file is read."""
        from aeon_tui.platform.editor import ConfigText
        from aeon_tui.screens.editor import EditorScreen

        try:
            text = ConfigText(file, whose)
        except AeonError as error:
            self._warn(error.message)
            return
        self.app.push_screen(EditorScreen(str(file), text.before, text.save, text.problems))

    def _warn(self, text: str) -> None:
        self.notify(escape_controls(text), severity="warning", timeout=PROBLEM_SECONDS, markup=False)

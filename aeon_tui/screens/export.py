"""The dialog of an export: into which file; the file's ending says in which form."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls
from aeon_core.paths import expanded
from aeon_tui.screens.dialogs import ChoiceRows, Dialog
from aeon_widgets.key_names import key_of

Form = Literal["md", "html", "json"]
FORMS: dict[Form, str] = {"md": "Markdown", "html": "web page", "json": "JSON, the full history"}


class FormRows(ChoiceRows[Form]):
    """The forms."""

    HELP_TITLE = "Forms"


class ExportDialog(Dialog[Path | None]):
    """Asks for the file. Enter writes it; None where the dialog is left with escape."""

    HELP_TITLE = "Export"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="export.cancel"),
        Binding("tab", "app.focus_next", "Next field", show=False, id="export.next"),
    ]
    DEFAULT_CSS = """
    ExportDialog {
        FormRows { height: 3; margin: 1 0 0 0; }
        #hint { margin: 1 0 0 0; }
    }
    """

    def __init__(self, run_id: str, folder: Path) -> None:
        super().__init__()
        self._run_id, self._folder = run_id, folder

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(f"Export {escape_controls(self._run_id[:40])}")
            box.border_subtitle = f"enter writes · tab format · {key_of(self, 'export.cancel')} cancels"
            yield Input(f"{self._run_id}.md", compact=True, id="file", select_on_focus=False)
            yield FormRows({form: [(f".{form:<6}{words}", "")] for form, words in FORMS.items()})
            yield Static(f"in {escape_controls(str(self._folder))}", id="hint", markup=False)
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        self.query("#file").focus()

    def on_rows_view_moved(self) -> None:
        """Give the file the ending of the form that was chosen."""
        line, wanted = self.query_one("#file", Input), self.query_one(FormRows).value
        path = Path(line.value.strip() or self._run_id)
        if form_of(path) != wanted:
            line.value = f"{path.with_suffix('') if form_of(path) is not None else path}.{wanted}"

    def on_rows_view_chosen(self) -> None:
        self._answer(self.query_one("#file", Input).value)

    @on(Input.Changed)
    def _name_typed(self) -> None:
        """Light the form that the file's ending says."""
        self.say("")
        if (form := form_of(Path(self.query_one("#file", Input).value.strip()))) is not None:
            self.query_one(FormRows).choose(form)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer(event.value)

    def _answer(self, line: str) -> None:
        name = line.strip()
        if form_of(Path(name)) is None:
            self.say(f"the file is {name[:40]!r}; its name must end in .md, .html or .json")
            return
        try:
            file = self._folder / expanded(name, "the file")
        except UsageError as error:
            self.say(error.message)
        else:
            self.dismiss(file)

    def action_cancel(self) -> None:
        """Write nothing."""
        self.dismiss(None)


def form_of(path: Path) -> Form | None:
    """Return the form that a file's ending says, None where it says none."""
    ending = path.suffix.lower().removeprefix(".")
    return ending if ending in FORMS else None

"""The parts of a form: a line with what it is called, a tick, models to choose from, what is wrong with a field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Label, Static
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_widgets.text import Piece, fit, one_line
from aeon_widgets.virtual_list import RowsView

if TYPE_CHECKING:
    from aeon_core.config.schema import RunConfig


@dataclass(frozen=True)
class ModelChoice:
    """A model, or a provider whose models are named by a person. `step` is what makes it usable, empty where it is."""

    name: str
    about: str
    step: str = ""

    @property
    def usable(self) -> bool:
        """Whether a run could have it."""
        return not self.step


def model_choices(config: RunConfig) -> list[ModelChoice]:
    """Return the configured models, then what else there is: the likely ones first. It looks at files: for a thread."""
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
"""Cells that the names of fields take."""
MODELS = 5
"""So many models are in sight; the others are scrolled to."""


class Field(Horizontal):
    """A field behind its name."""

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


class TextField(Input):
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
    """A check box whose state shows in its sign, not in its colour."""

    HELP_TITLE = "Tick"
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


class Problem(Static):
    """What is wrong with the field above; it takes no place where nothing is."""

    DEFAULT_CSS = f"""
    Problem {{ color: $severity-high; display: none; height: auto; padding: 0 0 0 {LABEL}; }}
    Problem.-said {{ display: block; }}
    """

    def __init__(self, id: str) -> None:  # noqa: A002
        super().__init__("", markup=False, id=id)

    def say(self, problem: str | None) -> None:
        """Show a problem, or that there is none."""
        self.set_class(problem is not None, "-said")
        self.update(f"✖ {escape_controls(problem)}" if problem is not None else "")


class ModelList(RowsView):
    """Models, one a line: which can be used, and what makes the others usable."""

    HELP_TITLE = "Models"
    DEFAULT_CSS = f"ModelList {{ height: 1; margin: 0 0 1 {LABEL - 3}; background: $background; }}"

    def __init__(self) -> None:
        super().__init__()
        self.where_empty = ("finding models …",)
        self.choices: Sequence[ModelChoice] = ()

    @property
    def selected(self) -> ModelChoice | None:
        """The model under the cursor."""
        return self.choices[self.cursor] if self.cursor < len(self.choices) else None

    def update_choices(self, choices: Sequence[ModelChoice]) -> None:
        """Show these."""
        self.choices = choices
        self.where_empty = ("cannot list models",)
        self.styles.height = min(MODELS, max(1, len(choices)))
        self.set_line_count(len(choices))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        choice = self.choices[index]
        icon, style = ("✔", "complete") if choice.usable else ("✖", "muted")
        taken = max(16, min(34, max(cell_len(one_line(each.name, 60)) for each in self.choices)))
        name = fit(one_line(choice.name, 60), taken)
        about = choice.about if choice.usable else f"{choice.about} → {choice.step}"
        return [
            (f" {icon} ", style),
            (f"{name}{' ' * (taken - cell_len(name))}  ", "" if choice.usable else "muted"),
            (fit(one_line(about), max(0, width - taken - 5)), "muted"),
        ]

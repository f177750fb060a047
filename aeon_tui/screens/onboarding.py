"""The first screen without any run: how to start one, and how to make a model usable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from aeon_core.errors import AeonError
from aeon_tui.screens.context import context_of
from aeon_widgets.keys import key_of
from aeon_widgets.pane import HangingText
from aeon_widgets.text import one_line

if TYPE_CHECKING:
    from aeon_tui.screens.new_run import ModelChoice

WELCOME = (
    "Aeon plans a task, runs it step by step, checks the result, and refines it until it is good. "
    "Every run is listed here, live and past."
)
LOOK_SECONDS = 0.2
DEMO = "simulated, needs no key"
_ACTIONS = {"start-demo": "app.demo", "start-new": "app.new_run", "start-open": "app.open_journal"}


class Onboarding(VerticalScroll, can_focus=True):
    """Offers the guided run and a new one. Usable models are found on a thread once it is shown."""

    HELP_TITLE = "First start"
    DEFAULT_CSS = """
    Onboarding {
        padding: 1 2; background: $background; color: $aeon-text;
        Static { height: auto; }
        #welcome { margin: 0 0 1 0; }
        Horizontal { height: 1; }
        Horizontal > Static {
            width: 1fr; color: $aeon-muted; padding: 0 0 0 2; text-wrap: nowrap; text-overflow: ellipsis;
        }
        #rows { height: auto; margin: 0 0 1 0; }
        #rows Button {
            width: 25; height: 1; padding: 0 1; border: none; content-align: left middle; text-align: left;
            background: $panel; color: $aeon-text; text-style: none;
            &:focus, &:hover { background: $aeon-cursor; color: $aeon-text; text-style: bold; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.demo", "Start the demo", id="first.demo"),
        Binding("s", "app.new_run", "New run", id="app.new_run"),
    ]

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble(("No runs yet.\n", "bold"), WELCOME), id="welcome")
        rows = (
            ("start-demo", key_of(self, "first.demo"), "Start the demo", DEMO),
            ("start-new", key_of(self, "app.new_run"), "New run", "with your own task"),
            ("start-open", key_of(self, "app.open_journal", type(self.app)), "Open a journal", "of a run elsewhere"),
        )
        with Vertical(id="rows"):
            for name, key, words, about in rows:
                with Horizontal():
                    yield Button(Content(f"{key:<7}{words:<14}"), id=name, compact=True)
                    yield Static(about)
        yield HangingText("", id="models")

    def on_mount(self) -> None:
        for button in self.query(Button):
            button.can_focus = False  # the keys belong to the widget; a click presses them too

    def on_show(self) -> None:
        # Paint first: this has to load modules.
        self.set_timer(LOOK_SECONDS, self.look)

    def look(self) -> None:
        """Find and show the usable models."""
        self.run_worker(self._look, thread=True, exclusive=True, group="models", exit_on_error=False)

    def _look(self) -> None:
        from aeon_tui.screens.new_run import model_choices

        try:
            choices = model_choices(context_of(self).today().config)
        except AeonError as error:
            self.app.call_from_thread(
                self.show_models, Content.assemble((f"✖ {one_line(error.message)}", "$severity-high"))
            )
            return
        self.app.call_from_thread(self.show_models, models_text(choices, key_of(self.app, "app.settings")))

    def show_models(self, text: Content) -> None:
        """Show the usable models."""
        for shown in self.query("#models"):
            cast("Static", shown).update(text)

    @on(Button.Pressed)
    async def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        await self.run_action(_ACTIONS[event.button.id or ""])


def models_text(choices: Sequence[ModelChoice], settings: str) -> Content:
    """Return the usable models, and for each other provider the one step that makes it usable.

    `settings` is the key of the settings.
    """
    configured = [choice for choice in choices if choice.about == "configured"]
    others = [choice for choice in choices if not choice.name.startswith("simulated:") and choice not in configured]
    head = (
        "Your model"
        if configured
        else f"No model is configured. Set one with AEON_MODEL, or press {settings} for the settings"
    )
    lines = [Content.styled(head, "bold"), *map(_line, configured)]
    if others:
        lines += [
            Content(""),
            Content.styled("Other providers" if configured else "Providers", "bold"),
            *map(_line, others),
        ]
    return Content("\n").join(lines)


def _line(choice: ModelChoice) -> Content:
    name = f"{one_line(choice.name.removesuffix(':'), 40):<12}"
    about = (f" {one_line(choice.about)}", "$aeon-muted")
    if choice.usable:
        return Content.assemble(("✔ ", "$status-complete"), name, about)
    return Content.assemble(("✖ ", "$aeon-muted"), name, about, ("\n  → ", "$aeon-muted"), one_line(choice.step))

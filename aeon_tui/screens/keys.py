"""All keys of the screen behind, as they are bound right now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import ModalScreen

from aeon_widgets.icons import FALLBACK, REFINED, REPAIRED, ROW_ICONS, SEVERITY_ICONS, STATUS_ICONS, STOPPED, WARNED
from aeon_widgets.key_names import key_of, shown_key
from aeon_widgets.text_view import Block, TextView

LABELS = {"command_palette": "Command palette", "screen.copy_text": "Copy the selected text"}
"""Our words for what Textual binds."""
SIDEWAYS = {"scroll_left", "scroll_right", "page_left", "page_right"}
"""Bound by every scrolling widget; nothing of ours is wider than the screen."""

LEGEND: list[Block] = [
    ("accent bold", "Signs"),
    *((status, f"  {icon}  {status}") for status, icon in STATUS_ICONS.items()),
    (STOPPED, f"  {ROW_ICONS[STOPPED]}  {STOPPED}: the run ended before it finished"),
    ("medium", f"  {REPAIRED}  the supervisor repaired the step"),
    ("medium", f"  {FALLBACK}  fallback: no tool found, so the model reasoned about it"),
    ("medium", f"  {WARNED}  the validator objects, or a reply could not be read"),
    ("accent", f"  {REFINED}2 the step was refined twice"),
    *(
        (severity, f"  {icon}2 the step has two issues, {severity} severity at worst")
        for severity, icon in SEVERITY_ICONS.items()
    ),
    ("", ""),
    ("accent bold", "Passes"),
    ("", "  1 … ✖ 0.40 0.60: pass 1 did not converge; its completeness and coherence"),
    ("", ""),
    ("accent bold", "TTL"),
    ("", "  cycles: the model replies that a run may use"),
]


class KeysScreen(ModalScreen[None]):
    """The key help: what each key does in the focused pane, on the screen, and everywhere."""

    HELP_TITLE = "Key help"

    DEFAULT_CSS = """
    KeysScreen {
        align: center middle;
        TextView {
            width: 64; max-width: 100%; height: auto; max-height: 90%;
            border: round $aeon-accent; background: $background;
            border-title-color: $aeon-accent; border-subtitle-color: $aeon-muted;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,enter", "dismiss", "Close", show=False, id="keys.close"),
        Binding("K", "edit_keys", "Change keys", show=False, id="app.edit_keys"),
    ]

    def __init__(self, bindings: Mapping[str, ActiveBinding]) -> None:
        super().__init__()
        self._blocks = key_blocks(bindings)

    def compose(self) -> ComposeResult:
        yield TextView()

    def on_mount(self) -> None:
        if not self.query(TextView):
            return  # the app is ending before the screen was made
        text = self.query_one(TextView)
        text.border_title = "Keys"
        text.border_subtitle = f"{key_of(self, 'app.edit_keys')} changes them · esc closes"
        text.show(self._blocks)
        text.focus()

    async def action_edit_keys(self) -> None:
        """Go on to where keys are changed."""
        self.dismiss()
        await self.app.run_action("edit_keys")


def label_of(action: str, description: str) -> str:
    """Return what an action is called in the help and in the palette."""
    if action.startswith("pane("):
        return f"Go to {description}"
    return LABELS.get(action, description)


def key_blocks(bindings: Mapping[str, ActiveBinding]) -> list[Block]:
    """Return the bindings as text, a line an action, grouped by the part of the screen that they belong to."""
    groups: dict[str, dict[str, list[str]]] = {}
    labels: dict[str, str] = {}
    for key, active in bindings.items():
        action, description = active.binding.action, active.binding.description
        if description and action not in SIDEWAYS:
            title = getattr(active.node, "HELP_TITLE", None) or type(active.node).__name__
            groups.setdefault(title, {}).setdefault(action, []).append(shown_key(key))
            labels.setdefault(f"{title} {action}", label_of(action, description))
    blocks: list[Block] = []
    for title, actions in groups.items():
        blocks += [("accent bold", title)]
        blocks += [
            ("", f"  {'  '.join(dict.fromkeys(keys)):<22} {labels[f'{title} {action}']}")
            for action, keys in actions.items()
        ]
        blocks.append(("", ""))
    return [*blocks, *LEGEND]

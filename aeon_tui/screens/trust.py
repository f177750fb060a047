"""The question whether to trust a folder: what its files ask to do (Decision 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widgets import Button

from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_tui.screens.dialogs import Box, Dialog
from aeon_widgets.approval_panel import too_early_notice
from aeon_widgets.keys import TOO_SOON, KeyGuard, key_of
from aeon_widgets.text import Block
from aeon_widgets.text_view import TextView

if TYPE_CHECKING:
    from aeon_core.config.trust import ProjectTrust

TrustAnswer = Literal["trust", "continue"]
_SCROLLING = frozenset(
    {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "j", "k", "g", "G", "tab", "shift+tab"}
)
_HARMLESS = {
    "run": "limits, colours, and rules that forbid or ask",
    "workflow": "lower limits, more blocked commands, and agents that run no commands",
}
_DIFF_STYLES = {"+": "complete", "-": "high", "@": "accent"}


class TrustText(TextView):
    """Lists what would be allowed; scrolls. Its screen shows how many lines are below."""

    HELP_TITLE = "Trust"


class TrustScreen(Dialog[TrustAnswer | None]):
    """Asks once whether a folder's files may do what they ask for; Escape means None.

    The answer without consequences has the focus, and keys in the first half second are ignored.
    """

    HELP_TITLE = "Trust"
    FIRST = "#continue"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "trust", "Trust this folder", id="trust.grant"),
        Binding("c", "continue", "Continue without it", id="trust.continue"),
        Binding("escape,q", "leave", "Leave", id="trust.cancel"),
        Binding("left,h", "app.focus_previous", "Other answer", show=False, id="trust.previous"),
        Binding("right,l", "app.focus_next", "Other answer", show=False, id="trust.next"),
        Binding("down,j", "scroll('scroll_down')", "Down", show=False, id="lines.down"),
        Binding("up,k", "scroll('scroll_up')", "Up", show=False, id="lines.up"),
        Binding("pagedown,ctrl+d", "scroll('page_down')", "Page down", show=False, id="lines.page_down"),
        Binding("pageup,ctrl+u", "scroll('page_up')", "Page up", show=False, id="lines.page_up"),
        Binding("home,g", "scroll('scroll_home')", "Top", show=False, id="lines.top"),
        Binding("end,G", "scroll('follow')", "End", show=False, id="lines.end"),
    ]
    DEFAULT_CSS = """
    TrustScreen {
        background: $background;
        & > Vertical {
            width: 100; border: round $severity-medium;
            border-title-color: $severity-medium; border-title-style: bold; border-subtitle-color: $severity-medium;
        }
        TrustText { height: auto; max-height: 100%; background: $background; }
        Horizontal { dock: bottom; height: 2; padding: 1 0 0 0; background: $background; }
        Button { margin: 0 1 0 0; }
    }
    """

    def __init__(self, trust: ProjectTrust, leave: str = "Back", guard: KeyGuard | None = None) -> None:
        super().__init__()
        self._trust, self._leave = trust, leave
        self.guard = guard if guard is not None else self.guard
        self._notice = ""

    @property
    def _keys(self) -> str:
        proceed, trust, leave = (key_of(self, f"trust.{name}") for name in ("continue", "grant", "cancel"))
        return f"{proceed} continue · {trust} trust · {leave} {self._leave.lower()}"

    def compose(self) -> ComposeResult:
        buttons = (
            ("continue", "Continue without it"),
            ("trust", "Trust it"),
            ("leave", self._leave),
        )
        is_changed = self._trust.state == "changed"
        with Box("This folder has changed since you trusted it" if is_changed else "Trust this folder?", ""):
            yield TrustText()
            with Horizontal():
                for name, words in buttons:
                    yield Button(Content(f"[ {words} ]"), id=name, compact=True)

    def on_mount(self) -> None:
        if not self.query("#continue"):
            return  # the app ends before the screen is composed
        text = self.query_one(TrustText)
        text.can_focus = False
        text.show(trust_blocks(self._trust))
        self.watch(text, "scroll_y", self._draw_subtitle, init=False)
        self.call_after_refresh(self._shown)

    def _shown(self) -> None:
        self.guard.arm()
        self._draw_subtitle()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw_subtitle)

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key is accepted: none is that was typed before the question could be read."""
        if isinstance(event, Paste):
            self.guard.swallow(event.time)
            return False
        harmless = event.key == "escape" or event.key in _SCROLLING
        admitted = self.guard.admits(event.key, event.time, harmless=harmless)
        if not (admitted and harmless):
            self._notice = "" if admitted else too_early_notice(event)
            self._draw_subtitle()
        return admitted

    def _draw_subtitle(self) -> None:
        for text in self.query(TrustText):
            box, below = text.parent, text.line_count - text.scroll_offset.y - text.size.height
            assert isinstance(box, Vertical)
            if self._notice:
                box.border_subtitle = Content.styled(f" {self._notice} ", "$severity-high bold reverse")
            else:
                more = f" · ↓ {count(below, 'more line')}" if below > 0 else ""
                box.border_subtitle = f"{self._keys}{more}"

    def action_scroll(self, action: str) -> None:
        """Scroll the list, whichever answer has the focus."""
        getattr(self.query_one(TrustText), f"action_{action}")()
        self._draw_subtitle()

    @on(Button.Pressed, "#trust")
    def action_trust(self) -> None:
        """Allow what is listed."""
        self._answer("trust")

    @on(Button.Pressed, "#continue")
    def action_continue(self) -> None:
        """Continue with only the harmless settings."""
        self._answer("continue")

    def _answer(self, answer: TrustAnswer) -> None:
        if self.guard.is_open:
            self.dismiss(answer)
        else:
            self._notice = TOO_SOON
            self._draw_subtitle()

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        self.dismiss(None)


class TrustGate(Screen[None]):
    """Asks before anything else is opened, and closes the app with the answer."""

    def __init__(self, trust: ProjectTrust, guard: KeyGuard | None = None) -> None:
        super().__init__()
        self._trust, self._guard = trust, guard
        self.answer: TrustAnswer | None = None

    def on_mount(self) -> None:
        self.app.push_screen(TrustScreen(self._trust, "Quit", self._guard), self._answered)

    def _answered(self, answer: TrustAnswer | None) -> None:
        self.answer = answer
        self.app.exit()


def trust_blocks(trust: ProjectTrust) -> list[Block]:
    """Return what a folder asks for in words, with the files and what has changed."""
    from aeon_core.config.trust import place_in

    blocks: list[Block] = [("bold", escape_controls(str(trust.root))), ("", "")]
    if trust.changes:
        blocks += [("bold", "Changed since then"), *map(_diff_line, trust.changes), ("", "")]
    blocks.append(("", f"If you trust it, a {trust.part} in this folder may"))
    for item in trust.items:
        blocks.append(("medium", f"• {escape_controls(item.text)}"))
        blocks += [("muted", f"    {escape_controls(place_in(file, trust.root))}") for file in item.files]
    return [
        *blocks,
        ("", ""),
        ("muted", "Trust it only if you know who wrote these files. You are asked again when they change."),
        ("muted", f"If not trusted, only its harmless settings apply: {_HARMLESS[trust.part]}."),
    ]


def _diff_line(line: str) -> Block:
    style = "bold" if line.startswith(("---", "+++")) else _DIFF_STYLES.get(line[:1], "muted")
    return style, escape_controls(line, keep="\t")

"""The TTL, how deeply the run reasons, what the last cycle was for, and what the run has used so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.geometry import Size
from textual.reactive import reactive
from typing_extensions import override

from aeon_core.journal.view.formatting import words
from aeon_core.journal.view.model import ProfileView, RunView
from aeon_core.units import count, money
from aeon_widgets.pane import Pane, PaneMessage, pane_css
from aeon_widgets.run_header import bar, spent
from aeon_widgets.text import Piece, fit, joined

_SHORT = 4
"""The most lines of the pane if it must be short."""
_UNKNOWN = "unknown"
"""The cost if a price or a reply's token counts are missing."""


class TTLGauge(Pane, can_focus=True):
    """Cycles left and spent, the profile, what the last cycle was for, tokens and cost. Enter shows the reasons."""

    HELP_TITLE = "TTL"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"ttl", "run_started", "run_finished", "llm", "profile"})

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "why", "Why", id="ttl.why")]

    class Opened(PaneMessage):
        """The person wants to know why the run reasons as deeply as it does."""

    DEFAULT_CSS = pane_css("TTLGauge") + "TTLGauge { height: auto; padding: 0 1; }"

    short: reactive[bool] = reactive(False, layout=True)
    """Whether the pane must leave room for others."""

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._shown: list[tuple[str, Sequence[Span]]] = []
        self.pane_title = "TTL"

    def update_view(self, view: RunView) -> None:
        """Show the run as it is now."""
        self._view = view
        lines = self._lines(max(8, self.size.width))
        shown = [(line.plain, line.spans) for line in lines]
        if shown != self._shown:
            self.refresh(layout=len(shown) != len(self._shown))
            self._shown = shown

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._view.profile is not None if action == "why" else super().check_action(action, parameters)

    def action_why(self) -> None:
        """Ask for the profile and the reason of each adjustment."""
        self.post_message(self.Opened(self))

    def on_click(self, event: events.Click) -> None:
        if event.chain > 1 and self._view.profile is not None:
            self.action_why()

    def render(self) -> Content:
        width = max(8, self.size.width)
        lines = self._lines(width)
        return Content("\n").join(lines if len(lines) <= self.size.height else self._brief(width)[: self.size.height])

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines at that width, which may not be the one last drawn."""
        del container, viewport
        lines = len(self._lines(max(8, width)))
        return min(lines, _SHORT) if self.short else lines

    def _lines(self, width: int) -> list[Content]:
        view = self._view
        return [
            *self._cycles(width),
            *self._depth(width),
            *self._last(width),
            *(
                Content.assemble((fit(f"{name:<7}", width), "$aeon-muted"), (fit(value, width - 7), style))
                for name, value, style in used(view)
            ),
        ]

    def _brief(self, width: int) -> list[Content]:
        """Return shorter lines, the most important first, of which as many are shown as fit."""
        (_, calls, _), (_, tokens, _), (_, cost, style) = used(self._view)
        total = f"{'cost unknown' if cost == _UNKNOWN else cost} · {calls} call{'' if calls == '1' else 's'}"
        cycles = self._cycles(width)
        if self._view.ttl_allocated:
            left = f" {self._view.ttl_remaining:,} of {count(self._view.ttl_allocated, 'cycle')} left"
            first = Content.assemble(*bar(self._view, max(1, width - len(left))), left)
            cycles = [first.truncate(width, ellipsis=True), cycles[-1]]
        return [
            *cycles,
            *self._depth(width),
            Content.styled(fit(total, width), style),
            *self._last(width),
            Content(fit(f"tokens {tokens}", width)),
        ]

    def _cycles(self, width: int) -> list[Content]:
        view = self._view
        if not view.ttl_allocated:
            return [Content.styled("not set yet", "$aeon-muted")]
        allocated = f" · {view.ttl_allocated:,} of {view.ttl_limit:,} allocated" if view.adaptive else ""
        return [
            Content.assemble(*bar(view, width)),
            Content(fit(f"{view.ttl_remaining:,} of {count(view.ttl_allocated, 'cycle')} left", width)),
            Content.styled(fit(f"{view.ttl_spent:,} spent{allocated}", width), "$aeon-muted"),
        ]

    def _depth(self, width: int) -> list[Content]:
        profile = self._view.profile
        return [Content(fit(depth(profile), width))] if profile is not None else []

    def _last(self, width: int) -> list[Content]:
        view = self._view
        if not view.ttl_last or (view.adaptive and view.result is not None):
            return []
        return [Content.styled(fit(f"last: {view.ttl_last}", width), "$aeon-muted")]


def used(view: RunView) -> list[tuple[str, str, str]]:
    """Return the name, value and style of what the run has used: calls, tokens, cost."""
    attempts = sum(len(attempts) for attempts in view.calls.values())
    tokens_in, tokens_out = view.usage.get("input_tokens", 0), view.usage.get("output_tokens", 0)
    cost, style = spent(view)
    if view.cost_usd is None:
        cost, style = _UNKNOWN, ""
    elif not cost:
        cost = money(view.cost_usd) + (" (simulated)" if view.simulated and not view.cost_usd else "")
    return [
        ("calls", f"{attempts:,}", ""),
        ("tokens", f"{tokens_in:,} in, {tokens_out:,} out", ""),
        ("cost", cost, style),
    ]


def summary(view: RunView) -> list[Piece]:
    """Return on one line the cycles left."""
    if not view.ttl_allocated:
        return [("not set yet", "muted")]
    return [*bar(view, 5), (f" {view.ttl_remaining:,} of {view.ttl_allocated:,} left", "")]


def cost_summary(view: RunView) -> list[Piece]:
    """Return on one line what the run has cost."""
    _, _, (_, cost, style) = used(view)
    return [(cost, style)]


def depth(profile: ProfileView) -> str:
    """Return on one line the reasoning mode, the sufficiency of information, and the version of a revised profile."""
    sufficiency = profile.dimensions.get("information_sufficiency", "")
    revised = f"v{profile.version}" if profile.version > 1 else ""
    return joined(words(profile.reasoning_mode), sufficiency and f"sufficiency {words(sufficiency)}", revised)

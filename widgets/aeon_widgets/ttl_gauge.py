"""The TTL, what it went for, and what the run has used so far."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.geometry import Size
from typing_extensions import override

from aeon_core.budget import money
from aeon_core.journal.view import RunView
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.run_header import bar, spent
from aeon_widgets.text import count, fit


class TTLGauge(Pane):
    """Cycles left and spent, what the last one was for, tokens and cost."""

    RECORDS: ClassVar[frozenset[str]] = frozenset({"ttl", "run_started", "run_finished", "llm"})

    DEFAULT_CSS = (
        pane_css("TTLGauge")
        + """
    TTLGauge {
        height: auto;
        background: $background;
        color: $aeon-text;
        padding: 0 1;
    }
    """
    )

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self.pane_title = "TTL"

    def update_view(self, view: RunView) -> None:
        """Show the run as it is now."""
        self._view = view
        self.refresh(layout=True)

    def render(self) -> Content:
        return Content("\n").join(self._lines(max(8, self.size.width)))

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines, whatever width they were last drawn for."""
        del container, viewport
        return len(self._lines(max(8, width)))

    def _lines(self, width: int) -> list[Content]:
        view = self._view
        if view.ttl_allocated:
            lines = [
                Content.assemble(*bar(view, width)),
                Content(fit(f"{view.ttl_remaining:,} of {count(view.ttl_allocated, 'cycle')} left", width)),
                Content.styled(f"{view.ttl_spent:,} spent", "$aeon-muted"),
            ]
        else:
            lines = [Content.styled("not set yet", "$aeon-muted")]
        if view.ttl_last:
            lines.append(Content.styled(fit(f"last: {view.ttl_last}", width), "$aeon-muted"))
        lines += [
            Content.assemble((fit(f"{name:<7}", width), "$aeon-muted"), (fit(value, width - 7), style))
            for name, value, style in self._facts()
        ]
        return lines

    def _facts(self) -> list[tuple[str, str, str]]:
        view = self._view
        attempts = sum(len(attempts) for attempts in view.calls.values())
        tokens_in, tokens_out = view.usage.get("input_tokens", 0), view.usage.get("output_tokens", 0)
        cost, style = spent(view)
        if view.cost_usd is None:
            cost, style = "no known price", ""
        elif not cost:
            free = "$0 (simulated)" if view.simulated else "$0"
            cost = money(view.cost_usd) if view.cost_usd else free
        return [
            ("calls", f"{attempts:,}", ""),
            ("tokens", f"{tokens_in:,} in, {tokens_out:,} out", ""),
            ("cost", cost, style),
        ]

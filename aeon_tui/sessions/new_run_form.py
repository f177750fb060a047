"""The content of the form for a new run: its problems, and the run that it describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.loading import checked_text
from aeon_core.errors import UsageError
from aeon_core.llm import PROVIDERS
from aeon_core.suggest import nearest
from aeon_tui.sessions.run_jobs import NewRunJob, StartRequest
from aeon_tui.sessions.run_options import approval_points

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig

NO_TASK = "describe the task"
NO_MODEL = "choose one below, or type PROVIDER:NAME"
TEXTS = {"model": "Model", "ttl": "TTL", "budget": "Budget", "criteria": "Criteria"}
"""Fields of one line, with their labels."""
POINTS = {"plan": "plan", "pass": "each pass", "tool": "tool calls"}
"""Points that can need approval, with their labels."""


@dataclass(frozen=True)
class NewRunForm(StartRequest):
    """The content of the form; texts are as typed, and an empty one means the default."""

    task: str = ""
    model: str = ""
    ttl: str = ""
    budget: str = ""
    criteria: str = ""
    approve: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    single_pass: bool = False

    def problems(self) -> dict[str, str]:
        """Return the problems by field, one line each. Reads no file."""
        found = {"task": NO_TASK} if not self.task.strip() else {}
        for key in TEXTS:
            try:
                self._value(key)
            except UsageError as error:
                found[key] = error.message
        return found

    def job(self, today: Callable[[], LoadedConfig], _runs_dir: Path) -> NewRunJob:
        """Return the request for the run. Raises UsageError for problems of the form or the criteria."""
        if problems := self.problems():
            raise UsageError(next(iter(problems.values())))
        loaded = today()
        config = loaded.config.model_copy(update=self._changes(loaded))
        if config.criteria is not None:
            from aeon_core.convergence import load_criteria

            load_criteria(config.criteria)
        return NewRunJob(self.task.strip(), config)

    def _changes(self, today: LoadedConfig) -> dict[str, Any]:
        values = {key: self._value(key) for key in TEXTS}
        if values["ttl"] is None:
            values["ttl"] = today.config.ttl
        asked = list(self.approve) or ["none"]
        return {**values, "approve": asked, "tools": list(self.tools), "single_pass": self.single_pass}

    def _value(self, key: str) -> Any:
        text = getattr(self, key).strip()
        if key == "model":
            return checked_model(text)
        return checked_text(key, text, TEXTS[key]) if text else None


def checked_model(text: str) -> str | list[str]:
    """Return a model, or several separated by commas. Raises UsageError if one is malformed."""
    models = [model.strip() for model in text.split(",")]
    if models == [""]:
        raise UsageError(NO_MODEL)
    for model in models:
        provider, _, name = model.partition(":")
        if provider not in PROVIDERS:
            raise UsageError(f"{model[:80]!r} has an unknown provider{nearest(provider, PROVIDERS)}")
        if not name.strip():
            raise UsageError(f"{model!r} has no name; write {provider}:NAME")
    return models[0] if len(models) == 1 else models


def new_run_of(today: LoadedConfig) -> NewRunForm:
    """Return a form filled in from the configuration."""
    config = today.config
    return NewRunForm(
        model=", ".join(config.models),
        ttl=str(config.ttl),
        budget=f"{config.budget:g}" if config.budget is not None else "",
        criteria=str(config.criteria) if config.criteria is not None else "",
        approve=tuple(point for point in approval_points(today, in_app=True) if point != "none"),
        tools=tuple(config.tools),
        single_pass=config.single_pass,
    )

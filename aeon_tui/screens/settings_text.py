"""Every setting with its value, where that came from, and what it means. Secrets are left out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from aeon_core.config.keys import APP_CONFIG_KEYS, CONFIG_KEYS, THEME_VARIABLE
from aeon_core.config.loading import ENVIRONMENT_PREFIX, user_config_file
from aeon_core.paths import PROJECT_FOLDER
from aeon_core.redaction import redact_text
from aeon_tui.sessions.approval_points import approval_points
from aeon_widgets.text import count, one_line

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.judge.agreement import Comparison

_TRUST = "Whether this folder's files may run code, redirect requests or widen access. Press T to change."
_DEFAULT, _HERE = "default", "working directory"


@dataclass(frozen=True)
class Setting:
    """A key of the configuration. `source` is where its value came from."""

    key: str
    value: str
    source: str
    meaning: str
    expected: str
    how: str
    """How it can be set, beside a configuration file."""

    @property
    def is_set(self) -> bool:
        """Whether somebody has set it."""
        return self.source not in (_DEFAULT, _HERE)


def settings_of(loaded: LoadedConfig) -> list[Setting]:
    """Return all settings: those of a run first, in the order of its configuration, then the app's."""
    found = []
    for key, spec in CONFIG_KEYS.items():
        value = _text(getattr(loaded.config, key))
        source = loaded.sources.get(key, _DEFAULT)
        if key == "approve" and source == _DEFAULT:
            value = f"{', '.join(approval_points(loaded, in_app=True))} (headless: none)"
        if key == "project_root" and key not in loaded.sources:
            source = _HERE
        how = "only in files" if spec.is_mapping else f"{ENVIRONMENT_PREFIX}{key.upper()}, or files"
        found.append(Setting(key, value, _short(source), spec.meaning, spec.expected, how))
    values: Mapping[str, Any] = {"theme": loaded.app.theme, "keys": dict(loaded.app.keys)}
    for key, spec in APP_CONFIG_KEYS.items():
        source = _short(loaded.app.sources.get(key, _DEFAULT))
        how = f"{THEME_VARIABLE}, or files" if key == "theme" else "files or the keys screen"
        found.append(Setting(key, _text(values[key]), source, spec.meaning, spec.expected, how))
    return [*found, _trust(loaded)]


def _trust(loaded: LoadedConfig) -> Setting:
    trust = loaded.trust
    values = {
        "nothing_asked": "nothing to trust",
        "trusted": "trusted",
        "untrusted": f"not trusted; ignored: {', '.join(loaded.ignored) or 'nothing'}",
        "changed": f"changed since it was trusted; ignored: {', '.join(loaded.ignored) or 'nothing'}",
    }
    source = _DEFAULT if trust.state == "nothing_asked" else "project's file"
    how = "T here, or `aeon-tui trust`"
    return Setting("trust", values[trust.state], source, _TRUST, "your decision", how)


def agreement_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Return for each model how often its verdict was the person's, the most results first."""
    from aeon_core.judge.agreement import agreement_by_group

    found = sorted(agreement_by_group(comparisons).items(), key=lambda each: -each[1].results)
    return [
        f"As judge, {one_line(model, 60)} agreed with you on {each.agreed} of {count(each.results, 'result')}"
        for model, each in found
    ]


def matching(settings: Sequence[Setting], text: str) -> list[Setting]:
    """Return those that hold all words of a text."""
    words = text.lower().split()
    return [each for each in settings if all(word in _all_of(each) for word in words)]


def _all_of(setting: Setting) -> str:
    return f"{setting.key} {setting.value} {setting.source} {setting.meaning} {setting.expected}".lower()


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
    """Return a source without the words that every one has."""
    for before in ("the file ", "the environment variable ", "the option "):
        if source.startswith(before):
            return _named(source.removeprefix(before).strip("'\""))
    return source


def _named(name: str) -> str:
    """Return a variable or an option as it is, a file by whose it is."""
    if name == str(user_config_file(os.environ)):
        return "own file"
    if name.endswith(f"/{PROJECT_FOLDER}/config.yml"):
        return "project's file"
    home = str(Path.home())
    return f"~{name.removeprefix(home)}" if name.startswith(f"{home}/") else name

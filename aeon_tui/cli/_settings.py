"""From options to what a run needs: configuration, runs directory, tools, model."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config_files import KEYS, LoadedConfig, load_config, load_values
from aeon_core.errors import ModelUnavailableError, UsageError
from aeon_core.places import default_runs_directory

if TYPE_CHECKING:
    from aeon_core.config import RunConfig
    from aeon_core.llm.base import LLMAdapter
    from aeon_core.tools.registry import ToolRegistry


def load(args: Namespace) -> LoadedConfig:
    """Return the configuration of all layers, the command's options last. Raises UsageError."""
    return load_config(_options(args), config_file=_config_file(args))


def runs_dir(args: Namespace) -> Path:
    """Return the runs directory that the options and the configuration say. Raises UsageError."""
    values = load_values(_options(args), config_file=_config_file(args)).values
    return values["runs_dir"] if "runs_dir" in values else default_runs_directory(values["project_root"])


def _options(args: Namespace) -> dict[str, Any]:
    return {key: getattr(args, key, None) for key in KEYS}


def _config_file(args: Namespace) -> Path | None:
    return Path(args.config).expanduser() if args.config is not None else None


def tool_registry(config: RunConfig) -> ToolRegistry:
    """Return the default tools and those the configuration names. Raises UsageError."""
    from aeon_core.tools.load import load_tools
    from aeon_core.tools.registry import default_registry

    registry = default_registry()
    for spec in config.tools:
        load_tools(spec, registry, config.project_root or Path.cwd())
    return registry


def model(config: RunConfig) -> LLMAdapter:
    """Return the configured model. Raises ModelUnavailableError where there is none, UsageError for a wrong name."""
    from aeon_core.llm.connect import connect

    if config.model is None:
        raise ModelUnavailableError(
            "no model is configured; name one with --model PROVIDER:NAME, the environment variable AEON_MODEL or "
            "`model:` in a config file (--model simulated:default needs no key)"
        )
    return connect(config.model, base_url=config.base_url, timeout=config.timeout)


def why_not_writable(directory: Path) -> str | None:
    """Return why runs cannot be written there, None where they can; the folder may be yet to be made."""
    nearest = directory
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{str(nearest)!r} is no folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{str(nearest)!r} cannot be written"
    return None


def writable(directory: Path) -> Path:
    """Return the runs directory. Raises UsageError where a run could not be written there."""
    if problem := why_not_writable(directory):
        raise UsageError(f"no run can be kept in {str(directory)!r}: {problem}; name another folder with --runs-dir")
    return directory

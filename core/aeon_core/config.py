"""RunConfig: what a run may be told, under the same names on the command line, in files and in Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_TTL = 50
PROJECT_FOLDER = ".aeon"
Durability = Literal["full", "normal", "off"]


class RunConfig(BaseModel):
    """Options of one run (contract: Options of `run`). Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str | None = None
    """`PROVIDER:NAME`; None where the caller hands over an adapter."""
    base_url: str | None = None
    ttl: Annotated[int, Field(strict=True, ge=0)] = DEFAULT_TTL
    """The most cycles the run may use."""
    single_pass: bool = False
    tools: list[str] = Field(default_factory=list)
    """Tool specifications, `module:attribute`."""
    project_root: Path | None = None
    durability: Durability = "normal"
    runs_dir: Path | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1)] = 4096
    """The longest reply asked for, in tokens."""
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    """Seconds a model may be silent."""
    prompts_dir: Path | None = None
    """A folder with prompts of one's own, `<purpose>.md`, in place of the built-in ones."""


def find_project_root(start: Path | None = None) -> Path:
    """Return the nearest folder at or above `start` (the working directory) with `.aeon` or `.git`, else `start`."""
    here = (start if start is not None else Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FOLDER).is_dir() or (folder / ".git").exists():
            return folder
    return here


def runs_directory(config: RunConfig | None = None) -> Path:
    """Return where runs live: the config's `runs_dir`, else `AEON_RUNS_DIR`, else `.aeon/runs` where the project has
    a `.aeon`, else the platform's user state directory. The folder may not exist yet.
    """
    if config is not None and config.runs_dir is not None:
        return config.runs_dir
    if from_environment := os.environ.get("AEON_RUNS_DIR"):
        return Path(from_environment).expanduser()
    root = config.project_root if config is not None and config.project_root is not None else find_project_root()
    if (root / PROJECT_FOLDER).is_dir():
        return root / PROJECT_FOLDER / "runs"
    from platformdirs import user_state_path

    return user_state_path("aeon", appauthor=False) / "runs"

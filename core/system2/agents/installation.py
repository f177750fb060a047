"""Our own agents copied into a project that asks for them (`--init`); nothing that is there is changed (REQ-150)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aeon_core.errors import AeonError, UsageError
from aeon_core.tools.sandbox import Sandbox
from system2.agents.library import AGENTS_FOLDER, SHIPPED, AgentLibrary
from system2.constants import DELEGATION_MAP


@dataclass(frozen=True)
class Copied:
    """What became of each of our agents, by name and in the order of delegation."""

    written: tuple[Path, ...]
    """The new files."""
    left: dict[str, str]
    """Why an agent was left alone."""


def copy_shipped(project_root: Path, warn: Callable[[str], None]) -> Copied:
    """Copy those of our agents that the project lacks into its `.claude/agents`, and return what was done.

    An agent that the project has under that name, in whatever file, is left alone, and so is any file of that name.
    `warn` is told of files there that are no agents. Raises UsageError where the folder leads out of the project or
    cannot be written.
    """
    library = AgentLibrary(project_root, warn)
    folder = _folder(project_root)
    written: list[Path] = []
    left: dict[str, str] = {}
    for name in DELEGATION_MAP:
        target = folder / f"{name}.md"
        if not library.is_shipped(name):
            left[name] = f"the project already has it in {library.get(name).source_path.name!r}"
        elif _copy(SHIPPED / f"{name}.md", target):
            written.append(target)
        else:
            left[name] = f"there is already a file {target.name!r}"
    return Copied(tuple(written), left)


def _folder(project_root: Path) -> Path:
    try:
        sandbox = Sandbox(project_root)
        folder = sandbox.root / sandbox.relative(str(AGENTS_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
    except AeonError as error:
        raise UsageError(f"cannot copy agents there: {error.message}") from None
    except OSError as error:
        raise _unwritable(project_root / AGENTS_FOLDER, error) from None
    return folder


def _copy(source: Path, target: Path) -> bool:
    """Return whether the copy was made; False where something of that name is there, be it a dangling link."""
    content = source.read_bytes()
    try:
        with target.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except OSError:
                # Half an agent would be taken for the project's own.
                with contextlib.suppress(OSError):
                    os.unlink(target)  # noqa: PTH108  # of the very name that was made
                raise
    except FileExistsError:
        return False
    except OSError as error:
        raise _unwritable(target, error) from None
    return True


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{str(path)!r} cannot be written: {error.strerror}; make it writable or choose another project")

"""A build hook for Hatch: adds the man page and shell completions of its own command line to a wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShellFiles(BuildHookInterface):  # type: ignore[misc]
    """Adds the files to the wheel's data. The parser and its options need only the standard library."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path[:0] = [self.root, str(Path(self.root) / "core")]
        from tools import shell_files

        build_data["shared_data"] |= shell_files.write(Path(self.root) / "build" / "shell", self.metadata.version)

"""What the agents' workflow costs beside its model: reading its agents, and its searches of a large project."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from system2.agents import SHIPPED, AgentLibrary
from system2.converse import ToolUseRequest
from system2.toolbox import Toolbox
from tests.benchmarks.measure import best_of
from tests.system2.kit import Bench, agent

FILES = 10_000
LINES = 40
ROUNDS = 5
LIMITS = {"13 agents are read": 0.1, "Grep": 1.0, "Grep, every file": 1.0, "Glob": 1.0, "Glob, every file": 1.0}
"""Seconds; the requirements allow 1 s for the agents (REQ-100) and 5 s for a tool (REQ-101)."""
_HOOKS = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: x.py\n"


def project(root: Path, files: int = FILES) -> Path:
    """Return a project of so many files in a hundred folders, with thirteen agents of its own."""
    agents = root / ".claude" / "agents"
    agents.mkdir(parents=True)
    for path in sorted(SHIPPED.glob("*.md")):
        (agents / path.name).write_text(path.read_text("utf-8").replace("---\n", f"---\n{_HOOKS}", 1), "utf-8")
    for number in range(files):
        folder = root / f"package_{number % 100}"
        folder.mkdir(exist_ok=True)
        text = "".join(f"def function_{number}_{line}(value: int) -> int: return value\n" for line in range(LINES))
        (folder / f"module_{number}.py").write_text(text)
    return root


def works(root: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured in a project."""
    toolbox = Toolbox(agent("Grep", "Glob"), Bench(root).context)

    def read_agents() -> None:
        library = AgentLibrary(root, lambda warning: None)
        assert len([library.get(name) for name in library.names()]) == 13

    def using(tool: str, pattern: str) -> Callable[[], object]:
        def use() -> None:
            assert not toolbox.use(ToolUseRequest("u", tool, {"pattern": pattern})).is_error

        return use

    return {
        "13 agents are read": read_agents,
        "Grep": using("Grep", rf"function_{FILES - 1}_\d+\("),
        "Grep, every file": using("Grep", r"def \w+_3\("),
        "Glob": using("Glob", f"**/module_{FILES - 1}.py"),
        "Glob, every file": using("Glob", "**/*"),
    }


def report() -> None:
    """Print the table."""
    print(f"system2 in a project of {FILES:,} files (best of {ROUNDS}; load {os.getloadavg()[0]:.1f})")
    print(f"{'':<20} {'seconds':>8}  limit")
    with tempfile.TemporaryDirectory(prefix="aeon-bench-") as folder:
        for name, seconds in best_of(ROUNDS, works(project(Path(folder)))).items():
            print(f"{name:<20} {seconds:>8.3f}  {LIMITS[name]:g}, {'kept' if seconds < LIMITS[name] else 'MISSED'}")
    print()

"""What the simulated agents write: short, complete documents about the task, and a module with its test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from system2.simulated.task import Wanted

NOTE = "> Written by the simulated model: it shows how the workflow goes, and does not do the work.\n"


def document(path: str, wanted: Wanted, files: Sequence[str]) -> str:
    """Return the text of a document by its path; `files` are those of the project."""
    title, sections = _DOCUMENTS.get(path, _any)(wanted, files)
    return "\n".join([f"# {title}", "", NOTE, *(f"## {head}\n\n{text}\n" for head, text in sections)])


def module(wanted: Wanted) -> str:
    """Return the module that the simulated executor writes."""
    return (
        f'"""Stands for the work on a task. Written by the simulated model."""\n\n'
        f"TASK = {wanted.task!r}\n\n\n"
        f"def describe() -> str:\n"
        f'    """Return what the task is."""\n'
        f"    return TASK\n"
    )


def module_test(path: str, wanted: Wanted) -> str:
    """Return the test of that module, which runs with pytest and alone."""
    name = f"test_{wanted.slug}_says_its_task"
    return (
        f"import runpy\nfrom pathlib import Path\n\n"
        f"MODULE = Path(__file__).parents[1] / {path!r}\n\n\n"
        f"def {name}() -> None:\n"
        f'    assert runpy.run_path(str(MODULE))["describe"]() == {wanted.task!r}\n\n\n'
        f'if __name__ == "__main__":\n    {name}()\n'
    )


def log_entry(agent: str, blockers: Sequence[str], left_open: str) -> str:
    """Return what an agent adds to the log of the checks."""
    result = "blockers" if blockers else "pass"
    found = "; ".join(blockers) or "none"
    return (
        f"## {agent}\n- Result: {result}\n- Checked: the changed files\n- Blockers: {found}\n- Left open: {left_open}\n"
    )


def _lines(*lines: str) -> str:
    return "\n".join(lines)


Document = tuple[str, list[tuple[str, str]]]
_NEEDED = _lines(
    "- executor: yes",
    "- test-engineer: yes",
    "- code-reviewer: yes",
    "- eval-engineer: no, no prompt or model changes",
    "- mcp-toolsmith: no, no tools for models are built",
    "- postmortem-scribe: no, there was no incident",
)


def _scope(wanted: Wanted, files: Sequence[str]) -> Document:
    there = "\n".join(f"- `{path}`" for path in files[:20]) or "The repository is empty."
    more = f"\n- and {len(files) - 20:,} more" if len(files) > 20 else ""
    return "Scope", [
        ("Task", wanted.task),
        ("What is there", there + more),
        ("Commands", "| command | purpose | source |\n| --- | --- | --- |\n| not found | test | – |"),
        ("In scope", f"- {wanted.task}"),
        ("Out of scope", "- releases and deployments"),
        ("Who is needed", _NEEDED),
        ("Open questions", "- none that would change the scope"),
    ]


def _context(wanted: Wanted, _: Sequence[str]) -> Document:
    return "Context", [
        ("Problem", f"There is no such thing yet: {wanted.task}"),
        ("Goals", "- G1: the task is described by code that can be run. Measured by: its test passes."),
        ("Not goals", "- anything that the task does not name"),
        ("Acceptance criteria", "- AC-1 (G1): `describe()` returns the task."),
        ("Open questions", "- none"),
    ]


def _requirements(*_: object) -> Document:
    return "Requirements", [
        (
            "Functions",
            _lines(
                "| id | requirement | priority | traces to |",
                "| --- | --- | --- | --- |",
                "| REQ-001 | The module shall return the task in the person's words. | must | G1, AC-1 |",
            ),
        ),
        ("Validation", "- REQ-001: a unit test compares the two texts."),
    ]


def _design(wanted: Wanted, _: Sequence[str]) -> Document:
    return "Design", [
        ("Overview", "One module with one function, and its test."),
        ("Parts", f"- `src/{wanted.slug}.py`: the task as text (new)\n- `tests/test_{wanted.slug}.py`: its test (new)"),
        ("Interfaces", "`describe() -> str`"),
        ("Decisions", "- AD-1: plain text rather than a file of data, as nothing else reads it."),
        ("Verification", "- REQ-001: the test"),
    ]


def _tasks(wanted: Wanted, _: Sequence[str]) -> Document:
    return "Tasks", [
        (
            "TASK-001 The module says its task",
            _lines(
                f"- **Files**: `src/{wanted.slug}.py`, `tests/test_{wanted.slug}.py`",
                "- **Depends on**: none",
                f"- **Verification**: `python3 tests/test_{wanted.slug}.py` ends with exit code 0",
                "- **Requirements**: REQ-001",
                "- **Size**: S",
            ),
        )
    ]


def _report(title: str) -> Callable[[Wanted, Sequence[str]], Document]:
    def made(wanted: Wanted, files: Sequence[str]) -> Document:
        looked = "\n".join(f"- `{path}`" for path in files if wanted.slug in path) or "- no file of the task"
        return title, [("Looked at", looked), ("Findings", "- none")]

    return made


def _any(wanted: Wanted, _: Sequence[str]) -> Document:
    return "Notes", [("Task", wanted.task)]


_DOCUMENTS: dict[str, Callable[[Wanted, Sequence[str]], Document]] = {
    "spec/scope.md": _scope,
    "spec/context.md": _context,
    "spec/requirements.md": _requirements,
    "spec/design.md": _design,
    "spec/tasks.md": _tasks,
    "spec/test-report.md": _report("Test report"),
    "spec/security-review.md": _report("Security review"),
    "spec/evals.md": _report("Evaluation"),
    "spec/release-notes.md": _report("Release notes"),
    "spec/code-review.md": _report("Code review"),
    "spec/postmortem.md": _report("Postmortem"),
    "spec/mcp-tools.md": _report("Tools"),
}

"""A plan in a person's editor: it comes back as it was left, and nothing that was typed is lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.json_safe import clean_text
from aeon_core.plan.files import PlanEdit
from aeon_core.plan.parsing import parse_plan
from aeon_tui.sessions.approval_edits import edit_plan, load_edited_plan, plan_yaml
from tests.fakes import add, steps

STEPS = parse_plan(
    {
        "goal": "sums",
        "steps": [
            {**steps(add(5, 10))["steps"][0], "status": "complete"},
            {"step_id": "s2", "description": "say it\nin two lines", "agent": "llm"},
        ],
    },
    fresh=False,
)
PLAN = PlanEdit(STEPS, ["The sum is given.", "2"])


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, name: str = "VISUAL") -> None:
    """Let a shell script be the person; the file is its `$1`."""
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv(name, f"'{path}'")


def kept(folder: Path) -> list[Path]:
    return list(folder.glob("aeon-plan-*.yml"))


texts = st.text(max_size=40).map(clean_text).filter(lambda text: bool(text.strip()))


@example(goal="a\nb\x85c", descriptions=["A\x85"], value={"k\x85": "\u2028"})
@given(
    goal=texts,
    descriptions=st.lists(texts, min_size=1, max_size=4),
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    ),
)
def test_a_written_plan_is_read_back_unchanged(goal: str, descriptions: list[str], value: object) -> None:
    described = [
        {"step_id": f"s{number}", "description": text, "tool": "t", "arguments": {"value": value}}
        for number, text in enumerate(descriptions)
    ]
    wanted = [" ".join(text.split()) for text in descriptions]
    plan = PlanEdit(parse_plan({"goal": goal, "steps": described}), list(dict.fromkeys(wanted)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.yml"
        path.write_text(plan_yaml(plan), encoding="utf-8")
        assert load_edited_plan(path) == plan
        path.write_text(plan_yaml(PlanEdit(plan.plan)), encoding="utf-8")
        assert load_edited_plan(path) == PlanEdit(plan.plan)


@pytest.mark.parametrize("text", ["1e3", "010", "on", "2026-01-31", "null", "True", "~", "- a", "a: b", "x # y", " x "])
def test_a_string_that_looks_like_another_type_stays_a_string(tmp_path: Path, text: str) -> None:
    plan = parse_plan(steps({"description": text, "agent": "llm"}))
    path = tmp_path / "plan.yml"
    path.write_text(plan_yaml(PlanEdit(plan, [text.strip()])))
    edit = load_edited_plan(path)
    assert edit.plan is not None
    assert (edit.plan.steps[0].description, edit.requirements) == (plan.steps[0].description, [text.strip()])


def test_an_edited_plan_comes_back_with_what_was_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, 'cp "$1" shown; sed -i \'s/in two lines/in three/\' "$1"')
    monkeypatch.chdir(tmp_path)
    edit, draft = edit_plan(PLAN, "The plan of r\x1b[2J")
    assert edit is not None
    assert edit.plan is not None
    assert [step.description for step in edit.plan.steps] == ["do part 1", "say it\nin three"]
    assert edit.plan.steps[0].status == "complete"
    assert edit.requirements == PLAN.requirements
    first, *_, last = (tmp_path / "shown").read_text().splitlines()
    assert first == "# The plan of r\\x1b[2J."
    assert last == "  agent: llm"
    assert kept(tmp_path) == [draft.file]
    assert draft.file.stat().st_mode & 0o777 == 0o600
    draft.forget()
    assert kept(tmp_path) == []


def test_visual_comes_before_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "false")
    editor(tmp_path, monkeypatch, "true")
    assert edit_plan(PLAN, "x")[0] is None, "nothing was changed"


def test_an_invalid_plan_is_kept_and_its_file_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "sed -i 's/step_id: s2/step_idd: s2/' \"$1\"", "EDITOR")
    with pytest.raises(UsageError) as caught:
        edit_plan(PLAN, "x")
    (file,) = kept(tmp_path)
    assert "step_idd: s2" in file.read_text()
    assert f"{str(file)!r} is not a valid plan: steps[1]: unknown key" in caught.value.message
    assert caught.value.message.endswith(f"; fix it there and use --plan {file}")


def test_an_emptied_file_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, 'grep \'^#\' "$1" > left; echo >> left; cat left > "$1"')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="was emptied in the editor; cancelled"):
        edit_plan(PLAN, "x")
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "said"), [("exit 3", "ended with code 3"), ("kill -9 $$", "was killed by signal 9")]
)
def test_an_editor_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    editor(tmp_path, monkeypatch, script)
    with pytest.raises(UsageError) as caught:
        edit_plan(PLAN, "x")
    (file,) = kept(tmp_path)
    assert caught.value.message == f"the editor {said}; nothing was done, your plan is in {str(file)!r}"
    assert load_edited_plan(file) == PLAN


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("", "no editor is set; set VISUAL or EDITOR"),
        ("'vi", "is not a command"),
        ("/no/vi", "cannot start the editor '/no/vi'"),
    ],
)
def test_without_an_editor_the_message_names_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, said: str
) -> None:
    monkeypatch.setenv("EDITOR", named)
    with pytest.raises(UsageError, match=said):
        edit_plan(PLAN, "x")
    assert kept(tmp_path) == []


def test_a_file_with_a_fresh_plan_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"goal": "g", "steps": [{"step_id": "a", "description": "d", "agent": "llm"}]}')
    edit = load_edited_plan(path)
    assert edit.plan is not None
    assert (edit.plan.steps[0].status, edit.requirements) == ("pending", None)


def test_requirements_alone_leave_the_plan_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "wanted.yml"
    path.write_text("requirements:\n  - Each figure\n    is sourced.\n  - It fits on a page.\n")
    assert load_edited_plan(path) == PlanEdit(None, ["Each figure is sourced.", "It fits on a page."])
    path.write_text("requirements:\n  - [x]\n")
    with pytest.raises(
        UsageError, match=r"is not a valid plan: requirements\[0\]: expected a sentence, got an array of 1$"
    ):
        load_edited_plan(path)

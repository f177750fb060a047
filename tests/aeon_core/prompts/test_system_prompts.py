"""The prompts that ship: one for each purpose, short, with what the specification asks to be said."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.errors import UsageError
from aeon_core.llm.base import Purpose
from aeon_core.prompts import build_request, check_prompts, system_prompt
from tests.aeon_core.kernel.test_passes import PROFILE, TASK, model
from tests.fakes import add, call, judged, steps

LONGEST: dict[Purpose, int] = {"judge": 4000, "profile": 2300, "refine": 2200}
"""Characters of those that say more than the others: examples, dimensions, kinds of actions."""


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_a_prompt_begins_with_its_purpose_and_is_short(purpose: Purpose) -> None:
    first, blank, *rest = system_prompt(purpose).splitlines()

    assert (first, blank) == (f"Aeon {purpose}", "")
    assert 200 < len("\n".join(rest)) < LONGEST.get(purpose, 2000)
    assert max(map(len, rest)) <= 125


def test_the_plan_prompt_names_the_form_and_forbids_invented_tools() -> None:
    text = " ".join(system_prompt("plan").split())

    for key in ("goal", "steps", "id", "parent", "description", "tool", "agent", "arguments", "depends_on"):
        assert f'"{key}"' in text
    assert "Use only tools listed in `<tools>`; never invent one." in text
    assert '`agent` "llm"' in text


def test_the_repair_prompt_is_shorter_and_forbids_new_meaning() -> None:
    text = " ".join(system_prompt("repair").split())

    assert len(text) < len(system_prompt("plan"))
    assert "Keep every value that is there, under its name and in its place" in text


def test_a_prompt_in_the_users_folder_replaces_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("Plan it my way.\n", encoding="utf-8")

    assert system_prompt("plan", tmp_path) == "Aeon plan\n\nPlan it my way.\n"
    assert system_prompt("reason", tmp_path) == system_prompt("reason")


def test_an_unreadable_prompt_is_named(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_bytes(b"\xff\xfe\xff")

    with pytest.raises(UsageError, match=r"plan\.md' is not UTF-8 text"):
        system_prompt("plan", tmp_path)


def test_empty_sections_are_left_out_and_the_others_keep_their_order() -> None:
    request = build_request("plan", {"task": "t", "tools": "", "ttl": "1"})

    assert request.messages == [{"role": "user", "content": "<task>\nt\n</task>\n\n<ttl>\n1\n</ttl>"}]


def test_every_purpose_uses_the_prompts_of_a_folder(tmp_path: Path) -> None:
    for purpose in get_args(Purpose):
        (tmp_path / f"{purpose}.md").write_text(f"My own {purpose} prompt.")
    scripted = model(
        profile={**PROFILE, "reasoning_depth": "high"},
        plan=steps(add(1, 2), {"tool": "calculator"}, {"agent": "llm"}, {"tool": "nope"}),
        tool_call=call("calculator", operation="divide", a=1, b=2),
        reason="done",
        fallback="by hand",
        repair="no",
        judge=lambda request: judged(request, met="no"),
        review={"issues": []},
    )
    config = RunConfig(durability="off", prompts_dir=tmp_path, tools=[])
    Orchestrator(scripted, config=config, journal=False).run(TASK)
    assert {(request.purpose, request.system.strip()) for request in scripted.requests} == {
        (purpose, f"Aeon {purpose}\n\nMy own {purpose} prompt.") for purpose in get_args(Purpose)
    }
    assert system_prompt("judge", str(tmp_path)) == "Aeon judge\n\nMy own judge prompt.\n"


@pytest.mark.parametrize("name", ["planer.md", "Judge.md", "plan.txt", "tool-call.markdown"])
def test_a_prompt_whose_file_has_another_name_is_reported(tmp_path: Path, name: str) -> None:
    for known in ("plan.md", "README.md", "__init__.py", "plan.md~"):
        (tmp_path / known).write_text("Mine.")
    check_prompts(tmp_path)
    (tmp_path / name).write_text("Mine.")
    with pytest.raises(UsageError, match="would not be used, since no prompt has that name; rename or move it") as told:
        check_prompts(tmp_path)
    assert str(tmp_path / name) in told.value.message
    assert "the prompts are profile.md, plan.md, tool_call.md, reason.md" in told.value.message

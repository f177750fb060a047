"""A plan and its requirements in a person's own editor, as YAML; what was typed is kept until it has been used."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from aeon_core.errors import UsageError, ValidationError
from aeon_core.plan.edit import PlanEdit, parse_plan_edit
from aeon_core.plan.parsing import read_plan_data
from aeon_tui.platform.yaml_draft import DraftForm, YamlDraft, as_yaml

HINT = """\
# Finished steps that you do not change are not run again; to rerun one, give it `status: pending`.
"""
_PROBLEMS = 3


@dataclass
class EditedPlan:
    """What a person made of a plan. `edit` is None where nothing was changed; `file` keeps what was typed."""

    edit: PlanEdit | None
    file: Path

    def forget(self) -> None:
        """Remove the file: the plan was used."""
        with contextlib.suppress(OSError):
            self.file.unlink()


def edit_plan(plan: PlanEdit, what: str) -> EditedPlan:
    """Open a plan in `$VISUAL`, else `$EDITOR`, and return it as it was left; `what` says what it is of.

    Raises UsageError where there is no editor, it fails, or what it left is no plan: then the file is kept and named.
    """
    draft = YamlDraft(PLAN, plan, what)
    return EditedPlan(draft.edit("fix it there and use --plan {file}"), draft.file)


def load_edited_plan(path: Path) -> PlanEdit:
    """Return the plan of a JSON or YAML file, in which steps may have been executed, and its `requirements`, if any.

    Raises UsageError, in one line.
    """
    data = read_plan_data(path)
    try:
        return parse_plan_edit(data)
    except ValidationError as error:
        problems = error.context["problems"]
        more = f"; and {len(problems) - _PROBLEMS} more" if len(problems) > _PROBLEMS else ""
        raise UsageError(f"{str(path)!r} is not a valid plan: {'; '.join(problems[:_PROBLEMS])}{more}") from None


def plan_yaml(plan: PlanEdit) -> str:
    """Return a plan as YAML that `load_edited_plan` reads as the same plan."""
    return as_yaml(plan.whole())


PLAN = DraftForm("plan", plan_yaml, load_edited_plan, HINT, "use --plan FILE")
"""How a plan is edited."""

"""What the panes show equals the journal: it is folded here independently, and compared with the screen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from aeon_core import Orchestrator, RunConfig
from aeon_core.runs.fork import Fork
from aeon_core.runs.resume import resume
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources.base import RecordSource
from aeon_tui.sources.journal import JournalSource
from aeon_tui.sources.live import LiveSource
from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.issues import IssuesPane
from aeon_widgets.outcome import Outcome
from aeon_widgets.pass_line import PassLine
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepPane, StepText
from aeon_widgets.ttl_gauge import TTLGauge
from aeon_widgets.virtual_list import LinesView
from tests.aeon_core.kernel.test_passes import MENDED, NOTHING, TASK, model, plan
from tests.aeon_tui.own_fold import OwnFold, Record, records_of
from tests.recorded_runs import RUNS
from tests.sampling import sample
from tests.waiting import PATIENCE, until

SIZE = (200, 90)
"""Room for every pane with all that it says."""
ICONS = {"pending": "○", "running": "▶", "complete": "✔", "failed": "✖", "invalid": "⊘", "stopped": "◼"}
SEVERITY = {"high": "✖", "medium": "⚠", "low": "·"}
LOOSE = {
    "profile": "assess the task",
    "plan": "make the plan",
    "review": "review the plan",
    "judge": "evaluate",
    "refine": "refine the plan",
}
MET = {"yes": "✔", "partly": "◐", "no": "✖"}


class Panes:
    """What can be read on a run's screen."""

    def __init__(self, app: AeonApp, pilot: Pilot[None], live: bool) -> None:
        self.app, self.pilot, self.live = app, pilot, live
        assert isinstance(app.screen, RunScreen)
        self.screen: RunScreen = app.screen

    def lines(self, kind: type[Widget]) -> list[str]:
        """Return the drawn lines of a pane, its borders and titles included; none where it is not on screen."""
        region = self.screen.query_one(kind).region
        rows = self.screen._compositor._render_chops(region, lambda y: region.y <= y < region.bottom)
        return [
            "".join(strip.text for x, strip in row.items() if region.x <= x < region.right)
            for row in rows[region.y : region.bottom]
        ]

    def text(self, kind: type[Widget]) -> str:
        """Return what a pane says, without the white space: it may be wrapped anywhere."""
        return packed("".join(line.strip("│╭╮╰╯─ ") for line in self.lines(kind)))

    def all_of(self, kind: type[LinesView]) -> list[str]:
        """Return every line of a pane as it is drawn, scrolled to or not."""
        pane = self.screen.query_one(kind)
        top = pane.scroll_offset.y
        return [pane.render_line(index - top).text.strip() for index in range(pane.line_count)]

    async def open(self, step_id: str, tab: int) -> str:
        self.screen.query_one(PlanTree).select(RowKey("step", step_id))
        self.screen.query_one(StepPane).tab = tab
        await self.pilot.pause()
        return self.text(StepPane) + packed("".join(self.all_of(StepText)))


def packed(text: str) -> str:
    return "".join(text.replace("\ud800", "\\ud800").split())


def floored(score: float) -> str:
    return f"{math.floor(score * 100 + 1e-9) / 100:.2f}"


async def compare(panes: Panes, run: OwnFold, *, opened: bool = True) -> None:
    """Fail where a pane says something else than the journal; `opened` looks into every step, too."""
    check_header(panes, run)
    tree = panes.screen.query_one(PlanTree)
    for row in list(tree._folds):
        tree._unfold(row)
    await panes.pilot.pause()
    check_plan(panes, run)
    check_ttl(panes, run)
    check_passes(panes, run)
    check_repairs(panes, run)
    check_issues(panes, run)
    check_outcome(panes, run)
    for step_id in run.steps if opened else ():
        await check_step(panes, run, step_id)


def check_header(panes: Panes, run: OwnFold) -> None:
    first, second = panes.lines(RunHeader)
    status = run.result["status"] if run.result is not None else "running" if panes.live else "interrupted"
    assert first.rstrip().endswith(status.replace("_", " ").replace("ttl", "TTL"))
    assert " ".join(run.started["task"].split())[:60] in first
    assert run.model in second
    assert ("SIMULATED" in second) == run.started.get("simulated", False)


def shown_status(status: str, panes: Panes, run: OwnFold) -> str:
    return "stopped" if status == "running" and (run.result is not None or not panes.live) else status


def check_plan(panes: Panes, run: OwnFold) -> None:
    title, *rows = [line.strip("│╭╮╰╯─ ") for line in panes.lines(PlanTree)]
    done, wanted = run.done
    assert (f"Plan {done}/{wanted} done" in title) == bool(run.steps)
    rows = [row for row in rows if row]
    for step_id, step in run.steps.items():
        status = shown_status(step.status, panes, run)
        (row,) = [row for row in rows if row.startswith(f"{ICONS[status]} {step_id} ")]
        rows.remove(row)
        assert row.endswith(f" {status}")
        marks = row.removesuffix(status).rstrip()
        assert (" ✎" in marks.replace(f"✎{run.refined(step_id)}", "")) == step.repaired, row
        assert (f"✎{run.refined(step_id)}" in marks) == bool(run.refined(step_id)), row
        if issues := run.open_issues(step_id):
            assert marks.endswith(f"{SEVERITY[issues[0]['severity']]}{len(issues)}"), row
    loose = {LOOSE.get(purpose, "write the answer") for purpose, _ in run.loose}
    rows = [row for row in rows if not row.startswith("▾")]
    assert {next(name for name in LOOSE_NAMES if name in row) for row in rows} == loose


LOOSE_NAMES = [*LOOSE.values(), "write the answer"]


def check_ttl(panes: Panes, run: OwnFold) -> None:
    told = panes.text(TTLGauge)
    assert f"calls{run.calls:,}" in told
    if not run.ttl:
        return
    cycles = "cycle" if run.ttl["allocated"] == 1 else "cycles"
    assert packed(f"{run.ttl['remaining']} of {run.ttl['allocated']} {cycles} left") in told
    assert packed(f"{run.ttl['spent']} spent") in told
    usage = run.ttl["usage"]
    assert packed(f"{usage.get('input_tokens', 0):,} in, {usage.get('output_tokens', 0):,} out") in told
    assert packed(cost(run)) in told


def cost(run: OwnFold) -> str:
    usd = run.ttl["cost_usd"]
    if usd is None:
        return "unknown"
    return f"${usd:.4f}" if usd else "$0.00"


def check_passes(panes: Panes, run: OwnFold) -> None:
    if run.started["config"].get("single_pass"):
        return
    line = panes.lines(PassLine)[0].strip()
    in_progress = panes.live and run.result is None
    shown = {number: each for number, each in run.passes.items() if each.phases}
    for number, each in shown.items():
        phases = " ─ ".join(name if ended else f"{'▶' if in_progress else '◼'} {name}" for name, ended in each.phases)
        assert f"{number} {phases}" in line or f"{number} ✖" in line or f"{number} ✔" in line, line
        if each.assessment is not None:
            scores = [floored(each.assessment[f"{name}_score"]) for name in ("completeness", "coherence")]
            icon = "✔" if each.assessment["converged"] else "✖"
            plain, named = f"{icon} {scores[0]} {scores[1]}", f"{icon} complete {scores[0]} coherent {scores[1]}"
            assert plain in line or named in line, line
    last = next((each.assessment for each in reversed(run.passes.values()) if each.assessment is not None), None)
    if last is not None:
        check_assessment(packed("".join(panes.all_of(ConvergencePane))), last)


def check_assessment(told: str, last: Record) -> None:
    for label, name in (("complete", "completeness"), ("coherent", "coherence")):
        assert label in told
        assert floored(last[f"{name}_score"]) in told
    for name, ok in last["consistency_status"].items():
        assert f"{'✔' if ok else '✖'}{name}" in told
    for each in last["requirements"]:
        assert packed(f"{MET[each['met']]} {each['text']} “{each['evidence']}”") in told
    unmet = [f"requirement {each['n']} is " for each in last["requirements"] if each["met"] != "yes"]
    for found in last["detected_issues"]:
        assert packed(found) in told or found.startswith(tuple(unmet)), found


def check_repairs(panes: Panes, run: OwnFold) -> None:
    if not run.repairs:
        return
    assert f"Repairs {len(run.repairs)}" in panes.lines(RepairsPane)[0]
    rows = panes.all_of(RepairsPane)
    assert [row[0] for row in rows] == ["✖" if each.get("error") else "✔" for each in run.repairs]
    assert all((each.get("step_id") or "") in row for each, row in zip(run.repairs, rows, strict=True))


def check_issues(panes: Panes, run: OwnFold) -> None:
    if run.started["config"].get("single_pass"):
        return
    title, *rows = [line.strip("│╭╮╰╯─ ") for line in panes.lines(IssuesPane)]
    assert f"Issues {len(run.issues)}" in title
    heads = [row for row in rows if any(row.startswith(f"{icon} {name} ") for name, icon in SEVERITY.items())]
    for issue, head in zip(run.issues, heads, strict=True):
        assert head.startswith(f"{SEVERITY[issue['severity']]} {issue['severity']} ")
        assert issue["type"].replace("do_say", "do/say").replace("_", " ") in head
        assert (issue["location"].get("step_id") or "") in head


def check_outcome(panes: Panes, run: OwnFold) -> None:
    if run.result is None:
        return
    told = packed("".join(panes.all_of(Outcome)))
    assert packed(run.result["answer"] or "")[:300] in told
    if run.result["error"] is not None and run.result["status"] != "aborted":
        assert packed(run.result["error"]["message"])[:300] in told
    for question in run.result["follow_up_questions"]:
        assert packed(question) in told


async def check_step(panes: Panes, run: OwnFold, step_id: str) -> None:
    step = run.steps[step_id]
    status = shown_status(step.status, panes, run)
    told = await panes.open(step_id, 0)
    assert f"Step{step_id}·{ICONS[status]}{status}" in told
    assert packed(step.description) in told
    for error in step.errors:
        assert f"✖{packed(error)}" in told
    if step.output is not None:
        assert packed(readable(step.output))[:600] in told
    if step.repairs:
        assert f"Repairs{step.repairs}" in told
    if step.prompts:
        assert packed(step.prompts[0])[:300] in await panes.open(step_id, 1)
    if step.arguments:
        assert packed(readable(step.arguments[-1]))[:300] in await panes.open(step_id, 2)


def readable(output: dict[str, Any]) -> str:
    if output.keys() == {"text"} and isinstance(output["text"], str):
        return output["text"]
    return json.dumps(output, ensure_ascii=False)


async def on_screen(source: RecordSource, act: Callable[[Panes], Any], *, live: bool) -> None:
    app = AeonApp(Path("unused"))
    app.first_screen = RunScreen(source, clock=lambda: datetime(2026, 11, 21, tzinfo=UTC))
    async with app.run_test(size=SIZE) as pilot:
        await act(Panes(app, pilot, live))


async def show_past(path: Path) -> None:
    """Compare the screen of a run that is over, or was left, with its journal."""
    run = OwnFold(records_of(path))
    source = JournalSource(path)
    source.wait(PATIENCE)

    async def act(panes: Panes) -> None:
        def ended() -> bool:
            panes.screen.tick()
            return source.ended

        await until(panes.pilot, ended)
        await panes.pilot.pause()
        await compare(panes, run)

    await on_screen(source, act, live=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sample(RUNS, 2))
async def test_a_past_run_matches_its_journal(tmp_path: Path, name: str, no_pauses: None) -> None:
    path = tmp_path / "r.jsonl"
    RUNS[name](path)
    await show_past(path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", sample(["one-pass", "given", "passes", "open-task", "unreadable", "gated", "budget"], 1)
)
async def test_a_live_run_matches_its_journal_at_any_moment(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.jsonl"
    RUNS[name](path)
    records = records_of(path)
    cuts = sorted({*range(7, len(records), max(1, len(records) // 5)), len(records)})
    run, source = OwnFold(), LiveSource(path)

    async def act(panes: Panes) -> None:
        begun = 0
        for cut in cuts:
            for record in records[begun:cut]:
                run.apply(record)
                source.put(json.dumps(record).encode())
            begun = cut
            while source._lines:
                panes.screen.tick()
            panes.screen.tick()
            await panes.pilot.pause()
            await compare(panes, run, opened=cut in (cuts[len(cuts) // 2], cuts[-1]))

    await on_screen(source, act, live=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sample(["one-pass", "passes", "open-task"], 1))
@pytest.mark.parametrize("part", [0.4, 0.8])
async def test_an_interrupted_run_is_shown_as_far_as_its_journal_goes(tmp_path: Path, name: str, part: float) -> None:
    path = tmp_path / "r.jsonl"
    RUNS[name](path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: int(part * len(lines))]))
    await show_past(path)


def two_passes() -> Any:
    return model(plan=plan(by=0), refine=MENDED, answer="The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5.")


@pytest.mark.parametrize("part", sample([0.2, 0.5, 0.8], 1))
async def test_a_resumed_run_is_shown_without_superseded_records(tmp_path: Path, part: float) -> None:
    path = tmp_path / "r.jsonl"
    Orchestrator(two_passes(), config=RunConfig(durability="off"), journal=path).run(TASK)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: int(part * len(lines))]) + lines[-1][:30])
    resume(path, two_passes())
    await show_past(path)


@pytest.mark.exhaustive
async def test_an_expired_run_with_more_cycles_is_shown_continued(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Orchestrator(two_passes(), config=RunConfig(durability="off", ttl=5), journal=path).run(TASK)
    before = OwnFold(records_of(path))
    assert before.result is not None
    assert before.result["status"] == "ttl_expired"
    await show_past(path)
    resume(path, two_passes(), options={"ttl": 30})
    await show_past(path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [1, 2])
async def test_a_fork_is_shown_with_its_inherited_records(tmp_path: Path, number: int) -> None:
    parent, path = tmp_path / "parent.jsonl", tmp_path / "fork.jsonl"
    Orchestrator(two_passes(), config=RunConfig(durability="off"), journal=parent).run(TASK)
    Fork(parent, number, model(refine=NOTHING, answer="another one"), journal=path).run()
    assert records_of(path)[0]["parent"]["pass"] == number
    await show_past(path)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model that is asked again be asked at once."""
    monkeypatch.setattr("aeon_core.llm.errors._wait", lambda _: 0.0)

"""Agreement of a judge with labels: on labelled outcomes, and over the runs of a directory (contract: calibrate)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.convergence import ConvergenceEngine
from aeon_core.errors import LLMError
from aeon_core.journal.labels import label_run
from aeon_core.judge import agreement
from aeon_core.judge.agreement import (
    JudgedLabel,
    LabelledOutcome,
    LabelledRuns,
    agreement_by_group,
    agreement_of,
    measure,
    quote_of,
)
from aeon_core.llm.base import LLMRequest, ModelChain
from tests.aeon_core.judge.test_labels import outcome
from tests.aeon_core.kernel.test_passes import TASK, model
from tests.aeon_core.kernel.test_reviews import two_passes
from tests.fakes import ScriptedModel, judged, section


def compared(label: Any, said: Any, group: str = "en") -> JudgedLabel:
    return JudgedLabel("x", group, label, said, "", "")


def test_agreement_counts_each_kind_of_error() -> None:
    found = agreement_of(
        [
            *[compared("good", "good")] * 20,
            *[compared("good", "bad")] * 5,
            *[compared("bad", "good")] * 10,
            *[compared("bad", "bad")] * 15,
        ]
    )
    assert (found.results, found.agreed, found.false_accepts, found.false_rejects) == (50, 35, 10, 5)
    assert found.agreement == 0.7
    assert found.kappa == pytest.approx(0.4)


def test_an_unusable_verdict_agrees_with_nothing() -> None:
    found = agreement_of([compared("good", "good"), compared("bad", "bad"), compared("bad", None)])
    assert (found.agreed, found.unusable, found.false_accepts, found.false_rejects) == (2, 1, 0, 0)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.kappa == 1


def test_kappa_and_agreement_are_unknown_without_information() -> None:
    assert agreement_of([compared("good", "good")]).kappa is None
    empty = agreement_of([]).as_dict()
    assert (empty["results"], empty["agreement"], empty["kappa"]) == (0, None, None)


def test_agreement_is_counted_by_group() -> None:
    found = agreement_by_group([compared("good", "good", "hi"), compared("good", "bad", "de")])
    assert [(name, each.agreement) for name, each in found.items()] == [("de", 0.0), ("hi", 1.0)]


def labelled(count: int) -> list[LabelledOutcome]:
    """Every other one good."""
    return [
        outcome(
            id=f"sum/{number}",
            label="bad" if number % 2 else "good",
            goal=f"Add 5 and 10 ({number})",
            requirements=["the sum is given"],
            answer="16" if number % 2 else "15",
            memory=None,
            codes=[],
            flags=[],
        )
        for number in range(count)
    ]


def judge(wrong: tuple[int, ...] = ()) -> ScriptedModel:
    """Says that 15 is right, but for the outcomes in whose number it is wrong."""

    def reply(request: LLMRequest) -> dict[str, Any]:
        number = int(json.loads(section(request, "goal")).partition("(")[2].rstrip(")"))
        right = json.loads(section(request, "answer")) == "15"
        return judged(request, met="yes" if right != (number in wrong) else "no")

    return ScriptedModel(judge=reply)


def engine(scripted: ScriptedModel) -> ConvergenceEngine:
    return ConvergenceEngine(judge=scripted)


def test_a_perfect_judge_agrees_with_all() -> None:
    found = agreement_of(measure(labelled(20), engine(judge())))
    assert (found.agreement, found.kappa, found.results) == (1.0, 1.0, 20)


def test_a_judge_that_is_wrong_one_time_in_ten_agrees_with_nine_in_ten() -> None:
    found = list(measure(labelled(20), engine(judge(wrong=(4, 13)))))
    assert agreement_of(found).as_dict() == {
        "results": 20,
        "agreed": 18,
        "agreement": 0.9,
        "kappa": 0.8,
        "false_accepts": 1,
        "false_rejects": 1,
        "unusable": 0,
    }
    assert [(each.id, each.label, each.judged, each.quote) for each in found if not each.agrees] == [
        ("sum/4", "good", "bad", "15"),
        ("sum/13", "bad", "good", "16"),
    ]


def test_an_empty_reply_is_unusable_with_the_reason() -> None:
    scripted = ScriptedModel(judge=["it is fine", LLMError("it is silent")])
    first, second = measure(labelled(2), engine(scripted))
    assert (first.judged, second.judged) == (None, None)
    assert first.quote.startswith("the judge gave no usable verdict: ")
    assert "it is silent" in second.quote


def test_exact_checks_decide_without_a_judge() -> None:
    scripted = ScriptedModel(judge=lambda request: judged(request))
    (found,) = measure([outcome(answer="")], engine(scripted))
    assert (found.judged, found.label) == ("bad", "bad")
    assert scripted.requests == []


def test_the_quote_is_from_the_decisive_verdict() -> None:
    good = {"n": 1, "met": "yes", "evidence": "fifteen"}
    bad = {"n": 2, "met": "no", "evidence": "sixteen"}
    assert quote_of({"converged": True, "requirements": [good]}) == "fifteen"
    unquoted = {"n": 3, "met": "no", "evidence": ""}
    assert quote_of({"converged": False, "requirements": [good, unquoted, bad]}) == "sixteen"
    flags = {"coherent": {"ok": True, "evidence": "a"}, "answer": {"ok": False, "evidence": "b"}}
    assert quote_of({"converged": False, "requirements": [good], "metadata": {"evidence": flags}}) == "b"
    doubts = [{"stands": False, "evidence": "c"}, {"stands": True, "evidence": "d"}]
    assert quote_of({"converged": False, "requirements": [good], "metadata": {"suspicions": doubts}}) == "d"
    assert quote_of({"converged": False, "detected_issues": ["no answer"]}) == "no answer"
    assert quote_of({}) == ""


def run_in(folder: Path, name: str, scripted: ScriptedModel) -> Path:
    path = folder / f"{name}.jsonl"
    Orchestrator(scripted, config=RunConfig(durability="off"), journal=path).run(TASK)
    return path


def test_the_runs_of_a_directory_are_compared_with_their_last_labels(tmp_path: Path) -> None:
    one, two = run_in(tmp_path, "one", model()), run_in(tmp_path, "two", two_passes())
    run_in(tmp_path, "unlabelled", model())
    label_run(one, "bad")
    label_run(one, "good")
    label_run(two, "bad", "not what I asked")
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"{\n")
    found = LabelledRuns(tmp_path).comparisons()
    assert [(each.id, each.group, each.label, each.judged, each.why) for each in found] == [
        ("one pass 1", "scripted:test", "good", "good", ""),
        ("two pass 2", "scripted:test", "bad", "good", "not what I asked"),
    ]
    assert found[1].quote
    assert LabelledRuns(tmp_path).comparisons(lambda: broken.unlink(missing_ok=True) is None) == found


def test_a_different_judge_model_is_named(tmp_path: Path) -> None:
    judging = judge_of_runs("scripted:judge")
    path = tmp_path / "r.jsonl"
    Orchestrator(ModelChain([model()], judging), config=RunConfig(durability="off"), journal=path).run(TASK)
    label_run(path, "good")
    assert [each.group for each in LabelledRuns(tmp_path).comparisons()] == ["scripted:judge"]


def judge_of_runs(name: str) -> ScriptedModel:
    scripted = ScriptedModel(judge={"issues": []})
    scripted.model = name
    return scripted


def test_an_unjudged_run_does_not_count_for_the_judge(tmp_path: Path) -> None:
    path = run_in(tmp_path, "r", model(judge="it is fine", repair="so it is"))
    label_run(path, "good")
    assert LabelledRuns(tmp_path).comparisons() == []


def test_a_journal_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run_in(tmp_path, "one", model())
    label_run(path, "good")
    read: list[str] = []
    real = agreement.labelled_passes
    monkeypatch.setattr(agreement, "labelled_passes", lambda path: [read.append(path.stem), real(path)][1])
    runs = LabelledRuns(tmp_path)
    assert [each.label for each in runs.comparisons()] == ["good"]
    assert [each.label for each in runs.comparisons()] == ["good"]
    assert read == ["one"]
    label_run(path, "bad")
    assert [each.label for each in runs.comparisons()] == ["bad"]
    assert read == ["one", "one"]
    assert LabelledRuns(tmp_path / "none").comparisons() == []

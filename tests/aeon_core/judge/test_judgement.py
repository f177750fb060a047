"""Reading a judge's reply: near misses count, anything else is no judgement (contract: `judge`, `review`)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.convergence import ConvergenceAssessment, ConvergenceEngine
from aeon_core.errors import LLMError, ValidationError
from aeon_core.judge.judgement import JUDGE_SCHEMA, MAX_ISSUES, REVIEW_SCHEMA, read_judgement, read_review
from aeon_core.llm.base import LLMResponse
from aeon_core.plan.models import Plan
from tests.fakes import Reply, ScriptedModel

ANSWER = "Die Glocke wiegt 5100 kg und ist 2,4 m hoch."
ISSUE = {
    "issue_id": "j1",
    "description": "the height is missing",
    "location": {"artifact": "step", "step_id": "s1"},
    "proposed_repair": "Measure it.",
    "type": "consistency",
    "severity": "low",
}
GOOD: dict[str, Any] = {
    "requirements": [
        {"n": 1, "evidence": "wiegt 5100 kg", "met": "yes"},
        {"n": 2, "evidence": "2,4 m hoch", "met": "yes"},
    ],
    "coherent": {"evidence": "Die Glocke", "ok": True},
    "consistent": {flag: {"evidence": "5100", "ok": True} for flag in ("plan", "step", "answer", "memory")},
    "suspicions": [],
    "issues": [],
}


def assess(reply: Reply) -> ConvergenceAssessment:
    plan = Plan(goal="Wiege die Glocke", steps=[{"step_id": "s1", "description": "Wiegen", "status": "complete"}])
    return ConvergenceEngine(judge=ScriptedModel(judge=reply)).assess(
        goal=plan.goal,
        plan=plan,
        results={"s1": {"kg": 5100, "m": 2.4}},
        answer=ANSWER,
        requirements=["Das Gewicht ist genannt.", "Die Höhe ist genannt."],
    )


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    reply = copy.deepcopy(GOOD)
    change(reply)
    return reply


def met(*values: Any) -> dict[str, Any]:
    return changed(lambda r: [entry.update(met=value) for entry, value in zip(r["requirements"], values, strict=True)])


def flags(value: Any) -> dict[str, Any]:
    return {**GOOD, "consistent": value}


NEAR: dict[str, Any] = {
    "as asked": GOOD,
    "capitals": met("Yes", "YES"),
    "a full stop": met("yes.", '"yes"'),
    "true for yes": met(True, "true"),
    "numbers as text": changed(lambda r: [e.update(n=str(e["n"])) for e in r["requirements"]]),
    "numbers with a word": changed(lambda r: [e.update(n=f"requirement {e['n']}") for e in r["requirements"]]),
    "no numbers": changed(lambda r: [e.pop("n") for e in r["requirements"]]),
    "another order": changed(lambda r: r["requirements"].reverse()),
    "keys by number": {**GOOD, "requirements": {"1": GOOD["requirements"][0], "2": GOOD["requirements"][1]}},
    "words by number": {**GOOD, "requirements": {"1": "yes", "2": "yes"}},
    "bare words": {**GOOD, "requirements": ["yes", "Yes"]},
    "bare booleans": {**GOOD, "requirements": [True, True]},
    "checks without their object": {**GOOD, "coherent": True, "consistent": dict.fromkeys(GOOD["consistent"], True)},
    "one check for all flags": flags({"evidence": "5100", "ok": True}),
    "consistent alone": flags("true"),
    "a flag left out": flags({"answer": {"evidence": "5100", "ok": "True"}}),
    "yes for ok": {**GOOD, "coherent": {"evidence": "Glocke", "ok": "yes"}},
    "unknown keys": {**GOOD, "verdict": "good", "score": 0.98},
    "in an object": {"judgement": GOOD},
    "in two": {"result": {"judgement": GOOD}},
    "in a list": [GOOD],
    "fenced": f"```json\n{json.dumps(GOOD, indent=2)}\n```",
    "after thoughts": f"<think>5100 kg, right.</think>\nHere it is:\n{json.dumps(GOOD)}",
    "before prose": f"{json.dumps(GOOD)}\n\nThe answer is good.",
    "a comma too many": json.dumps(GOOD)[:-1] + ",}",
    "single quotes": str(GOOD),
    "no suspicions, no issues": {key: GOOD[key] for key in ("requirements", "coherent", "consistent")},
    "evidence as a list": changed(lambda r: r["requirements"][0].update(evidence=["5100 kg", "wiegt"])),
    "evidence as a number": changed(lambda r: r["requirements"][0].update(evidence=5100)),
    "a capital severity": {**GOOD, "issues": [{**ISSUE, "severity": "Low"}]},
    "an issue in words, at a step": {**GOOD, "issues": [{"description": "x", "location": "s1"}]},
    "nonsense among the issues": {**GOOD, "issues": [None, 5, {}, {"description": " "}]},
}


@pytest.mark.parametrize("reply", NEAR.values(), ids=NEAR.keys())
def test_a_near_miss_is_read(reply: Any) -> None:
    found = assess(reply if isinstance(reply, str | dict) else json.dumps(reply))
    assert (found.converged, found.judged, found.reason_codes) == (True, True, ["complete", "coherent", "consistent"])


def negative(reply: Any) -> Any:
    """The same reply with a verdict that is not good in each place."""
    if isinstance(reply, dict):
        return {key: negative(value) for key, value in reply.items()}
    if isinstance(reply, list):
        return [negative(value) for value in reply]
    bad = {"yes": "no", "true": "false"}
    text = bad.get(str(reply).strip(' ."').lower())
    return reply if text is None else text == "true" if isinstance(reply, bool) else text


@pytest.mark.parametrize(
    "name", [name for name, reply in NEAR.items() if not isinstance(reply, str)], ids=lambda name: name
)
def test_a_negative_near_miss_is_not_a_good_verdict(name: str) -> None:
    found = assess(json.dumps(negative(NEAR[name])))
    assert (found.converged, found.judged) == (False, True)
    assert [verdict["met"] for verdict in found.requirements] == ["no", "no"]
    assert {"incomplete", "incoherent", "inconsistent"} <= set(found.reason_codes)


NONE: dict[str, Reply] = {
    "prose": "The answer is correct and complete. All requirements are met!",
    "empty": "",
    "an empty object": "{}",
    "an empty list": "[]",
    "null": "null",
    "yes": '"yes"',
    "nonsense": "asdf {]} 42",
    "truncated": LLMResponse(text=json.dumps(GOOD)[:150], stop_reason="max_tokens"),
    "truncated at its end": LLMResponse(text=json.dumps(GOOD)[:-30], stop_reason="max_tokens"),
    "cut without a word": json.dumps(GOOD)[:150],
    "cut without a word within an issue": json.dumps({**GOOD, "issues": [{**ISSUE, "severity": "high"}]})[:-100],
    "only issues": '{"issues": []}',
    "a list of issues": json.dumps([ISSUE]),
    "a requirement is missing": json.dumps({**GOOD, "requirements": GOOD["requirements"][:1]}),
    "a word of its own": json.dumps(met("yes", "mostly")),
    "a number for a word": json.dumps(met("yes", 0.9)),
    "no coherence": json.dumps({key: value for key, value in GOOD.items() if key != "coherent"}),
    "no flags": json.dumps(flags({})),
    "a flag that is no verdict": json.dumps(flags({**GOOD["consistent"], "answer": "unsure"})),
    "another object": '{"converged": true, "score": 1.0}',
    "a refusal": LLMResponse(text="I can't help with that.", stop_reason="refusal"),
    "a call that fails": LLMError("overloaded"),
    "a broken adapter": RuntimeError("no such host"),
}


@pytest.mark.parametrize("reply", NONE.values(), ids=NONE.keys())
def test_anything_else_is_not_judged_and_never_converges(reply: Reply) -> None:
    found = assess(reply)
    assert (found.converged, found.judged, found.reason_codes) == (False, False, ["not_judged"])
    assert found.requirements == []
    [reason] = found.detected_issues
    assert reason.startswith("the judge gave no usable verdict: ")
    assert "\n" not in reason
    assert len(reason) < 400


def test_the_reason_names_what_was_wrong() -> None:
    assert assess(NONE["a call that fails"]).detected_issues == ["the judge gave no usable verdict: overloaded"]
    assert "refused: I can't help" in assess(NONE["a refusal"]).detected_issues[0]
    assert 'requirements[2].met: expected yes, partly or no, got "mostly"' in str(assess(NONE["a word of its own"]))


def test_a_number_means_its_requirement_whatever_the_order() -> None:
    reply = {**GOOD, "requirements": [{"n": "2", "met": "no"}, {"n": 1, "met": "partly"}]}
    assert [each.met for each in read_judgement(reply, 2).requirements] == ["partly", "no"]


def test_suspicions_are_read_by_number_and_may_be_left_out() -> None:
    reply = {**GOOD, "suspicions": [{"n": "2", "evidence": "x", "stands": "true"}, {"n": 1, "stands": False}]}
    judgement = read_judgement(reply, 2, 3)
    assert {n: check.ok for n, check in judgement.suspicions.items()} == {1: True, 2: False}


@pytest.mark.parametrize(
    "changed",
    [
        {"consistent": {"plan": True}},
        {"consistent": {**GOOD["consistent"], "final_answer": {"ok": False}}},
        {"consistent": {**GOOD["consistent"], "Answer": {"ok": False}}},
        {"requirements": [{"n": 1, "met": "no"}, {"n": 1, "met": "yes"}, {"n": 2, "met": "yes"}]},
        {"requirements": [{"n": 1, "Met": "no", "met": "yes"}, {"n": 2, "met": "yes"}]},
        {"issues": [{"title": "the total is wrong"}]},
    ],
    ids=["the answer's flag", "an unknown flag", "a flag twice", "a number twice", "a verdict twice", "words unknown"],
)
def test_an_ambiguous_reply_is_not_a_judgement(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read_judgement({**GOOD, **changed}, 2)


@pytest.mark.parametrize(
    "issues",
    [
        {"j1": {**ISSUE, "severity": "high"}},
        {**ISSUE, "severity": "high"},
        "the total is wrong",
        [{"message": "the total is wrong", "severity": "high"}],
        ["the total is wrong"],
    ],
    ids=["by id", "one", "a text", "another key", "texts"],
)
def test_issues_in_another_form_are_kept(issues: Any) -> None:
    assert len(read_judgement({**GOOD, "issues": issues}, 2).issues) == 1


def test_suspicions_by_number_are_confirmed() -> None:
    judgement = read_judgement({**GOOD, "suspicions": {"1": True, "2": "false"}}, 2, 2)
    assert {n: check.ok for n, check in judgement.suspicions.items()} == {1: False, 2: True}


@pytest.mark.parametrize(
    ("given_as", "read"),
    [
        ({}, ("consistency", "low", "s1", "step")),
        ({"severity": "HIGH", "type": "Do say mismatch"}, ("do_say_mismatch", "high", "s1", "step")),
        ({"severity": "fatal", "type": "style"}, ("consistency", "high", "s1", "step")),
        ({"location": {"artifact": "step", "step_id": "step s1"}}, ("consistency", "low", "s1", "step")),
        ({"location": {"artifact": "mailbox", "step_id": "s9"}}, ("consistency", "low", None, None)),
        ({"location": "answer"}, ("consistency", "low", None, "answer")),
        ({"location": None, "severity": None}, ("consistency", "medium", None, None)),
    ],
)
def test_an_issue_in_another_form_is_normalized(given_as: dict[str, Any], read: tuple[Any, ...]) -> None:
    [issue] = read_review({"issues": [{**ISSUE, **given_as}]}, steps=["s1"])
    assert (issue.type, issue.severity, issue.step_id, issue.artifact) == read


def test_texts_of_a_judge_are_short_and_harmless() -> None:
    bad = {**ISSUE, "description": "\x1b[2Jgone\nsecond\u202e \ud800", "proposed_repair": "[red]x[/red] " * 200}
    [issue] = read_review([bad])
    assert issue.description == "\\x1b[2Jgone second\\u202e \ufffd"
    assert len(issue.repair) == 500
    assert read_review([{"description": True}]) == []


def test_the_number_of_issues_is_bounded() -> None:
    assert len(read_review([ISSUE] * (MAX_ISSUES + 50))) == MAX_ISSUES


@pytest.mark.parametrize("reply", [{}, {"issues": None}, {"issues": 5}, "x", None, 7, {"verdict": "fine", "n": 1}])
def test_a_reply_without_issues_is_not_a_review(reply: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        read_review(reply)
    assert caught.value.context["problems"]


rough = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["yes", "no"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*GOOD, *GOOD["consistent"], "n", "met", "ok", "evidence", "1"]), inner)
    ),
    max_leaves=20,
)


@given(rough | st.fixed_dictionaries(dict.fromkeys(GOOD, rough)))
def test_any_reply_is_read_or_refused_with_its_problems(reply: Any) -> None:
    problems: list[str] = ["none"]
    try:
        judgement = read_judgement(reply, 2, 1, steps=["s1"])
    except ValidationError as error:
        problems = error.context["problems"]
    else:
        assert [each.n for each in judgement.requirements] == [1, 2]
        assert set(judgement.consistent) == {"plan", "step", "answer", "memory"}
    assert problems


@pytest.mark.parametrize("schema", [JUDGE_SCHEMA, REVIEW_SCHEMA])
def test_every_object_of_a_schema_is_closed_and_every_key_required(schema: Any) -> None:
    objects = [schema]
    while objects:
        each = objects.pop()
        if each.get("type") == "object":
            assert each["additionalProperties"] is False
            assert each["required"] == list(each["properties"])
            objects += each["properties"].values()
        objects += [each["items"]] if "items" in each else []


def test_the_schemas_accept_what_they_ask_for() -> None:
    nowhere = {**ISSUE, "location": {"artifact": "plan", "step_id": None}}
    suspicion = {"n": 1, "evidence": "5100", "stands": False}
    jsonschema_rs.validate(JUDGE_SCHEMA, {**GOOD, "suspicions": [suspicion], "issues": [ISSUE]})
    jsonschema_rs.validate(REVIEW_SCHEMA, {"issues": [ISSUE, nowhere]})


def test_evidence_comes_before_each_verdict() -> None:
    assert str(JUDGE_SCHEMA).count("evidence") == 2 * 7
    for entry in (JUDGE_SCHEMA["properties"][key]["items"] for key in ("requirements", "suspicions")):
        assert list(entry["properties"])[:2] == ["n", "evidence"]
    assert list(JUDGE_SCHEMA["properties"]["coherent"]["properties"]) == ["evidence", "ok"]

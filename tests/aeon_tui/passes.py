"""Runs of more than one pass as their records, with what the adaptive engine journals."""

from __future__ import annotations

from typing import Any

from tests.aeon_tui.recordings import HOSTILE, Recording

TASK = "design a REST API for invoices"
QUESTION = "Which constraints hold: audience, technology, size?"
REASON = "inferred from the task: details are missing, so it reasons deeply"
WANTED = [
    "The answer names the resources of the API.",
    "Each error reply has a code and a sentence.",
    "The design fits on one page.",
]
NOT_JUDGED = "the judge gave no usable verdict: the reply is no object"
REVISED = "completeness 0.40 was too low; more cycles for another pass"


def issue(step_id: str | None, severity: str = "high", kind: str = "specificity", **fields: Any) -> dict[str, Any]:
    return {
        "issue_id": f"i-{step_id}-{kind}",
        "type": kind,
        "severity": severity,
        "description": f"the result of {step_id} says nothing of its own",
        "location": {"artifact": "results", "step_id": step_id},
        "proposed_repair": "Split the step, one for each part.",
        **fields,
    }


def step(step_id: str, description: str, status: str = "pending", **fields: Any) -> dict[str, Any]:
    return {"step_id": step_id, "description": description, "status": status, "agent": "llm", **fields}


def judgement(*, good: bool) -> dict[str, Any]:
    """What a judge says of the answer of `converged_run`, else of `first_pass`, in the fields of a record."""
    quotes = ["invoices as its resources", "a code and a sentence for every error", "the result of s3"]
    told = ["yes", "yes", "yes"] if good else ["partly", "no", "yes"]
    evidence = quotes if good else ["Not finished.", "", "it is half a page long"]
    flags = {name: {"ok": True, "evidence": "the result of s1", "quote_found": True} for name in ("coherent", "plan")}
    flags["answer"] = {"ok": good, "evidence": quotes[0] if good else "Not finished.", "quote_found": True}
    suspicion = {"n": 1, "text": "the answer says 3, which no output has", "stands": not good, "evidence": evidence[0]}
    return {
        "judged": True,
        "requirements": [
            {"n": n, "text": text, "met": met, "evidence": words, "quote_found": "half" not in words}
            for n, (text, met, words) in enumerate(zip(WANTED, told, evidence, strict=True), start=1)
        ],
        "detected_issues": []
        if good
        else [f"requirement 2 is not met: {WANTED[1]}", "the answer says that it is not done"],
        "metadata": {
            "criteria": {"completeness": 0.8, "coherence": 0.8},
            "evidence": flags,
            "suspicions": [{**suspicion, "quote_found": True}],
        },
    }


class Passes(Recording):
    """A recording of the loop."""

    def __init__(self, task: str = TASK) -> None:
        super().__init__(task)
        self.records[0]["config"]["single_pass"] = False

    def called(self, purpose: str, text: str, step_id: str | None = None) -> None:
        self.ask(purpose, step_id)
        self.answer(purpose, text, step_id)

    def profile(self, version: int, number: int, ttl: int, reason: str) -> None:
        depth = {"reasoning_mode": "deep", "allocated_ttl": ttl, "adjustment_reason": reason}
        self.add(
            "profile",
            **{"pass": number},
            adaptive_depth=depth,
            adjustment_reason=reason,
            profile_version=version,
            reasoning_depth="high",
            information_sufficiency="low",
            raw_inference="it names little more than a kind of thing",
            requirements=WANTED,
        )

    def report(self, *issues: dict[str, Any], artifact: str = "cross_phase") -> None:
        name = f"v{len(self.records)}"
        self.add("validation", **{"pass": self.number}, validation_id=name, artifact_type=artifact, issues=list(issues))

    def assess(
        self, completeness: float, coherence: float, *codes: str, answer: bool = True, judged: bool = True
    ) -> None:
        good = codes[0] == "complete"
        self.add(
            "convergence",
            **{"pass": self.number},
            converged=codes[0] == "complete",
            reason_codes=list(codes),
            completeness_score=completeness,
            coherence_score=coherence,
            consistency_status={"plan": True, "step": True, "answer": answer, "memory": True},
            **(judgement(good=good) if judged else {"detected_issues": [NOT_JUDGED]}),
        )

    def refine(self, target: str, *, accepted: bool = True, **fields: Any) -> None:
        action = {"type": "step_modify", "target": target, "reason": "it says nothing", **fields.pop("action", {})}
        told = {"explanation": f"rewrote {target}" if accepted else "still vague", "before": [], "after": []}
        self.add("refinement", **{"pass": self.number}, action=action, accepted=accepted, **{**told, **fields})

    def notice(self, kind: str, data: dict[str, Any]) -> None:
        self.add("notice", **{"pass": self.number}, kind=kind, message=f"{kind} for a person", data=data)

    def do(self, step_id: str, text: str) -> None:
        self.step(step_id, "running")
        self.called("reason", text, step_id)
        self.step(step_id, "complete", mode="llm", output={"text": text})

    def through(self, *names: str) -> None:
        for name in names:
            self.phase(name)
            self.phase(name, "finished")


FIRST = [step("s1", "Name the parts"), step("s2", "Do it"), step("s3", "Put the parts together")]
WORDED = step("s2", "Describe each part in three sentences")
REPLACED = step(
    "s3-r1",
    "Work out the parts and put them together",
    replaces="s3",
    subplan={
        "parent_step_id": "s3-r1",
        "subplan_goal": "parts",
        "substeps": [step("s3.1", "Work out the resources"), step("s3.2", "Work out the error replies")],
    },
)


def first_pass() -> Passes:
    """A run whose first pass was found wanting, about to be refined."""
    run = Passes()
    run.phase("plan")
    run.called("profile", '{"reasoning_depth": "high"}')
    run.called("plan", '{"goal": "the goal"}')
    run.plan(*FIRST)
    run.profile(1, 1, 30, REASON)
    run.notice("questions", {"questions": [QUESTION]})
    run.report(issue("s2", "medium"), artifact="plan")
    run.called("refine", '{"actions": []}')
    run.refine("s2", before=[FIRST[1]], after=[WORDED], action={"semantic_validation_input": [issue("s2", "medium")]})
    run.plan(FIRST[0], WORDED, FIRST[2], cause="refined")
    run.phase("plan", "finished")
    run.phase("execute")
    for step_id in ("s1", "s2", "s3"):
        run.do(step_id, f"the result of {step_id}")
    run.phase("execute", "finished")
    run.phase("evaluate")
    run.called("answer", "Not finished.")
    run.called("judge", '{"issues": []}')
    run.report(issue("s3"), issue("s1", "low", "do_say_mismatch"), issue(None, "medium", "relevance"))
    run.assess(0.4, 0.6, "incomplete", "incoherent", "inconsistent", answer=False)
    run.phase("evaluate", "finished")
    run.phase("refine")
    return run


def second_pass() -> Passes:
    """The same run as its second pass executes the first substep."""
    run = first_pass()
    run.called("refine", '{"actions": []}')
    run.refine("s1", accepted=False)
    run.refine("s3", before=[FIRST[2]], after=[REPLACED], replaced={"s3": "s3-r1"})
    done = [{**each, "status": "complete"} for each in (FIRST[0], WORDED)]
    run.plan(*done, {**FIRST[2], "status": "invalid"}, REPLACED, cause="refined")
    run.profile(2, 2, 40, REVISED)
    run.ttl(40)
    run.phase("refine", "finished")
    run.add("pass", pass_number=1, phases=[])
    run.number = 2
    run.phase("execute")
    run.step("s3-r1", "running")
    run.step("s3.1", "running")
    run.ask("reason", "s3.1")
    return run


def converged_run() -> Passes:
    """The same run to its end."""
    run = second_pass()
    run.answer("reason", "invoices", "s3.1")
    run.step("s3.1", "complete", mode="llm", output={"text": "invoices"})
    run.do("s3.2", "a code and a sentence")
    run.step("s3-r1", "complete", mode="llm", output={"text": "all of it"})
    run.phase("execute", "finished")
    run.phase("evaluate")
    run.called("answer", "A REST API with invoices as its resources.")
    run.called("judge", '{"issues": []}')
    run.report()
    run.assess(1.0, 0.95, "complete", "coherent", "consistent")
    run.phase("evaluate", "finished")
    run.add("pass", pass_number=2, phases=[])
    run.finish(
        "converged",
        converged=True,
        answer="A REST API with invoices as its resources, and a code and a sentence for every error.",
        follow_up_questions=[QUESTION],
    )
    return run


def given_up_run() -> Passes:
    """A run that ends after its first pass: nothing could be refined."""
    run = first_pass()
    left = {"step_id": "s3", "cause": "refinement_limit", "reason": "refined 3 times", "attempts": 3}
    run.notice("manual_intervention", left)
    run.assess(0.4, 0.6, "incomplete", "incoherent", "no_progress")
    run.phase("refine", "finished")
    run.add("pass", pass_number=1, phases=[])
    run.finish("not_converged", answer="Not finished.", manual_intervention=[left], follow_up_questions=[QUESTION])
    return run


def unjudged_run() -> Passes:
    """A run whose first pass nothing judged; it asks a person, or ends."""
    run = first_pass()
    run.assess(0.0, 1.0, "not_judged", judged=False)
    run.phase("refine", "finished")
    run.add("pass", pass_number=1, phases=[])
    run.finish("not_converged", answer="Not finished.", follow_up_questions=[QUESTION])
    return run


def many_passes(number: int = 12) -> Passes:
    """A run that is in its last pass."""
    run = Passes()
    for run.number in range(1, number):
        run.through("execute", "evaluate", "refine")
        run.assess(0.5, 0.5, "incomplete")
        run.add("pass", pass_number=run.number, phases=[])
    run.number = number
    run.phase("execute")
    return run


def hostile_passes() -> Passes:
    """A run of passes in which every text is meant to break the screen."""
    run = Passes(HOSTILE)
    run.number = 1
    run.phase(HOSTILE)
    run.called("profile", HOSTILE)
    run.profile(1, 1, 9, HOSTILE)
    run.plan(step(HOSTILE, HOSTILE), step("s2", HOSTILE, replaces=HOSTILE), step("s3", "x" * 2_000_000))
    run.notice("questions", {"questions": [HOSTILE, 7], "more": None})
    run.notice("manual_intervention", {"step_id": HOSTILE, "cause": HOSTILE, "reason": HOSTILE, "attempts": "many"})
    run.report(issue(HOSTILE, HOSTILE, HOSTILE, description=HOSTILE, proposed_repair=HOSTILE), issue(HOSTILE))
    run.called("refine", HOSTILE)
    run.refine(HOSTILE, before=[step(HOSTILE, HOSTILE)], after=[step(HOSTILE, HOSTILE)], explanation=HOSTILE)
    run.refine(HOSTILE, accepted=False, explanation=HOSTILE, action={"reason": HOSTILE, "type": HOSTILE})
    run.assess(0.1, 0.1, HOSTILE, HOSTILE)
    run.finish("not_converged", answer=HOSTILE, follow_up_questions=[HOSTILE])
    return run

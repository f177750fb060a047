"""`aeon-tui decide`: answer what a run waits for from another terminal."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from aeon_core.approval_inbox import forget_left, how_to_decide
from aeon_core.approvals import ANSWERS, REVIEWED, ApprovalDecision, ApprovalRequest, PendingApproval, pending_approval
from aeon_core.effects.approvals import takes_requirements
from aeon_core.errors import AeonError, UsageError, reason_of
from aeon_core.journal.listing import find_run, list_runs
from aeon_core.journal.reader import head
from aeon_core.journal.summary import is_being_written, summarise
from aeon_core.journal.values import strs_of
from aeon_core.journal.view.formatting import words
from aeon_core.paths import run_command
from aeon_core.units import count
from aeon_tui.cli import options
from aeon_tui.cli.approval_prompt import print_question, question_of
from aeon_tui.cli.output import stderr, stdout
from aeon_tui.sessions.approval_broker import approval_request, submit
from aeon_tui.sessions.approval_edits import load_edit
from aeon_tui.sources.journal import tail_view
from aeon_tui.sources.run_index import is_workflow
from aeon_widgets.run_question import given_answers, headline
from aeon_widgets.text import one_line

REASONED = ("reject", "abort", "accept")
"""Decisions that are recorded with a reason."""


def execute(args: Namespace) -> int:
    """Send the decision, and return 0 once the run has accepted it, 1 if it did not; without one, print the question.

    Raises UsageError if the run waits for no decision or for another one, or its process has ended.
    """
    directory = options.runs_dir(args)
    if args.run == "last":
        _check_last(directory)
    path = find_run(args.run, directory)
    question = _question(path)
    request = approval_request(question)
    _check_same(args, question, path)
    if args.decision is None:
        return _show(args, question, request, path)
    decision = _decision(args, request, path)
    stderr().line((f"{headline(request.point, request.subject)} {_where(request, path)}", "dim"))
    done = submit(path, question, decision)
    if args.json:
        outcome = {"decision": decision.decision, "taken": not done.problem, "decided": done.decided}
        stdout().json({**_asked(question, path), **outcome})
    if done.problem:
        raise AeonError(done.problem)
    stderr().line((f"decided: {decision.decision}; delivered to the run", "green"))
    return 0


def _asked(question: PendingApproval, path: Path) -> dict[str, Any]:
    where = {"point": question.point, "pass": question.pass_number, "step_id": question.step_id}
    return {"run_id": path.stem, "seq": question.seq, "digest": question.digest, **where}


def _check_same(args: Namespace, question: PendingApproval, path: Path) -> None:
    """Raise UsageError if this is not the question that the options `--seq` and `--digest` name."""
    for name in ("seq", "digest"):
        given, asked = getattr(args, name), str(getattr(question, name))
        if given is not None and given != asked:
            now = f"its {name} is {asked}, not {given[:80]}; read the question with {run_command('decide', path)}"
            raise UsageError(f"the run {path.stem!r} is asking something else: {now}")


def _show(args: Namespace, question: PendingApproval, request: ApprovalRequest, path: Path) -> int:
    """Print the question in full, and how to decide it."""
    given = [name for name in ("feedback", "answer", "edited") if getattr(args, name) is not None]
    if given:
        raise UsageError(f"--{given[0]} needs a decision: {', '.join(ANSWERS[question.point])}")
    if args.json:
        stdout().json({**_asked(question, path), "subject": question.subject})
        return 0
    if is_workflow(path):
        from aeon_tui.screens.workflow.approval_controller import panel_question

        print_question(stdout(), panel_question(request), path)
    else:
        print_question(stdout(), question_of(request, tail_view(path)[0]), path)
    stderr().line((f"to decide: {how_to_decide(path, request)}", "bold yellow"))
    return 0


def _check_last(directory: Path) -> None:
    """Raise UsageError if several runs wait, so that `last` is ambiguous, or one that is not the last."""
    runs = list_runs(directory)
    waiting = [run for run in runs if run.status == "running" and run.waits_for]
    which = ", ".join(f"{run.run_id} ({run.waits_for}: {one_line(run.task, 40)})" for run in waiting[:5])
    if len(waiting) > 1:
        raise UsageError(f"{len(waiting)} runs wait for a decision, so name the one you mean: {which}")
    if waiting and waiting[0].run_id != runs[0].run_id:
        raise UsageError(f"the last run is not waiting for a decision, but another one is, so name it: {which}")


def _question(path: Path) -> PendingApproval:
    """Return the waiting question of the run. Raises UsageError if there is none, its process has ended, or its journal
    cannot be read.
    """
    # In this order: a question that the run answered before its process ended is not left open.
    try:
        alive = is_being_written(path)
    except OSError as error:
        raise UsageError(f"cannot read the journal {str(path)!r}: {reason_of(error)}") from None
    question = pending_approval(path)
    if alive:
        if question is None:
            raise UsageError(
                f"the run {path.stem!r} is not waiting for a decision right now; "
                f"follow it with {run_command('watch', path)}"
            )
        return question
    forget_left(path)
    if question is not None:
        raise UsageError(
            f"the process of the run {path.stem!r} has ended, so nothing can take the decision; "
            f"{run_command('resume', path)} continues the run and asks again"
        )
    summary = summarise(path)
    how = f"has ended as {words(summary.status)}" if summary is not None else "has ended"
    raise UsageError(f"the run {path.stem!r} {how}; it is not waiting for a decision")


def _decision(args: Namespace, request: ApprovalRequest, path: Path) -> ApprovalDecision:
    """Return the decision of the command line. Raises UsageError if it does not fit the question."""
    answers = ANSWERS[request.point]
    if args.decision not in answers:
        raise UsageError(
            f"{args.decision!r} is not a valid answer to {_what(request)}; choose from {', '.join(answers)}"
        )
    if args.feedback is not None and args.decision not in REASONED:
        raise UsageError(f"--feedback is only for {', '.join(REASONED)}: it gives the reason")
    given = _answers(args, request)
    if args.decision != "edit":
        if args.edited is not None:
            raise UsageError(f"--edited is only for edit, not for {args.decision}")
        feedback = (args.feedback or "").strip() or None
        return ApprovalDecision(decision=args.decision, feedback=feedback, answers=given)
    if args.edited is None:
        raise UsageError(f"edit needs --edited FILE, {_file_of(request)}; '-' reads standard input")
    tools = (head(path) or {}).get("tools")
    with options.given_file(args.edited, "the option --edited") as file:
        edited = load_edit(request, tools if isinstance(tools, list) else [], file)
    return ApprovalDecision(decision="edit", edited=edited, answers=given)


def _answers(args: Namespace, request: ApprovalRequest) -> dict[str, str] | None:
    """Return the answers to the open questions, by question, or None. Raises UsageError for too many, or no choice."""
    given, questions = args.answer or [], strs_of(request.subject.get("questions"))
    if len(given) > len(questions):
        asks = f"{count(len(questions), 'question')} {'is' if len(questions) == 1 else 'are'} open"
        raise UsageError(f"--answer is given {count(len(given), 'time')}, but {asks}")
    choices = strs_of(request.subject.get("choices"))
    if given and choices and args.decision != "approve":
        raise UsageError(f"--answer chooses what to approve; leave it out to {args.decision}")
    if choices and (unknown := [answer for answer in given if answer not in choices]):
        raise UsageError(f"--answer {unknown[0]!r} is not a choice of this question; choose from {', '.join(choices)}")
    return {**given_answers(request.subject), **dict(zip(questions, given, strict=False))} if given else None


def _where(request: ApprovalRequest, path: Path) -> str:
    place = [f"pass {request.pass_number}", request.step_id and f"step {request.step_id}"]
    if is_workflow(path):  # it has agents instead
        place = [request.step_id]
    point = [] if request.point == "pass" else [request.point]
    return f"({', '.join([*point, *filter(None, place)])})"


def _what(request: ApprovalRequest) -> str:
    return {
        "plan": "the question about a plan",
        "pass": "the question about a pass",
        "tool": "the question about a tool's call",
        "unknown": "the question about an interrupted call",
        "budget": "the question about the budget",
        "gate": "a gate",
        "question": "a workflow's question",
    }[request.point]


def _file_of(request: ApprovalRequest) -> str:
    if takes_requirements(request.point, request.pass_number):
        return "a plan as JSON or YAML, `requirements`, or both"
    if request.point in REVIEWED:
        return "a plan as JSON or YAML"
    return "`limit_usd: USD`" if request.point == "budget" else "the arguments of the call as JSON or YAML"

"""The text of a step's tabs: its output, prompts and replies, tool calls, and repairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aeon_core.journal.values import dicts_of
from aeon_core.journal.view import formatting
from aeon_core.journal.view.draft import STRUCTURED, read_draft
from aeon_core.journal.view.formatting import repair_words
from aeon_core.journal.view.incremental import RecordOf, filled, is_lean
from aeon_core.journal.view.model import CallView, RepairView, RunView, StepView, ToolCallView
from aeon_core.units import count, money, span
from aeon_widgets.call_rows import CALL_LABELS, RowKey
from aeon_widgets.icons import ROW_ICONS
from aeon_widgets.issues import repairs_of_calls
from aeon_widgets.rendered_text import form_of
from aeon_widgets.reply_text import parts_of
from aeon_widgets.text import GAP, Block, joined, one_line, pretty, readable, spaced

MOST = 20
"""The most calls, tool calls and repairs shown of a step or a row: the last ones of each."""


class StepDetail(Struct, frozen=True):
    """A step, or calls without one. A lean view leaves parts of it in the journal."""

    step: StepView | None = None
    calls: Sequence[CallView] = ()
    repairs: Sequence[RepairView] = ()
    earlier: int = 0
    """The number of calls, tool calls and repairs before those shown."""

    @property
    def lean(self) -> bool:
        """Whether a part of it is only in the journal."""
        return is_lean([*([self.step] if self.step is not None else []), *self.calls, *self.repairs])

    def filled(self, record_of: RecordOf) -> StepDetail:
        """Return it with the parts that were left in the journal."""
        step = filled(self.step, record_of) if self.step is not None else None
        calls = [filled(call, record_of) for call in self.calls]
        repairs = [filled(repair, record_of) for repair in self.repairs]
        return StepDetail(step, calls, repairs, self.earlier)


def step_detail(view: RunView, key: RowKey | None, calls: Sequence[CallView]) -> StepDetail:
    """Return the details of a row of the plan; `calls` are its model calls if it is not a step."""
    if key is not None and key.kind == "step":
        if (step := view.steps.get(key.name)) is None:
            return StepDetail()
        earlier = sum(max(0, len(each) - MOST) for each in (step.calls, step.tool_calls, step.repairs))
        last = {name: getattr(step, name)[-MOST:] for name in ("calls", "tool_calls", "repairs")}
        return StepDetail(replace(step, **last) if earlier else step, earlier=earlier)
    shown = calls[-MOST:]
    return StepDetail(None, shown, repairs_of_calls(view, shown), len(calls) - len(shown))


CUT_OFF = "The run ended before this was done."
UNREADABLE = "This reply is not readable; see the prompt tab."
UNKNOWN = "The run ended during this call: whether it took effect is unknown."


def output_blocks(step: StepView, streamed: Sequence[Block] = (), live: bool = True, asked: str = "") -> list[Block]:
    """Return the step, how it went, and its output; `asked` is what the run waits for a decision about."""
    blocks: list[Block] = [("high", f"✖ {message}") for message in step.errors]
    blocks.append(("bold", step.description))
    if how := joined(_how(step), spent_on(step.calls, step.tool_calls)):
        blocks.append(("muted", how))
    blocks += [("medium", f"⚠ {message}") for message in step.validator_errors]
    blocks.append(GAP)
    if step.output is not None:
        is_text = list(step.output) == ["text"] and isinstance(step.output["text"], str)
        form = "json" if not is_text else "" if step.mode == "tool" else "markdown"
        blocks.append((form, readable(step.output)))
    elif streamed:
        blocks += streamed
    else:
        blocks.append(("muted", _nothing_yet(step, live, asked)))
    return blocks


def _how(step: StepView) -> str:
    how = ""
    if step.mode == "tool" or (step.mode is None and step.tool):
        how = f"tool {one_line(step.tool or '?', 80)}"
    elif step.mode == "fallback":
        how = "~ fallback: no tool found, so the model reasoned about it"
    elif step.mode == "llm" or step.agent:
        how = "reasoning by the model"
    repaired = "✎ repaired by the supervisor" if step.repaired else ""
    return joined(how, repaired, f"replaces {one_line(step.replaces, 40)}" if step.replaces else "")


def spent_on(calls: Sequence[CallView], tool_calls: Sequence[ToolCallView] = ()) -> str:
    """Return in words the number, tokens, cost and total time of calls, and whether the last reply was cut off.

    Empty if none has time or tokens.
    """
    tokens = sum(sum((call.usage or {}).get(name, 0) for name in ("input_tokens", "output_tokens")) for call in calls)
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    waited = [*(call.latency_ms for call in calls), *(call.duration_ms for call in tool_calls)]
    known = [each for each in waited if each is not None]
    if not known and not tokens:
        return ""
    reply = (calls[-1].response if calls else None) or {}
    return joined(
        count(len(calls), "model call") if calls else "",
        count(len(tool_calls), "tool call") if tool_calls else "",
        count(tokens, "token") if tokens else "",
        "the reply was cut off" if reply.get("stop_reason") == "max_tokens" else "",
        money(sum(costs)) if any(costs) else "",
        span(sum(known)) if known else "",
    )


def _nothing_yet(step: StepView, live: bool, asked: str) -> str:
    if step.status == "pending":
        return "Not run yet." if live else "Not run."
    if step.status != "running":
        return "No output."
    call = step.tool_calls[-1] if step.tool_calls and not step.tool_calls[-1].finished else None
    if not live:
        return _cut_off(call) if call is not None else CUT_OFF
    if asked:
        return "Waiting for a decision."
    return f"Running {one_line(call.tool_name, 80)} …" if call is not None else waiting(step.calls)


def _cut_off(call: ToolCallView) -> str:
    """Return what is known about a call that did not end: whether an unsafe one took effect is unknown."""
    return UNKNOWN if call.effect not in ("pure", "idempotent") else CUT_OFF


def waiting(calls: Sequence[CallView]) -> str:
    """Return in words what the last model call is waiting for."""
    if not calls or (calls[-1].finished and calls[-1].retry_in_s is None):
        return "Running …"
    last = calls[-1]
    if last.finished:
        return f"Attempt {last.attempt} failed; trying again after {last.retry_in_s or 0:.1f} s …"
    again = f" (attempt {last.attempt})" if last.attempt > 1 else ""
    return f"Waiting for the model{again} …"


def calls_output_blocks(
    label: str,
    calls: Sequence[CallView],
    streamed: Sequence[Block] = (),
    live: bool = True,
    requirements: Sequence[str] = (),
) -> list[Block]:
    """Return the last reply of calls that belong to no step; `requirements` are those being judged."""
    blocks: list[Block] = [("bold", label), GAP]
    done = [call for call in calls if call.response is not None]
    unfinished = not calls or not calls[-1].finished or calls[-1].retry_in_s is not None
    if streamed and unfinished:
        return [*blocks, *streamed]
    if unfinished:
        return [*blocks, ("muted", waiting(calls) if live else CUT_OFF)]
    if calls[-1].error is not None:
        blocks += [*_error_blocks(calls[-1].error), GAP]
    if done:
        blocks += _read_reply(done[-1], requirements)
    return blocks


def pass_blocks(view: RunView, number: int, calls: Sequence[CallView]) -> list[Block]:
    """Return the verdict of a pass, what was changed after it, and the calls that belong to no step."""
    blocks: list[Block] = []
    if (assessed := view.assessment_of(number)) is not None:
        blocks = [("complete bold", "converged")] if assessed.converged else [("medium bold", "not converged")]
        blocks += [] if assessed.not_judged else [("", formatting.scores(assessed))]
        reasons = [] if assessed.converged else formatting.scored_reasons(assessed)
        blocks += [("medium", f"✖ {reason}") for reason in reasons]
    for change in view.refinements:
        if change.pass_number == number:
            icon, style = ("✔", "complete") if change.accepted else ("✖", "failed")
            what = f"{icon} {formatting.refinement_words(change)}"
            blocks.append((style, f"{what}: {one_line(change.reason, 300)}"))
    by_purpose: dict[str, list[CallView]] = {}
    for call in calls:
        by_purpose.setdefault(call.purpose, []).append(call)
    made_of: list[Block] = []
    for purpose, made in by_purpose.items():
        icon = ROW_ICONS["failed" if made[-1].error else "complete" if made[-1].finished else "running"]
        made_of.append(("muted", f"{icon} {CALL_LABELS.get(purpose, one_line(purpose, 30))} · {spent_on(made)}"))
    return spaced([blocks, [*made_of, ("muted", "⏎ on the pass shows its calls.")]])


def _read_reply(call: CallView, requirements: Sequence[str]) -> list[Block]:
    """Return a reply for a person: a structured one as a list of its parts."""
    text = (call.response or {}).get("text")
    if call.purpose not in STRUCTURED or not isinstance(text, str) or not text:
        return _reply_blocks(call)
    draft = read_draft(call.purpose, text)
    return parts_of(draft, requirements) if draft is not None else [("muted", UNREADABLE)]


def prompt_blocks(calls: Sequence[CallView], live: bool = True) -> list[Block]:
    """Return every model call with its whole prompt and its reply."""
    if not calls:
        return [("muted", "No model was called.")]
    total = [[("muted", spent_on(calls))]] if len(calls) > 1 else []
    return spaced([*total, *(_call_blocks(call, live) for call in calls)])


def _call_blocks(call: CallView, live: bool) -> Iterator[Block]:
    tokens = f"{call.usage.get('input_tokens', 0)} → {call.usage.get('output_tokens', 0)} tokens" if call.usage else ""
    cost = money(call.cost_usd) if call.cost_usd else ""
    facts = joined(one_line(call.purpose, 30), f"attempt {call.attempt}", span(call.latency_ms), tokens, cost)
    yield "accent bold", f"━━ {facts}"
    yield from _request_blocks(call.request)
    yield "accent", "reply"
    if not call.finished:
        yield "muted", "Waiting for the model …" if live else CUT_OFF
    if call.error is not None:
        yield from _error_blocks(call.error)
    if call.retry_in_s is not None:
        yield "medium", f"↻ tried again after {call.retry_in_s:.1f} s"
    yield from _reply_blocks(call)


def _request_blocks(request: dict[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    system = request.get("system")
    if system:
        blocks += [("accent", "system"), _block(system)]
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict):
            blocks += [("accent", one_line(str(message.get("role", "?")), 20)), _block(message.get("content", ""))]
            if message.get("tool_calls"):
                blocks.append(("json", pretty(message["tool_calls"])))
    tools = request.get("tools")
    if isinstance(tools, list) and tools:
        names = [str(tool.get("name", "?")) if isinstance(tool, dict) else str(tool) for tool in tools]
        blocks += [("accent", "tools"), ("", ", ".join(one_line(name, 80) for name in names))]
    return blocks


def _reply_blocks(call: CallView) -> list[Block]:
    response = call.response or {}
    blocks: list[Block] = []
    if response.get("text"):
        blocks.append(_block(response["text"]))
    for asked in dicts_of(response.get("tool_calls")):
        blocks += [("muted", "requests a tool"), ("json", pretty(asked))]
    return blocks


def _block(value: Any) -> Block:
    return (form_of(value), value) if isinstance(value, str) else ("json", pretty(value))


def _error_blocks(error: dict[str, Any]) -> list[Block]:
    message = error.get("message")
    rest = {key: value for key, value in error.items() if key != "message"}
    blocks: list[Block] = [("high", f"✖ {message}")] if isinstance(message, str) else []
    return [*blocks, ("muted", pretty(rest))] if rest else blocks


def tool_blocks(step: StepView, live: bool = True) -> list[Block]:
    """Return every tool call of the step with its exact arguments and result."""
    if not step.tool_calls:
        if step.tool is None:
            return [("muted", "This step calls no tool.")]
        declared = step.arguments
        blocks: list[Block] = [("muted", f"{one_line(step.tool, 80)} has not been called.")]
        if declared is not None:
            blocks += [GAP, ("accent", "arguments in the plan"), ("json", pretty(declared))]
        return blocks
    return spaced(_tool_call_blocks(call, live) for call in step.tool_calls)


def _tool_call_blocks(call: ToolCallView, live: bool) -> list[Block]:
    facts = joined(one_line(call.tool_name, 80), one_line(call.effect or "", 20), span(call.duration_ms))
    blocks: list[Block] = [
        ("accent bold", f"━━ {facts}"),
        ("accent", "arguments"),
        ("json", pretty(call.arguments)),
    ]
    if not call.finished:
        return [*blocks, ("muted", "Running …" if live else _cut_off(call))]
    if call.error is not None:
        return [*blocks, ("accent", "error"), *_error_blocks(call.error)]
    return [*blocks, ("accent", "result"), ("json", pretty(call.result))]


def repair_blocks(repairs: Sequence[RepairView]) -> list[Block]:
    """Return every repair attempt with the output before and after it."""
    if not repairs:
        return [("muted", "No repairs.")]
    return spaced(map(_repair_blocks, repairs))


def _repair_blocks(repair: RepairView) -> Iterator[Block]:
    yield "accent bold", f"━━ {' · '.join(repair_words(repair))}"
    yield from (("accent", "before"), ("", readable(repair.original_output)))
    if repair.repaired_output is not None:
        yield from (("accent", "after"), ("", readable(repair.repaired_output)))
    if repair.error is not None:
        yield "accent", "not repaired"
        yield from _error_blocks(repair.error)

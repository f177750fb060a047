"""Runs as their records: written by hand, so that screens and panes are tested without a kernel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
RUN_ID = "20261120-093000-a1b2c3"
HOSTILE = (
    "[bold]B[/] [/] [@click=app.quit]quit[/] \x1b[31mred\x1b]0;title\x07 nul\x00 \ud800 \u202eoverride ｗｉｄｅ 👩‍🚀"
)


class Recording:
    """Records with their envelope, one second apart."""

    def __init__(self, task: str = "add 5 and 10, and say it nicely", model: str = "simulated:default") -> None:
        self.records: list[dict[str, Any]] = []
        self.calls = 0
        self.number = 1
        self.add(
            "run_started",
            task=task,
            config={"ttl": 50},
            model=model,
            simulated=model.startswith("simulated"),
            tools=[{"name": "calculator"}, {"name": "echo"}],
            versions={},
            memory={},
        )
        self.ttl(50)

    def add(self, kind: str, /, **fields: Any) -> None:
        seq = len(self.records)
        stamp = (START + timedelta(seconds=seq)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        self.records.append({"v": 1, "seq": seq, "ts": stamp, "run": RUN_ID, "type": kind, **fields})

    def ttl(self, remaining: int) -> None:
        self.add(
            "ttl",
            limit=50,
            allocated=50,
            spent=50 - remaining,
            remaining=remaining,
            reason="allocated" if remaining == 50 else "reason",
            usage={"input_tokens": 10 * (50 - remaining), "output_tokens": 50 - remaining},
            cost_usd=0.0,
        )

    def phase(self, name: str, state: str = "started") -> None:
        self.add("phase", **{"pass": self.number}, phase=name, state=state)

    def plan(self, *steps: dict[str, Any], cause: str = "generated", step_id: str | None = None) -> None:
        extra = {"step_id": step_id} if step_id is not None else {}
        self.add("plan", **{"pass": self.number}, cause=cause, plan={"goal": "the goal", "steps": list(steps)}, **extra)

    def step(self, step_id: str, status: str, **fields: Any) -> None:
        self.add("step", **{"pass": self.number}, step_id=step_id, status=status, **fields)

    def ask(self, purpose: str, step_id: str | None = None, prompt: str = "Do it.") -> None:
        self.calls += 1
        self.add(
            "llm",
            call_id=f"c{self.calls}",
            state="started",
            purpose=purpose,
            step_id=step_id,
            attempt=1,
            request={"system": f"Aeon {purpose}", "messages": [{"role": "user", "content": prompt}], "max_tokens": 99},
            **{"pass": self.number},
        )

    def answer(self, purpose: str, text: str, step_id: str | None = None, **fields: Any) -> None:
        self.add(
            "llm",
            call_id=f"c{self.calls}",
            state="finished",
            purpose=purpose,
            step_id=step_id,
            attempt=1,
            **{
                "pass": self.number,
                "response": {"text": text},
                "usage": {"input_tokens": 40, "output_tokens": 12},
                "cost_usd": 0.0,
                "latency_ms": 340.0,
                **fields,
            },
        )

    def tool(self, step_id: str, name: str, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        call = {"call_id": f"t-{step_id}", "pass": self.number, "step_id": step_id, "tool_name": name}
        self.add("tool", **call, state="started", arguments=arguments, effect="pure")
        self.add("tool", **call, state="finished", result=result, duration_ms=1.5)

    def repair(self, before: dict[str, Any], after: dict[str, Any], step_id: str | None, kind: str) -> None:
        self.add(
            "supervisor",
            action_type=kind,
            original_output=before,
            repaired_output=after,
            attempt_number=1,
            timestamp="2026-11-20T09:30:00Z",
            method="llm",
            step_id=step_id,
            **{"pass": self.number},
        )

    def finish(self, status: str, **result: Any) -> None:
        self.add(
            "run_finished",
            result={
                "run_id": RUN_ID,
                "status": status,
                "ttl": {"limit": 50, "allocated": 50, "spent": 4, "remaining": 46},
                "model": "simulated:default",
                "simulated": True,
                **result,
            },
        )


def steps(*, repaired: bool = False) -> list[dict[str, Any]]:
    second = {"tool": "echo"} if repaired else {"tool": "shout", "errors": ["tool 'shout' is not registered"]}
    return [
        {"step_id": "s1", "description": "add 5 and 10", "tool": "calculator", "arguments": {"a": 5, "b": 10}},
        {"step_id": "s2", "description": "repeat the sum", **second},
        {"step_id": "s3", "description": "say it nicely, in one friendly sentence that everybody understands"},
        {"step_id": "s4", "description": "check the sentence", "agent": "llm"},
    ]


def live_run() -> Recording:
    """A run in the middle: s1 done, s2 repaired, s3 waiting for the model."""
    run = Recording()
    run.phase("plan")
    run.ask("plan")
    run.answer("plan", '{"goal": "the goal"}')
    run.ttl(49)
    run.plan(*steps())
    run.phase("plan", "finished")
    run.phase("execute")
    run.step("s1", "running")
    run.tool("s1", "calculator", {"operation": "add", "a": 5, "b": 10}, {"result": 15})
    run.step("s1", "complete", mode="tool", output={"result": 15})
    run.ask("repair", "s2")
    run.answer("repair", '{"step_id": "s2", "tool": "echo"}', "s2")
    run.repair({"step_id": "s2", "tool": "shout"}, {"step_id": "s2", "tool": "echo"}, "s2", "plan_repair")
    run.plan(*steps(repaired=True), cause="repaired", step_id="s2")
    run.step("s1", "complete", mode="tool", output={"result": 15})
    run.step("s2", "running")
    run.tool("s2", "echo", {"text": "15"}, {"text": "15"})
    run.step("s2", "complete", mode="tool", output={"text": "15"})
    run.ttl(48)
    run.step("s3", "running")
    run.ask("fallback", "s3", "Say that 5 and 10 make 15.")
    return run


def finished_run() -> Recording:
    """The same run to its end, s3 by fallback reasoning."""
    run = live_run()
    run.answer("fallback", "Five and ten make fifteen!", "s3")
    run.step("s3", "complete", mode="fallback", output={"text": "Five and ten make fifteen!"})
    run.step("s4", "running")
    run.ask("reason", "s4")
    run.answer("reason", "It is correct.", "s4")
    run.step("s4", "complete", mode="llm", output={"text": "It is correct."})
    run.ttl(47)
    run.phase("execute", "finished")
    run.ask("answer")
    run.answer("answer", "Five and ten make fifteen.")
    run.ttl(46)
    run.finish("completed", answer="Five and ten make fifteen. Both the sum and the sentence were checked.")
    return run


def failed_run() -> Recording:
    """A run that ends on a failed model call."""
    run = live_run()
    error = {"error_type": "LLMError", "message": "the model answered 503 three times; try again later"}
    run.answer("fallback", "", "s3", response=None, usage=None, error=error)
    run.step("s3", "failed", errors=["the model answered 503 three times; try again later"])
    run.finish(
        "failed",
        error=error,
        steps=[{"step_id": "s3", "description": "say it", "status": "failed", "errors": [error["message"]]}],
    )
    return run


def hostile_run() -> Recording:
    """A run in which every text is meant to break the screen."""
    run = Recording(task=f"{HOSTILE} " + "x" * 5_000_000, model=f"simulated:{HOSTILE}")
    run.phase(HOSTILE)
    run.ask("plan", prompt=HOSTILE)
    run.answer("plan", HOSTILE)
    run.plan(
        {"step_id": HOSTILE, "description": HOSTILE, "tool": HOSTILE, "errors": [HOSTILE]},
        {"step_id": "s2", "description": "y" * 5_000_000},
    )
    run.repair({"text": HOSTILE}, {"text": HOSTILE}, HOSTILE, "json_repair")
    run.step(HOSTILE, "running")
    run.ask("tool_call", HOSTILE, HOSTILE)
    run.answer("tool_call", HOSTILE, HOSTILE)
    run.tool(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE})
    deep: Any = HOSTILE
    for _ in range(5_000):
        deep = [deep]
    run.step(HOSTILE, "complete", mode="tool", output={"text": f"{HOSTILE}\n{HOSTILE}"})
    run.step("s2", "failed", output={"deep": deep}, errors=[HOSTILE * 1_000])
    run.finish("failed", answer=HOSTILE, error={"error_type": "AeonError", "message": HOSTILE})
    return run

"""The same steps in other programs of the kind, where they are installed (the `bench` group)."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

PEERS = ("LangGraph+SQLite", "Burr+tracker")
Step = Callable[[dict[str, Any]], float]
"""A tool call: it validates the arguments and returns the result."""


def peers(reply: str, call: Step, folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is installed, by name: each reads the plan from a model's reply and makes its calls, one a step."""
    langgraph, burr = PEERS
    found: dict[str, Callable[[], object]] = {}
    if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
        found[langgraph] = _langgraph(reply, call, folder)
    if importlib.util.find_spec("burr"):
        found[burr] = _burr(reply, call, folder)
    return found


def _langgraph(reply: str, call: Step, folder: Path) -> Callable[[], object]:
    from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found,unused-ignore]
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found,unused-ignore]
    from typing_extensions import TypedDict

    class State(TypedDict):
        done: int
        result: float

    threads = itertools.count()

    def work() -> None:
        thread, steps = next(threads), json.loads(reply)["steps"]
        count = len(steps)

        def add(state: State) -> State:
            return {"done": state["done"] + 1, "result": call(steps[state["done"]]["arguments"])}

        graph = StateGraph(State)
        graph.add_node("add", add)
        graph.add_edge(START, "add")
        graph.add_conditional_edges("add", lambda state: END if state["done"] >= count else "add")
        with SqliteSaver.from_conn_string(str(folder / f"langgraph-{thread}.sqlite")) as saver:
            app = graph.compile(checkpointer=saver)
            config = {"configurable": {"thread_id": str(thread)}, "recursion_limit": count + 5}
            assert app.invoke({"done": 0, "result": 0}, config)["done"] == count

    return work


def _burr(reply: str, call: Step, folder: Path) -> Callable[[], object]:
    from burr.core import ApplicationBuilder, State, action  # type: ignore[import-not-found,unused-ignore]
    from burr.tracking import LocalTrackingClient  # type: ignore[import-not-found,unused-ignore]

    def work() -> None:
        steps = json.loads(reply)["steps"]

        @action(reads=["done"], writes=["done", "result"])  # type: ignore[untyped-decorator,unused-ignore]
        def add(state: State) -> State:
            return state.update(done=state["done"] + 1, result=call(steps[state["done"]]["arguments"]))

        app = (
            ApplicationBuilder()
            .with_actions(add=add)
            .with_transitions(("add", "add"))
            .with_state(done=0, result=0)
            .with_entrypoint("add")
            .with_tracker(LocalTrackingClient("bench", storage_dir=str(folder / "burr")))
            .build()
        )
        for _ in steps:
            app.step()
        assert app.state["done"] == len(steps)

    return work

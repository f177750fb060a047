"""The same number of steps in other programs of the kind, where they are installed (the `bench` extra)."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path

MOST_STEPS = 200
"""Beyond, the peers take too long to wait for."""


def peers(count: int, folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is installed, by name; nothing for longer runs."""
    found: dict[str, Callable[[], object]] = {}
    if count > MOST_STEPS:
        return found
    if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite"):
        found["LangGraph+SQLite"] = _langgraph(count, folder)
    if importlib.util.find_spec("burr"):
        found["Burr+tracker"] = _burr(count, folder)
    return found


def _langgraph(count: int, folder: Path) -> Callable[[], object]:
    from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found,unused-ignore]
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found,unused-ignore]
    from typing_extensions import TypedDict

    class State(TypedDict):
        done: int
        result: int

    def add(state: State) -> State:
        return {"done": state["done"] + 1, "result": 5 + 10}

    graph = StateGraph(State)
    graph.add_node("add", add)
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: END if state["done"] >= count else "add")
    threads = itertools.count()

    def work() -> None:
        thread = next(threads)
        with SqliteSaver.from_conn_string(str(folder / f"langgraph-{thread}.sqlite")) as saver:
            app = graph.compile(checkpointer=saver)
            config = {"configurable": {"thread_id": str(thread)}, "recursion_limit": count + 5}
            assert app.invoke({"done": 0, "result": 0}, config)["done"] == count

    return work


def _burr(count: int, folder: Path) -> Callable[[], object]:
    from burr.core import ApplicationBuilder, State, action  # type: ignore[import-not-found,unused-ignore]
    from burr.tracking import LocalTrackingClient  # type: ignore[import-not-found,unused-ignore]

    @action(reads=["done"], writes=["done", "result"])  # type: ignore[untyped-decorator,unused-ignore]
    def add(state: State) -> State:
        return state.update(done=state["done"] + 1, result=5 + 10)

    def work() -> None:
        app = (
            ApplicationBuilder()
            .with_actions(add=add)
            .with_transitions(("add", "add"))
            .with_state(done=0, result=0)
            .with_entrypoint("add")
            .with_tracker(LocalTrackingClient("bench", storage_dir=str(folder / "burr")))
            .build()
        )
        for _ in range(count):
            app.step()
        assert app.state["done"] == count

    return work

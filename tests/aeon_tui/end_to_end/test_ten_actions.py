"""The ten most common actions in a real terminal, each in as few keys as promised beyond what is typed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aeon_tui.end_to_end.conftest import Pane, Tmux
from tests.aeon_tui.end_to_end.test_in_tmux import AGAIN_SECONDS

TASK = "design a REST API for invoices"
FILE_TASK = "write the file notes.md with the text 'the quarter was good'"
MISSING_TASK = "read the file missing.md"
CONFIG = "model: simulated:default\ntools: [files]\napprove: [pass, tool]\n"


class Action:
    """One action: counts the keys that it takes; text that is typed does not count."""

    def __init__(self, pane: Pane) -> None:
        self._pane, self.keys = pane, 0

    def press(self, key: str, done: Callable[[], object]) -> None:
        """Press a key until it is taken, as a question that has just come takes none; it counts once."""
        self.keys += 1
        pressed = -math.inf

        def pressed_and_done() -> object:
            nonlocal pressed
            if not (found := done()) and time.monotonic() > pressed + AGAIN_SECONDS:
                self._pane.keys(key)
                pressed = time.monotonic()
            return found

        self._pane.wait_until(pressed_and_done)

    def type(self, text: str) -> None:
        """Type a text."""
        self._pane.keys("-l", text)
        self._pane.until(text[-20:])


def records(folder: Path) -> list[dict[str, object]]:
    """Return the records of all runs."""
    lines = (line for journal in (folder / "runs").glob("*.jsonl") for line in journal.read_bytes().splitlines(True))
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def decided(folder: Path, decision: str, **fields: object) -> list[dict[str, object]]:
    """Return the records of such decisions that hold these fields."""
    found = [each for each in records(folder) if each["type"] == "approval" and each.get("decision") == decision]
    return [each for each in found if fields.items() <= each.items()]


def questions(folder: Path) -> int:
    return sum(each["type"] == "approval" and each["state"] == "asked" for each in records(folder))


def clipboard(tmux: Tmux) -> str:
    """Return what the terminal was told to copy."""
    return tmux("show-buffer") if tmux("list-buffers").strip() else ""


@pytest.fixture
def app(tmux: Tmux, tmp_path: Path) -> Pane:
    """Return a pane with the app on an empty list of runs, in a project that configures the simulated model."""
    (tmp_path / ".config" / "aeon").mkdir(parents=True)
    (tmp_path / ".config" / "aeon" / "config.yml").write_text(CONFIG)
    pane = tmux.pane("mine", 120, 36)
    tmux("set-option", "-s", "set-clipboard", "on")
    pane.start("app", "--runs-dir", str(tmp_path / "runs"))
    pane.until("No runs yet")
    return pane


def start(app: Pane, task: str, waits_for: str) -> int:
    """Start a run from wherever the app is; return how many keys that took."""
    action = Action(app)
    action.press("s", lambda: "New run" in app.text and "Criteria" in app.text)
    action.type(task)
    action.press("F5", lambda: "Criteria" not in app.text)
    app.until(waits_for)
    return action.keys


@pytest.mark.exhaustive
def test_a_run_is_started_decided_answered_compared_left_forked_and_copied(
    app: Pane, tmux: Tmux, tmp_path: Path
) -> None:
    assert start(app, TASK, "Not finished") <= 2

    changed = Action(app)
    changed.press("d", lambda: "from another pass" in app.text)
    assert changed.keys <= 1

    app.keys("a")
    answered = Action(app)
    answered.press("Enter", lambda: "⏎ keeps it" in app.text)
    answered.type("the fields and the routes")
    answered.press("Enter", lambda: "✔ the fields and the routes" in app.text and "⏎ keeps it" not in app.text)
    assert answered.keys <= 2

    rejected = Action(app)
    rejected.press("w", lambda: "⏎ sends" in app.text)
    rejected.type("name the fields")
    rejected.press("Enter", lambda: decided(tmp_path, "reject", feedback="name the fields"))
    assert rejected.keys <= 2
    app.wait_until(lambda: questions(tmp_path) == 2)

    app.keys("Escape")
    app.until("waits for you")
    viewed = Action(app)
    viewed.press("Enter", lambda: "Run another pass" in app.text or "comes back here" in app.text)
    assert viewed.keys <= 2

    app.keys("Escape")
    app.until("waits for you")
    approved = Action(app)
    approved.press("a", lambda: "Run another pass" in app.text)
    approved.press("a", lambda: decided(tmp_path, "approve"))
    assert approved.keys <= 2

    ended = Action(app)
    app.wait_until(lambda: questions(tmp_path) == 3)
    ended.press("a", lambda: any(each["type"] == "run_finished" for each in records(tmp_path)))
    app.until("✔ converged")
    copied = Action(app)
    copied.press("y", lambda: clipboard(tmux).startswith("A REST API for invoices\n"))
    assert copied.keys <= 1

    app.keys("[")
    app.until("as of")
    forked = Action(app)
    forked.press("F", lambda: "ctrl+s forks" in app.text)
    forked.press("C-s", lambda: [each for each in records(tmp_path) if each.get("parent")])
    assert forked.keys <= 2


@pytest.mark.exhaustive
def test_the_cause_of_a_failed_step_is_two_keys_away(app: Pane) -> None:
    start(app, MISSING_TASK, "Not finished")
    cause = Action(app)
    cause.press("n", lambda: "Step s1 · ✖ failed" in app.text and "✖ there is no 'missing.md'" in app.text)
    assert cause.keys <= 2


@pytest.mark.exhaustive
def test_calls_like_one_are_always_allowed_with_two_keys(app: Pane, tmp_path: Path) -> None:
    start(app, FILE_TASK, "notes.md?")
    allowed = Action(app)
    allowed.press("A", lambda: "Always allow" in app.text and "this project" in app.text)
    allowed.press("Enter", lambda: [each for each in decided(tmp_path, "approve") if each.get("allow")])
    assert allowed.keys <= 2

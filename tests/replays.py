"""Every run that a test makes is a recorded run: its records, gone over again, give the same (Decision 2)."""

from __future__ import annotations

import json
from typing import Any

from aeon_core.runs.replay import Replay, replay_lines


def replayed(records: list[dict[str, Any]]) -> Replay:
    """Return what going over the records gives; they themselves stay as they are."""
    return replay_lines(json.loads(json.dumps(records)))


def replays_the_same(records: list[dict[str, Any]]) -> None:
    """Fail with the first difference where the kernel does not do what was recorded, or ends in another result."""
    done = replayed(records)
    assert done.difference is None, str(done.difference)
    ended = records[-1]["result"] if records[-1]["type"] == "run_finished" else None
    assert (done.result.model_dump(mode="json") if done.result is not None else None) == ended

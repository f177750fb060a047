from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.redaction import conceal
from system2.secret_tokens import UNKNOWN, restore_secrets

KEY = "gh" + "p_" + "a1" * 18
PASSWORD = "hunter2 hunter2"
PATH = Path("t.jsonl")
START = {"type": "workflow_start", "seq": 0, "task": "t", "versions": {"redaction": "tokens"}}


def turn(result: str) -> dict[str, Any]:
    block = {"toolResult": {"toolUseId": "u1", "content": [{"text": result}], "status": "success"}}
    return {"type": "api_request", "seq": 1, "messages": [{"role": "user", "content": [block]}]}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)


def recorded(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    """Return entries as a transcript has them."""
    found: list[dict[str, Any]] = json.loads(json.dumps(conceal(list(entries))))
    assert PASSWORD not in str(found)
    return found


def test_what_the_environment_holds_is_known_again() -> None:
    entries = [{**START, "task": f"use {PASSWORD}"}, turn(f"it is {PASSWORD}")]
    assert restore_secrets(PATH, recorded(*entries)) == entries


def test_a_result_with_another_secret_is_unknown_to_the_agent() -> None:
    [_, request] = restore_secrets(PATH, recorded(START, turn(f"it is {KEY}")))
    [block] = request["messages"][0]["content"]
    assert block["toolResult"] == {"toolUseId": "u1", "content": [{"text": UNKNOWN}], "status": "error"}


def test_a_token_that_a_file_quotes_is_not_replaced_by_the_secret() -> None:
    [_, request] = restore_secrets(PATH, recorded(START, turn(f"it is {conceal(PASSWORD)}")))
    assert PASSWORD not in str(request)


@pytest.mark.parametrize("versions", [{"redaction": "tokens"}, {}])
def test_anything_else_with_another_secret_is_not_resumed(versions: dict[str, str]) -> None:
    task = f"use {KEY}" if versions else "use [redacted]"
    with pytest.raises(UsageError, match=r"'t.jsonl' cannot be resumed: record 0 \(workflow_start\) holds a secret"):
        restore_secrets(PATH, recorded({**START, "task": task, "versions": versions}))

"""A real package from a task to the last gate, over the real boto3: every gate, tool, repair, and a kill in between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.reader import read_records
from aeon_core.journal.writer import JournalWriter
from system2.agents import SHIPPED, parse_agent
from system2.constants import DEFAULT_MODEL
from system2.workflow import replay
from tests.aeon_core.llm.converse_server import converse, no_credentials, set_credentials
from tests.aeon_core.llm.server import Reply
from tests.system2.converse_agents import AgentServer
from tests.system2.kit import Answers, Confirms, check_order
from tests.system2.test_gate_changes import Reviews
from tests.system2.test_resume import Killed
from tests.system2.workflows import REJECT, Case, files_of

TASK = "Build the package ledger: totals of amounts, and a login for the people who may see them."
TESTS = "python3 -m unittest tests.test_ledger"
BLOCKER = "ledger/auth.py keeps passwords in the code"
AUTH = """\
PASSWORDS = {"ann": "correct horse battery"}


def may_enter(name: str, password: str) -> bool:
    return name in PASSWORDS and PASSWORDS[name] == password
"""
SAFE_AUTH = """\
import hashlib
import hmac


def digest(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**10, r=8, p=1)


def may_enter(known: dict[str, tuple[bytes, bytes]], name: str, password: str) -> bool:
    salt, expected = known.get(name, (b"", b""))
    return hmac.compare_digest(digest(password, salt), expected)
"""
TEST = """\
import unittest

from ledger import auth, total


class LedgerTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([2, 3, 5]), 10)

    def test_auth(self):
        self.assertTrue(auth.may_enter("ann", "correct horse battery"))
        self.assertFalse(auth.may_enter("ann", "wrong"))


if __name__ == "__main__":
    unittest.main()
"""
KNOWN = '{"ann": (b"salt", auth.digest("correct horse battery", b"salt"))}, "ann"'


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "Write", {"file_path": path, "content": content}


def edit(path: str, old: str, new: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new, **more}


RUN_TESTS = ("Bash", {"command": TESTS})
FILES = ["ledger/__init__.py", "ledger/auth.py", "tests/__init__.py", "tests/test_ledger.py"]
WORK = [
    [
        write(FILES[0], "def total(amounts: list[int]) -> int:\n    return sum(amounts[1:])\n"),
        write(FILES[1], AUTH),
        write(FILES[2], "\n"),
        write(FILES[3], TEST),
    ],
    [RUN_TESTS],
    [edit(FILES[0], "amounts[1:]", "amounts")],
    [RUN_TESTS],
    [("signal_completion", {"status": "success", "files_changed": FILES, "summary": "the package and its tests"})],
]
REPAIR = [
    [write(FILES[1], SAFE_AUTH), edit(FILES[3], '"ann"', KNOWN, replace_all=True)],
    [RUN_TESTS],
    [("signal_completion", {"status": "success", "files_changed": FILES[1::2], "summary": "no password in the code"})],
]


@dataclass
class PackageServer(AgentServer):
    """The executor builds the package and repairs it, the security reviewer reports the blocker once."""

    killed: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.interfere = self._scripted
        self._prompts = {parse_agent(path).system_prompt: path.stem for path in SHIPPED.glob("*.md")}

    def _scripted(self, number: int, body: dict[str, Any]) -> Reply | None:
        check_order(body["messages"])
        agent, asked = self._prompts[body["system"][0]["text"]], body["messages"][0]["content"][0]["text"]
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        if agent == "executor":
            script = WORK if "Carry out all tasks of" in asked else REPAIR
            # The first test run has ended, and is in no request that is answered.
            self.killed |= script is WORK and turn == 2
            uses = [
                {"toolUse": {"toolUseId": f"u{turn}_{place}", "name": name, "input": given}}
                for place, (name, given) in enumerate(script[turn])
            ]
            return converse(*uses, stop="tool_use")
        if agent == "security-sentinel" and "(check 2)" not in asked:
            reply = self._agents_reply(body)
            for block in reply.body["output"]["message"]["content"]:
                if block.get("toolUse", {}).get("name") == "signal_completion":
                    block["toolUse"]["input"] |= {"status": "blockers", "blockers": [BLOCKER]}
            return reply
        return None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PackageServer]:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)
    made = PackageServer()
    yield made
    made.stop()


def test_a_package_is_built_rejected_killed_repaired_and_approved(
    server: PackageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    gates, commands = Reviews({3: [(REJECT, "say where passwords are kept")]}), Confirms()

    def case() -> Case:
        made = Case(
            root,
            "bedrock:" + DEFAULT_MODEL,
            base_url=server.url,
            gate_policy=gates,
            bash_policy=commands,
            question_policy=Answers(),
            runs_dir=tmp_path / "runs",
        )
        made.model = None  # type: ignore[assignment]  # the server has the requests
        return made

    write_line = JournalWriter._line

    def line(self: JournalWriter, tag: str, short: bytes, full: bytes) -> int:
        if server.killed:
            raise Killed
        return write_line(self, tag, short, full)

    with monkeypatch.context() as patch:
        patch.setattr(JournalWriter, "_line", line)
        with pytest.raises(Killed):
            case().orchestrator.run(TASK)
    (journal,) = (tmp_path / "runs").glob("*.jsonl")
    assert [command for command, _ in commands.asked] == [TESTS]

    result = case().orchestrator.resume(journal)
    assert (result.status, result.error, result.exit_code) == ("completed", None, 0)
    assert [review.gate for review in gates.reviews] == [0, 1, 2, 3, 3, 4, 5]

    # The package is there, does what it should, and its own tests say so.
    built = {path: content for path, content in files_of(root).items() if path.split("/")[0] in ("ledger", "tests")}
    sources = {path: content.decode() for path, content in built.items() if "__pycache__" not in path}
    assert sorted(sources) == sorted(FILES)
    assert "correct horse" not in sources["ledger/auth.py"]
    ran = subprocess.run([sys.executable, *TESTS.split()[1:]], cwd=root, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Ran 2 tests" in ran.stderr) == (0, True)

    # No command ran twice for the kill: the red run, the green one, and the one after the repair.
    codes = [
        each["result"]["exit_code"]
        for each in read_records(journal)
        if each["type"] == "tool" and each["state"] == "finished" and each["tool_name"] == "Bash"
    ]
    assert (codes, len(commands.asked)) == ([1, 0, 0], 3)

    # The gates showed every file with its diff, what the rejection changed, and what is in the repository now.
    shown = {change.path: change.diff for review in gates.reviews for change in review.changes}
    assert {path for path in files_of(root) if path.startswith(("spec/", *FILES))} <= shown.keys()
    assert "say where passwords are kept" in "".join(change.diff for change in gates.reviews[4].changes)
    last = gates.reviews[-1]
    assert all(f"+{line}" in shown[path] for path in FILES for line in sources[path].splitlines() if line)
    assert f"exit 0  executor: {TESTS}" in last.summary
    assert "Cost so far: $" in last.summary
    assert BLOCKER not in last.summary
    repaired = [each for each in server.requests if BLOCKER in str(each.body["messages"][0])]
    assert len(repaired) == len(REPAIR)
    assert replay(journal).difference is None

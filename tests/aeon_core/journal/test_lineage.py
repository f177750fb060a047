from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import listing
from aeon_core.journal.history import open_history
from aeon_core.journal.listing import Lineage, lineage_of
from aeon_core.journal.values import at_pass
from tests.aeon_core.journal.build import finished, started, ttl, write


def fork(folder: Path, run: str, parent: str, number: int = 1) -> Path:
    return write(folder, started(parent={"run_id": parent, "pass": number}), ttl(1), finished("failed"), run=run)


def test_a_run_without_relatives_has_no_lineage(tmp_path: Path) -> None:
    write(tmp_path, started(), run="other")
    assert lineage_of(write(tmp_path, started(), run="alone")) == Lineage()


def test_a_run_knows_its_parent_and_its_forks(tmp_path: Path) -> None:
    first = write(tmp_path, started(), run="a")
    middle = fork(tmp_path, "b", "a", 2)
    fork(tmp_path, "c", "b")
    fork(tmp_path, "d", "b", 3)
    found = lineage_of(middle)
    assert (found.parent, found.forked_at, found.parent_is_there) == ("a", 2, True)
    assert [(each.run_id, each.forked_at, each.status) for each in found.forks] == [
        ("c", 1, "failed"),
        ("d", 3, "failed"),
    ]
    first.unlink()
    assert lineage_of(middle).parent_is_there is False
    assert [each.run_id for each in lineage_of(middle).forks] == ["c", "d"]


def test_a_run_that_names_itself_as_parent_has_no_fork(tmp_path: Path) -> None:
    found = lineage_of(fork(tmp_path, "a", "a"))
    assert (found.parent, found.parent_is_there, found.forks) == ("a", False, [])


def test_the_parent_is_known_even_if_the_folder_is_unlistable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UsageError("the runs directory cannot be read")

    path = fork(tmp_path, "b", "a")
    monkeypatch.setattr(listing, "list_runs", refuse)
    assert lineage_of(path) == Lineage(parent="a", forked_at=1)


def test_a_foreign_file_has_no_lineage(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("hello\n")
    assert lineage_of(tmp_path / "notes.jsonl") == Lineage()


def test_the_history_of_a_fork_names_its_parent(tmp_path: Path) -> None:
    assert open_history(fork(tmp_path, "b", "a", 2)).configuration["parent"] == {"run_id": "a", "pass": 2}
    assert "parent" not in open_history(write(tmp_path, started(), run="a")).configuration


def test_a_forks_pass_is_reported() -> None:
    assert (at_pass(2), at_pass(None), at_pass(0)) == (" at pass 2", "", "")

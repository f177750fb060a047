from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.listing import Awaited
from tests.aeon_core.journal.build import finished, started, write


def runs(folder: Path, *names: str) -> list[Path]:
    return [write(folder, started(), finished(), run=name) for name in names]


def test_a_run_is_found_by_id_by_prefix_and_by_path(tmp_path: Path) -> None:
    one, two = runs(tmp_path, "one", "two")
    assert Awaited("one", tmp_path).find() == one
    assert Awaited("tw", tmp_path).find() == two
    assert Awaited(str(one), Path("elsewhere")).find() == one
    assert Awaited(two, Path("elsewhere")).find() == two


def test_a_missing_run_is_found_once_it_exists(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    awaited, first = Awaited("later", folder), Awaited(None, folder)
    assert (awaited.find(), first.find()) == (None, None)
    (other,) = runs(folder, "other")
    assert (awaited.find(), first.find()) == (None, other)
    (later,) = runs(folder, "later-1")
    assert awaited.find() == later


def test_a_path_need_not_exist(tmp_path: Path) -> None:
    assert Awaited("no/such/run.jsonl", tmp_path).find() == Path("no/such/run.jsonl")


def test_without_a_name_it_is_the_newest_live_run_else_the_newest(tmp_path: Path) -> None:
    live, new = write(tmp_path, started(), run="a"), runs(tmp_path, "b")[0]
    assert Awaited(None, tmp_path).find() == new
    fd = os.open(live, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert Awaited(None, tmp_path).find() == live
    assert Awaited("last", tmp_path).find() == new
    os.close(fd)


@pytest.mark.parametrize("name", ["run-", ""])
def test_an_ambiguous_or_unknown_name_is_reported(tmp_path: Path, name: str) -> None:
    runs(tmp_path, "run-1", "run-2")
    with pytest.raises(UsageError, match=r"'run-' matches 2 runs|no run ''"):
        Awaited(name, tmp_path).find()


def test_a_misspelt_name_has_suggestions(tmp_path: Path) -> None:
    runs(tmp_path, "20261120-093000-abc123", "other")
    assert Awaited("20261120-093000-abc132", tmp_path).near() == ["20261120-093000-abc123"]
    assert Awaited("something", tmp_path).near() == []
    assert Awaited("last", tmp_path).near() == Awaited(None, tmp_path).near() == []


def test_the_awaited_run_is_described(tmp_path: Path) -> None:
    where = repr(str(tmp_path))
    assert Awaited("x", tmp_path).words == f"the run 'x' in {where}"
    assert Awaited("a/x.jsonl", tmp_path).words == "the journal 'a/x.jsonl'"
    assert Awaited(None, tmp_path).words == Awaited("last", tmp_path).words == f"a run in {where}"

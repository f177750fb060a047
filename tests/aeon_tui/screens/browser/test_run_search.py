from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from aeon_core.entities import StepResult
from aeon_core.journal.listing import list_runs
from aeon_core.journal.summary import RunSummary
from aeon_tui.screens.browser.run_filter import TASK_CHARACTERS, Found, RunFilter, Runs, RunSearch, read_filter
from tests.aeon_core.journal.build import finished, started, text, ttl, write


def run(run_id: str, task: str = "add", status: str = "completed", model: str = "openai:small") -> RunSummary:
    return RunSummary(run_id, task, status, model, 1, 0.0, "2026-11-20T09:30:00Z", "x")


def asked(line: str) -> RunFilter:
    return read_filter(line, datetime(2026, 11, 21, tzinfo=UTC))


def test_every_word_must_be_in_task_status_model_or_id() -> None:
    runs = Runs([run("aa1", "Write the REPORT"), run("bb2", "add", "not_converged"), run("cc3", model="bedrock:large")])

    def matching(text: str) -> list[str]:
        return [each.run_id for each in runs.matching(asked(text))]

    assert matching("report") == ["aa1"]
    assert matching("  the  WRITE ") == ["aa1"]
    assert matching("not converged") == ["bb2"]
    assert matching("large") == ["cc3"]
    assert matching("b2") == ["bb2"]
    assert matching("report converged") == []
    assert runs.matching(asked("")) is runs.matching(asked(":")) is runs.all


def test_the_filter_covers_the_beginning_of_a_long_task() -> None:
    runs = Runs([run("a", "x" * TASK_CHARACTERS + " needle")])
    assert list(runs.matching(asked("needle"))) == []


def test_a_search_lists_runs_in_order_with_their_last_match(tmp_path: Path) -> None:
    write(tmp_path, started(task="nothing"), ttl(1), run="a")
    write(tmp_path, started(task="the Needle"), ttl(1), finished(answer="a NEEDLE, at last"), run="b")
    write(tmp_path, text("a needle in a haystack")[0], started(), ttl(1, "needle?"), run="c")
    (tmp_path / "d.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes() + b"a broken needle\n")
    runs = list_runs(tmp_path)
    search = RunSearch(runs, "needle")
    assert search.summary() == "0 of 4 match; searched 0 …"
    search.work()
    assert search.found == [
        Found("c", "ttl", "needle?", 2),
        Found("d", "damaged line", "a broken needle"),
        Found("b", "answer", "a NEEDLE, at last", 2),
    ]
    assert search.summary() == "3 of 4 match"


def test_only_a_match_in_the_answer_is_called_one(tmp_path: Path) -> None:
    failed = StepResult(step_id="s1", description="find the needle", status="failed", errors=["no needle"])
    write(tmp_path, started(task="sew"), finished(answer="a needle", steps=[failed]), run="a")
    write(tmp_path, started(task="sew"), finished(answer="a thread", steps=[failed]), run="b")
    search = RunSearch(list_runs(tmp_path), "needle")
    search.work()
    assert search.found == [Found("b", "result", "find the needle", 1), Found("a", "answer", "a needle", 1)]


def test_a_search_that_is_stopped_leaves_the_rest(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, started(task="needle"), run=str(number))
    search = RunSearch(list_runs(tmp_path), "needle")
    look = search._look

    def look_and_stop(each: RunSummary) -> None:
        look(each)
        if each.run_id == "3":
            search.stop()

    search._look = look_and_stop  # type: ignore[method-assign]
    search.work()
    assert [each.run_id for each in search.found] == ["4", "3"]
    search.stop()
    assert search.summary() == "2 of 5 match; stopped after 2"


def test_a_stop_after_the_end_changes_nothing() -> None:
    search = RunSearch([], "needle")
    search.work()
    search.stop()
    assert search.summary() == "0 of 0 match"


def test_unreadable_runs_are_counted(tmp_path: Path) -> None:
    gone = RunSummary("a", "add", "completed", "m", 1, 0.0, "2026-11-20T09:30:00Z", str(tmp_path / "gone.jsonl"))
    write(tmp_path, started(task="needle"), run="b")
    search = RunSearch([gone, *list_runs(tmp_path)], "needle")
    search.work()
    assert search.summary() == "1 of 2 match, 1 cannot be read"

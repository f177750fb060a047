"""`show` of one pass, and its reports: what they say, and that foreign text does nothing there."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from aeon_core.entities import TTLState
from aeon_core.journal.records import MemoryRecord, PlanRecord
from tests.aeon_core.journal.build import (
    RUN_ID,
    finished,
    llm,
    pass_record,
    plan,
    plan_record,
    repair,
    started,
    step,
    tool,
    ttl,
    whole_run,
    write,
)
from tests.aeon_core.journal.test_history import two_passes
from tests.aeon_tui.cli.conftest import Cli
from tests.aeon_tui.reports.pages import Page

RUNS = Path(".aeon/runs")
HOSTILE = "<script>alert(1)</script> `x` ``` | a | [l](javascript:x) **b** &lt; \x1b[31m\u202e"


def test_one_pass_is_shown_alone(cli: Cli) -> None:
    journal = write(RUNS, *two_passes())
    journal.write_text(journal.read_text().replace('"input_tokens":7', '"input_tokens":7000'))
    first = cli("show", "last", "--pass", "1").out
    assert "passes   pass 1, 0 cycles, 1 repair\n" in first
    assert "tokens   7,000 in, 3 out\n" in first
    assert "s2 complete" in first
    assert "s4" not in first
    assert first.endswith("Answer (simulated model)\nA first answer.\n")
    second = cli("show", "last", "--pass", "2").out
    assert "s4 complete" in second
    assert "s2 complete" not in second
    assert second.endswith("Answer (simulated model)\nThe sum is 15.\n")
    history = json.loads(cli("show", "last", "--pass", "2", "--json").out)
    assert [each["pass_number"] for each in history["passes"]] == [2]


def test_a_long_journal_is_shown_from_its_end_at_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    *before, last = whole_run()
    path = write(RUNS, *before, *[MemoryRecord(key="k", value=number) for number in range(400)], last)
    whole = cli("show", "last").out.splitlines()
    monkeypatch.setattr("aeon_tui.cli.show.LONG", path.stat().st_size - 1)
    shown = cli("show", "last").out.splitlines()
    read = next(line for line in shown if line.startswith("read "))
    assert read == "read     only the end of a long journal; to read all of it, use --pass N, --export or --json"
    own = ("read", "passes", "warning", "    warning", "    repaired", "the plan was")
    assert [line for line in shown if not line.startswith(own)] == [line for line in whole if not line.startswith(own)]
    assert "read " not in cli("show", "last", "--export", "md").out
    assert len(json.loads(cli("show", "last", "--json").out)["passes"]) == 1


@pytest.mark.parametrize(("purpose", "named"), [("profile", "profile"), ("judge", "verdict"), ("plan", "plan")])
def test_a_repair_outside_any_step_names_what_was_repaired(cli: Cli, purpose: str, named: str) -> None:
    asked = [llm("started", purpose=purpose, request={}), llm("finished", purpose=purpose, response={"text": "{"})]
    write(RUNS, started(), *asked, repair(None))
    told = f"the {named} was repaired (plan repair, llm, attempt 1 of 2): "
    assert told in cli("show", "last").out
    assert f"- the {named}: repaired (plan repair, llm" in cli("show", "last", "--export", "md").out
    assert f"{named} repaired · 1 of 2, by the model" in cli("show", "last", "--export", "html").out


@pytest.mark.parametrize(("effect", "said"), [("unsafe", True), ("idempotent", False), ("pure", False)])
def test_a_call_whose_outcome_is_not_known_is_reported(cli: Cli, effect: str, said: bool) -> None:
    called = tool("started", arguments={}, effect=effect)
    write(RUNS, started(), plan_record({"step_id": "s1", "description": "pay"}), step("s1", "running"), called)
    told = "unknown: calculator was called, but the journal has no outcome"
    assert (told in cli("show", "last").out) is said
    for form in (str, lambda out: Page(out).text):
        out = form(cli("show", "last", "--export", "md" if form is str else "html").out)
        assert (told in out) is said
        assert "s1 · stopped · " in out
    assert "s1 stopped · " in cli("show", "last").out


def test_a_pending_call_of_a_live_run_is_not_lost(cli: Cli) -> None:
    called = tool("started", arguments={}, effect="unsafe")
    path = write(RUNS, started(), plan_record({"step_id": "s1", "description": "pay"}), step("s1", "running"), called)
    with path.open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        done = cli("show", "last").out
    assert "s1 running · " in done
    assert "unknown" not in done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pass", "3"), "has no pass 3; there are the passes 1, 2"),
        (("--pass", "x"), "--pass must be a whole number, 1 or more; got 'x'"),
        (("--pass", "0"), "--pass must be a whole number, 1 or more; got '0'"),
        (("--export", "pdf"), "--export must be one of md, html, json; got 'pdf'"),
        (("--json", "--export", "md"), "--json and --export md cannot be used together"),
        (("-o", "none/x.md"), "cannot write 'none/x.md': No such file or directory; choose another file with -o"),
        (("-o", "."), "cannot write '.': Is a directory"),
    ],
)
def test_an_unreadable_journal_is_exit_2_in_one_line(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    write(RUNS, *two_passes())
    done = cli("show", "last", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err


def test_the_json_export_is_the_execution_history(cli: Cli) -> None:
    write(RUNS, *whole_run())
    assert cli("show", "last", "--export", "json").out == cli("show", "last", "--json").out


def test_the_markdown_report_answers_the_usual_questions(cli: Cli) -> None:
    write(RUNS, *whole_run())
    out = cli("show", "last", "--export", "md").out
    for expected in (
        f"# Run {RUN_ID}\n",
        "- **status**: completed\n- **model**: simulated:default (simulated)\n",
        "- **ttl**: 47 of 50 cycles left\n- **tokens**: 30 in, 3 out, \\$0.00\n",
        "## Task\n\n> calculate the sum of 5 and 10\n",
        "## Plan\n\n> the sum of 5 and 10\n",
        '### s1 · complete · tool calculator\n\n> add 5 and 10\n\nResult:\n\n```json\n{\n  "result": 15\n}\n```\n',
        "### s3 · complete · fallback reasoning\n\n> tell the news\n\n- warning: Tool 'web' not found\n- fallback: ",
        "Result:\n\n> no news\n",
        '## Repairs\n\n- s2: repaired (plan repair, llm, attempt 1 of 2): tool "calc" → "calculator"\n',
        "## Warnings\n\n- plan · the model call failed: 503 overloaded · retrying in 1.0 s\n",
        "## Answer (simulated model)\n\n> The sum is 15.\n",
    ):
        assert expected in out


def test_the_page_holds_the_report_and_every_record(cli: Cli) -> None:
    write(RUNS, *whole_run())
    shown = Page(cli("show", "last", "--export", "html").out)
    for expected in (
        f"Run {RUN_ID} · calculate the sum of 5 and 10\n",
        "model\nsimulated:default (simulated)\n",
        '✔ s1 · complete · tool calculator\nadd 5 and 10\nresult\n{\n"result": 15\n}\n',
        "The sum is 15.",
        "+1.000 sttlTTL 50 of 50 cycles left · allocated\n",
        "+17.000 ssupervisor",
    ):
        assert expected in shown.text
    assert "supervisor" in shown.text
    assert shown.tags.count("script") == 2


def hostile_run() -> None:
    spoken = f"# {HOSTILE}\n- item\n\n===\n1. one"
    described = {"step_id": HOSTILE, "description": spoken, "tool": HOSTILE, "errors": [HOSTILE]}
    write(
        RUNS,
        started(task=spoken, model=HOSTILE),
        ttl(1, HOSTILE),
        PlanRecord(pass_number=1, cause="generated", plan=plan(described, goal=HOSTILE)),
        step(HOSTILE, "complete", mode="tool", output={HOSTILE: ["```` " + HOSTILE]}),
        pass_record(),
        finished(
            "failed",
            answer=spoken,
            error={"message": HOSTILE},
            ttl=TTLState(limit=1, allocated=1, spent=1, remaining=0),
        ),
    )


def test_hostile_text_stays_text_in_the_page(cli: Cli) -> None:
    hostile_run()
    out = cli("show", "last", "--export", "html").out
    assert Page(out).tags.count("script") == 2
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in out
    assert not {"\x1b", "\u202e"} & set(out)
    assert r"\x1b[31m\u202e" in out


def test_hostile_text_stays_text_in_the_report(cli: Cli) -> None:
    hostile_run()
    out = cli("show", "last", "--export", "md").out
    assert not {"\x1b", "\u202e"} & set(out)
    assert "<" not in out
    escaped = r"&lt;script&gt;alert(1)&lt;/script&gt; \`x\` \`\`\` \| a \| \[l\](javascript:x) \*\*b\*\* &amp;lt; "
    escaped += r"\\x1b\[31m\\u202e"
    quoted = f"> \\# {escaped}\\\n> \\- item\\\n> &nbsp;\\\n> \\===\\\n> 1\\. one"
    assert out.count(quoted) == 3
    outside = out.partition("`````json\n")[0] + out.rpartition("`````\n")[2]
    assert "`````json\n" in out
    assert "`" not in outside.replace("\\`", "")


def test_a_file_is_written_whole_and_replaces_the_one_before(cli: Cli) -> None:
    write(RUNS, *whole_run())
    printed = cli("show", "last", "--export", "md").out
    target = Path("report.md")
    target.write_text("old")
    target.chmod(0o640)
    Path("link.md").symlink_to(target)
    done = cli("show", "last", "--export", "md", "-o", "link.md")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert target.read_text() == printed
    assert Path("link.md").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in Path().iterdir()) == [".aeon", "link.md", "report.md"]
    os.mkfifo("pipe")
    assert cli("show", "last", "-o", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_text_and_json_can_be_written_too(cli: Cli) -> None:
    write(RUNS, *whole_run())
    assert cli("show", "last", "-o", "run.txt").out == ""
    assert Path("run.txt").read_text() == cli("show", "last").out
    assert cli("show", "last", "--json", "-o", "run.json").out == ""
    assert json.loads(Path("run.json").read_text())["execution_id"] == RUN_ID

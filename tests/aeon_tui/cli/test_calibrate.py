"""`calibrate`: a judge is measured on labelled outcomes, or compared with one's own labels (contract: calibrate)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.journal.labels import label_run
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from tests.aeon_core.kernel.test_passes import TASK, model
from tests.aeon_core.kernel.test_reviews import two_passes
from tests.aeon_core.llm.server import Reply, Server
from tests.aeon_tui.cli.conftest import Cli

LANGUAGES = ("de", "hi")
KEY = "sk-" + "x" * 30


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("aeon_tui.sessions.judge_model.time.sleep", lambda _seconds: None)
    started = Server()
    yield started
    started.stop()


def labels(count: int = 20) -> str:
    """A file of outcomes, every other one good, and in the second half of another language."""
    outcomes = [
        {
            "id": f"sum/{number}",
            "language": LANGUAGES[2 * number // count],
            "label": "bad" if number % 2 else "good",
            "why": "the sum is wrong" if number % 2 else None,
            "goal": "Add 5 and 10",
            "answer": "16" if number % 2 else "15",
        }
        for number in range(count)
    ]
    Path("labels.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in outcomes), encoding="utf-8")
    return "labels.jsonl"


def verdict(number: int, *, good: bool) -> str:
    check = {"evidence": "16" if number % 2 else "15", "ok": True}
    return json.dumps(
        {
            "requirements": [{"n": 1, "evidence": check["evidence"], "met": "yes" if good else "no"}],
            "coherent": check,
            "consistent": dict.fromkeys(("plan", "step", "answer", "memory"), check),
            # 16 is in no output but the answer's own.
            "suspicions": [],
            "issues": [],
        }
    )


def chat(text: str) -> Reply:
    message = {"role": "assistant", "content": text}
    return Reply(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "local",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
        }
    )


def judge(count: int = 20, wrong: tuple[int, ...] = ()) -> list[Reply]:
    return [chat(verdict(number, good=(number % 2 == 0) != (number in wrong))) for number in range(count)]


def through(server: Server, *more: str) -> tuple[str, ...]:
    return ("calibrate", labels(), "--model", "openai:local", "--base-url", f"{server.url}/v1", *more)


def test_a_perfect_judge_agrees_with_every_label(cli: Cli, server: Server) -> None:
    server.script(*judge())
    done = cli(*through(server, "--json", "--least", "1"))
    found = json.loads(done.out)
    assert done.code == 0
    assert (found["agreement"], found["kappa"], found["results"], found["calls"]) == (1.0, 1.0, 20, 20)
    assert (found["cost_usd"], found["usage"]) == (None, {"input_tokens": 18_000, "output_tokens": 800})
    assert (found["source"], found["model"], found["simulated"]) == ("labels.jsonl", "openai:local", False)
    assert {name: each["agreement"] for name, each in found["by_language"].items()} == {"de": 1.0, "hi": 1.0}
    assert found["disagreements"] == []
    assert done.err == "judged 20 of 20 · agreement 1.00\n"
    assert server.bodies[0]["messages"][0]["content"].startswith("Aeon judge\n")


def test_a_judge_that_is_wrong_one_time_in_ten_is_reported_with_what_it_quoted(cli: Cli, server: Server) -> None:
    server.script(*judge(wrong=(4, 13)))
    done = cli(*through(server))
    assert done.code == 0
    assert done.out == (
        "agreement 0.90 · 18 of 20 results · kappa 0.80\n"
        "1 bad result accepted · 1 good result rejected · 0 without a usable verdict\n"
        "openai:local · 20 calls · 18,000 tokens in, 800 out · price unknown\n"
        "\n"
        "language  agreement  results  accepted  rejected  unusable\n"
        "de             0.90       10         0         1         0\n"
        "hi             0.90       10         1         0         0\n"
        "\n"
        "sum/4 · labelled good, the judge said bad\n"
        "    “15”\n"
        "sum/13 · labelled bad (the sum is wrong), the judge said good\n"
        "    “16”\n"
    )


@pytest.mark.parametrize(("least", "code"), [("0.9", 0), ("0.91", 5), ("1", 5)])
def test_less_agreement_than_required_is_exit_5(cli: Cli, server: Server, least: str, code: int) -> None:
    server.script(*judge(wrong=(4, 13)))
    assert cli(*through(server, "--least", least)).code == code


def test_a_sample_of_outcomes_is_spread_evenly(cli: Cli, server: Server) -> None:
    server.script(*[judge()[number] for number in (0, 5, 10, 15)])
    found = json.loads(cli(*through(server, "--limit", "4", "--json")).out)
    assert (found["outcomes"], found["agreement"]) == (4, 1.0)
    assert {name: each["results"] for name, each in found["by_language"].items()} == {"de": 2, "hi": 2}


def test_three_votes_are_taken_unless_the_first_is_a_clear_yes(cli: Cli, server: Server) -> None:
    wrong, right = judge(1, wrong=(0,)), judge(1)
    server.script(*wrong, *right, *right)
    done = cli(*through(server, "--limit", "1", "--judge-votes", "3", "--json"))
    found = json.loads(done.out)
    assert (found["calls"], found["judge_votes"], found["agreement"]) == (3, 3, 1.0)


def test_the_model_that_judges_in_runs_is_measured(cli: Cli, server: Server) -> None:
    server.script(*judge(1))
    more = ("--limit", "1", "--judge-model", "openai:judge", "--json")
    found = json.loads(cli(*through(server, *more)).out)
    assert (found["model"], server.bodies[0]["model"]) == ("openai:judge", "judge")


def test_the_judge_has_the_configured_room_for_a_reply(cli: Cli, server: Server) -> None:
    Path("long.yml").write_text("max_tokens: 9000", encoding="utf-8")
    server.script(*judge(1))
    assert cli(*through(server, "--config", "long.yml", "--limit", "1")).code == 0
    assert server.bodies[0]["max_tokens"] == 9_000


def test_the_cost_of_a_priced_model_is_reported(cli: Cli, server: Server) -> None:
    Path("prices.yml").write_text("prices: {local: {input: 10, output: 100}}", encoding="utf-8")
    server.script(*judge())
    found = json.loads(cli(*through(server, "--config", "prices.yml", "--json")).out)
    assert found["cost_usd"] == pytest.approx(0.26)


def test_an_unusable_reply_counts_as_disagreement(cli: Cli, server: Server) -> None:
    server.script(chat("It looks fine to me."), *judge()[1:])
    done = cli(*through(server, "--least", "0.95"))
    assert done.code == 0
    assert "agreement 0.95 · 19 of 20 results" in done.out
    assert "· 1 without a usable verdict" in done.out
    assert "sum/0 · labelled good, the judge gave no usable verdict\n    the judge gave no usable verdict: " in done.out


def test_partial_results_are_printed_when_the_budget_is_reached(cli: Cli, server: Server) -> None:
    Path("prices.yml").write_text("prices: {local: {input: 10, output: 100}}", encoding="utf-8")
    server.script(*judge())
    done = cli(*through(server, "--config", "prices.yml", "--budget", "0.6", "--json"))
    found = json.loads(done.out)
    assert done.code == 4
    assert 0 < found["results"] == found["agreed"] < 20
    assert done.err.splitlines()[-1].startswith("aeon-tui: ")
    assert "raise it with --budget" in done.err


def test_no_call_is_made_that_might_cost_more_than_the_budget(cli: Cli, server: Server) -> None:
    Path("prices.yml").write_text("prices: {local: {input: 10, output: 100}}", encoding="utf-8")
    done = cli(*through(server, "--config", "prices.yml", "--budget", "0.0001"))
    assert (done.code, done.out, server.requests) == (4, "", [])
    assert cli(*through(server, "--budget", "1")).code == 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_model_that_cannot_be_used_is_exit_3_after_one_call(cli: Cli, server: Server, status: int) -> None:
    server.script(Reply({"error": {"message": "no"}}, status=status))
    done = cli(*through(server, "--json"))
    assert (done.code, done.out, len(server.requests)) == (3, "", 1)


def test_a_repeatedly_failing_judge_is_not_asked_again(cli: Cli, server: Server) -> None:
    server.script(judge()[0], *[Reply({"error": {"message": "bad"}}, status=400)] * 3)
    done = cli(*through(server, "--json"))
    found = json.loads(done.out)
    assert (done.code, found["results"], found["unusable"], len(server.requests)) == (1, 4, 3, 4)
    assert "the judge failed 3 times in a row: " in done.err


def test_a_judge_that_failed_each_time_is_reported_with_the_reason(cli: Cli, server: Server) -> None:
    server.script(*[Reply({"error": {"message": "bad"}}, status=400)] * 2)
    done = cli(*through(server, "--limit", "2"))
    assert (done.code, done.out) == (1, "")
    assert "aeon-tui: the judge failed: " in done.err
    assert "(400): bad" in done.err


def test_retryable_calls_are_retried(cli: Cli, server: Server) -> None:
    server.script(Reply({"error": {"message": "busy"}}, status=429), *judge())
    done = cli(*through(server, "--json"))
    found = json.loads(done.out)
    assert (done.code, found["agreement"], found["calls"]) == (0, 1.0, 21)
    assert "warning: attempt 1 failed: " in done.err


class Interrupted(LLMAdapter):
    """A model that a person grows tired of at its third call."""

    model = "scripted:slow"

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.calls += 1
        return LLMResponse(text=verdict(self.calls - 1, good=self.calls % 2 == 1))


def test_ctrl_c_prints_partial_results(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Interrupted()
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _config: slow)
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        # Where the command waits for a reply, and the signal comes.
        if thread.name == "aeon-model-call" and slow.calls == 2:
            raise KeyboardInterrupt
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    done = cli("calibrate", labels(), "--model", "simulated:default", "--json", "--least", "1")
    found = json.loads(done.out)
    assert (done.code, found["results"], found["agreed"], found["interrupted"]) == (1, 2, 2, True)
    assert done.err == "interrupted; showing the verdicts so far\n"


def test_the_simulated_judge_is_labelled(cli: Cli) -> None:
    done = cli("calibrate", labels(), "--model", "simulated:default", "--json")
    found = json.loads(done.out)
    assert (done.code, found["simulated"], found["cost_usd"]) == (0, True, 0)
    assert "the simulated model judges its own texts by a simple rule" in done.err


def test_without_a_file_the_shipped_outcomes_are_judged(cli: Cli) -> None:
    found = json.loads(cli("calibrate", "--model", "simulated:default", "--limit", "60", "--json").out)
    assert (found["source"], found["results"]) == ("shipped", 60)
    assert found["by_language"].keys() >= {"ar", "de", "en", "es", "fr", "hi", "ja"}


def test_without_a_usable_model_it_is_exit_3_and_one_line(cli: Cli) -> None:
    labels()
    for options, said in (([], "no model is configured"), (["--model", "openai:gpt-9"], "set OPENAI_API_KEY")):
        done = cli("calibrate", "labels.jsonl", *options)
        assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
        assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.jsonl",), "cannot read the labels file 'none.jsonl': No such file or directory"),
        (("broken.jsonl",), "broken.jsonl:2: it is not JSON"),
        (("labels.jsonl", "--least", "2"), "--least must be a number from 0 to 1, such as 0.9; got '2'"),
        (("labels.jsonl", "--least", "most"), "--least must be a number from 0 to 1"),
        (("labels.jsonl", "--limit", "0"), "--limit must be a whole number, 1 or more; got '0'"),
        (("labels.jsonl", "--judge-votes", "2"), "judge"),
        (("labels.jsonl", "--history"), "--history uses your own labels; drop 'labels.jsonl'"),
        (("--history", "--model", "openai:x"), "--history calls no model; drop --model"),
        (("--history", "--judge-votes", "3"), "--history calls no model; drop --judge-votes"),
    ],
)
def test_a_usage_error_is_exit_2_and_one_line(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    Path(labels()).read_text(encoding="utf-8")
    first = Path("labels.jsonl").read_text(encoding="utf-8").splitlines()[0]
    Path("broken.jsonl").write_text(f"{first}\n{{\n", encoding="utf-8")
    done = cli("calibrate", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_the_file_is_read_before_a_model_is_connected(cli: Cli) -> None:
    assert cli("calibrate", "none.jsonl").code == 2


def runs() -> Path:
    """Two judged runs, of which a person agrees with one, and one that nobody has labelled."""
    folder = Path(".aeon/runs")
    for name, scripted in (("one", model()), ("two", two_passes()), ("three", model())):
        Orchestrator(scripted, config=RunConfig(durability="off"), journal=folder / f"{name}.jsonl").run(TASK)
    label_run(folder / "one.jsonl", "good")
    label_run(folder / "two.jsonl", "bad", f"not what I asked, {KEY}")
    return folder


def test_the_judge_is_compared_with_the_users_labels_without_a_model(cli: Cli) -> None:
    folder = runs()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = cli("calibrate", "--history", "--json")
    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert (found["results"], found["agreed"], found["false_accepts"]) == (2, 1, 1)
    assert list(found["by_model"]) == ["scripted:test"]
    assert [(each["id"], each["label"], each["said"]) for each in found["disagreements"]] == [
        ("two pass 2", "bad", "good")
    ]
    assert KEY not in done.out
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    text = cli("calibrate", "--history", "--least", "0.6")
    assert text.code == 5
    assert text.out.startswith("agreement 0.50 · 1 of 2 results · kappa 0.00\n")
    assert "\nscripted:test       0.50        2         1         0         0\n" in text.out
    assert "two pass 2 · labelled bad (not what I asked, " in text.out


def test_a_history_without_labels_is_one_line(cli: Cli) -> None:
    for options, code in (((), 0), (("--least", "0.5"), 5)):
        done = cli("calibrate", "--history", *options)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
        assert "has both a label and a judge's verdict yet; add a label with `aeon-tui label RUN good|bad`" in done.err

"""A literal in a step's description against the one that its arguments pass, whatever the language (Decision 7)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.validation.plan_checks import mismatch
from tests.aeon_core.validation.plans import VALIDATOR, found, plan, said
from tests.sampling import each

DIFFERENT: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("path", "Read src/dates.py", {"path": "src/times.py"}, "src/dates.py", "src/times.py"),
    ("path", "Lies die Datei /etc/hosts", {"path": "/tmp/hosts"}, "/etc/hosts", "/tmp/hosts"),
    ("path", "Sicherung von data/mai.csv", {"path": "data/juni.csv"}, "data/mai.csv", "data/juni.csv"),
    ("path", "Count rows of sales.csv", {"path": "costs.csv"}, "sales.csv", "costs.csv"),
    (
        "URL",
        "Fetch https://api.example.org/v1/users.",
        {"url": "https://api.example.org/v1/orders"},
        "https://api.example.org/v1/users",
        "https://api.example.org/v1/orders",
    ),
    (
        "URL",
        "https://a.example を取得する",
        {"deep": [{"url": "https://b.example"}]},
        "https://a.example",
        "https://b.example",
    ),
    (
        "email address",
        "Écrire à ann@example.org",
        {"to": "bob@example.org", "body": "Bonjour"},
        "ann@example.org",
        "bob@example.org",
    ),
    ("date", "Agendar para 2026-03-01", {"date": "2026-03-02"}, "2026-03-01", "2026-03-02"),
    ("name", "Starte web-1 neu", {"host": "web-2", "service": "nginx"}, "web-1", "web-2"),
    ("figure", "Wait 30 s", {"delay": "60 s"}, "30 s", "60 s"),
    ("figure", "خفض إلى 20%", {"discount": "25%"}, "20 %", "25%"),
    ("number", "Add 17 and 25", {"a": 17, "b": 26}, "25", "26"),
    ("number", "Redimensionner à 800 x 600", {"width": 800, "height": 450}, "600", "450"),
    ("text", 'Repeat "good morning"', {"text": "good evening"}, "good morning", "good evening"),
    ("text", "Suche nach „Umsatz 2025“", {"query": "Umsatz 2024"}, "Umsatz 2025", "Umsatz 2024"),
    ("text", "「東京の天気」を検索", {"query": "京都の天気"}, "東京の天気", "京都の天気"),
    ("text", "Run `git status -s`", {"command": "git stash -s"}, "git status -s", "git stash -s"),
    ("text", "Run `git status`", {"host": "h", "command": "git push --force"}, "git status", "git push --force"),
    ("name", "Restart web-01.example.org", {"host": "web-02.example.org"}, "web-01.example.org", "web-02.example.org"),
    ("name", "Query db.a.example", {"host": "db.b.example", "sql": "x"}, "db.a.example", "db.b.example"),
    ("name", "Neustart von 10.0.0.1", {"host": "10.0.0.2"}, "10.0.0.1", "10.0.0.2"),
    ("name", "Reboot 10.0.0.1", {"host": "192.168.7.9"}, "10.0.0.1", "192.168.7.9"),
    (
        "URL",
        "Delete https://a.example/items/12",
        {"url": "https://a.example/items/1"},
        "https://a.example/items/12",
        "https://a.example/items/1",
    ),
    ("URL", "Get https://a.example/x", {"url": "ftp://a.example/x"}, "https://a.example/x", "ftp://a.example/x"),
    ("URL", "Get https://a.example/x", {"url": "http://a.example/x"}, "https://a.example/x", "http://a.example/x"),
    ("email address", "Mail bob@x.example", {"to": "bob@x.example.com"}, "bob@x.example", "bob@x.example.com"),
    ("date", "Book 2026-05-01", {"date": "2026-05-10T10:00:00"}, "2026-05-01", "2026-05-10T10:00:00"),
    ("path", "Delete data/run1", {"path": "data/run"}, "data/run1", "data/run"),
    ("path", "Delete /tmp/x", {"path": "/etc/passwd"}, "/tmp/x", "/etc/passwd"),
    ("figure", "Pay €20", {"amount": "€200"}, "20 €", "200 €"),
    ("figure", "Pay $20", {"amount": "$2000"}, "20 $", "2000 $"),
    ("number", "Wait 10 seconds", {"seconds": 100}, "10", "100"),
    ("number", "Wait 10 seconds, 3 retries", {"seconds": 17, "retries": 3}, "10", "17"),
]


@pytest.mark.parametrize(
    ("kind", "description", "arguments", "described", "passed"),
    DIFFERENT,
    ids=[f"{kind}-{number}" for number, (kind, *_) in enumerate(DIFFERENT)],
)
def test_two_different_literals_of_one_kind_are_named(
    kind: str, description: str, arguments: dict[str, Any], described: str, passed: str
) -> None:
    pair = mismatch(description, arguments, reads=True)
    assert pair is not None
    assert pair[:3] == (kind, described, passed)


SAME: list[tuple[str, dict[str, Any]]] = [
    ("Read ./src/dates.py", {"path": "src/dates.py"}),
    ("Read dates.py", {"path": "/home/ann/src/dates.py"}),
    ("Read the file README", {"path": "README.md"}),
    ("Fetch https://api.example.org/v1/", {"url": "https://API.example.org/v1"}),
    ("Fetch the page about cats", {"url": "https://en.example.org/cats"}),
    ("Compare 2026-03-01 with 2026-04-01", {"from": "2026-03-01", "to": "2026-04-01"}),
    ("Move it from 2026-03-01 to 2026-03-02", {"date": "2026-03-02", "title": "a@b.example"}),
    ("Tell ann@example.org and bob@example.org", {"to": "carl@example.org"}),
    ("Restart web-1 in zone eu-3", {"host": "web-2"}),
    ("Wait half a minute", {"delay": "30 s"}),
    ("Wait 1 min", {"delay": "60 s"}),
    ("Show 3 of the results", {"limit": 10}),
    ("Add 17 and 25", {"a": 25, "b": 17}),
    ("Add 1 and 2", {"a": 1, "b": 10**400}),
    ("Halve 90", {"operation": "divide", "a": 90, "b": 2}),
    ("Take 15% of 80", {"a": 80, "b": 0.15}),
    ("Convert 2 h and 30 min", {"a": 2, "b": 1800}),
    ('Explain "idempotence" to a child', {"text": "What happens if you press the lift button twice?"}),
    ('Translate "good morning" into French', {"text": "good morning", "target_language": "French"}),
    ('Rename "a b" to "c d"', {"command": "mv 'a b' 'c e'"}),
    ("Run the `nightly` job", {"command": "make all"}),
    ("Say it loud", {"text": "it"}),
    ("日本語の説明", {"path": "データ.csv"}),
    ("Take the file from the step before", {"path": "out/report.pdf"}),
    ("Book a room for the day after 2026-03-31", {"date": "2026-04-01"}),
    ("2026-04-01の前日の天気を調べる", {"date": "2026-03-31"}),
    ("Load the sales of the week that ends on 2026-06-07", {"start": "2026-06-01"}),
    ("Book 2026-05-01", {"date": "2026-04-30T22:00:00Z"}),
    ("Book 2026-02-30 in the hall", {"date": "2026-03-07"}),
    ("Promote the replica of db-1", {"host": "db-2"}),
    ("Restart host-07", {"host": "host-7"}),
    ("Query the mirror of db.example.org", {"host": "mirror.example.org"}),
    ("Upgrade from 1.2.3", {"version": "1.2.4"}),
    ("Fetch http://a.example/x", {"url": "https://a.example/x"}),
    ("Fetch https://a.example/x?y=1", {"url": "https://a.example/x"}),
    ("Fetch the page that http://example.org/old redirects to", {"url": "https://example.org/new"}),
    ("The API is described at https://vendor.example/en/docs", {"url": "https://api.vendor.example/v1"}),
    ("Envía el informe de ana@x.example a su jefe", {"to": "jefe@x.example"}),
    ("Forward the mail of ann@a.example to the accountant", {"to": "b@b.example", "body": "From ann@a.example"}),
    ("Write tests for src/utils.py", {"path": "tests/test_utils.py"}),
    ("Read the module next to app/models.py", {"path": "app/views.py"}),
    ("Compile src/a.c", {"path": "out/a.o"}),
    ("Resize to half of 800 px", {"width": "400 px"}),
    ("Take 30 % off", {"price": "70 %"}),
    ("Scale the dough for 500 g flour at 70 % hydration", {"water": "350 g"}),
    ("Weigh 10-20 kg", {"amount": "15 kg"}),
    ("Payer 1 200 €", {"amount": "1200 €"}),
    ("Read lines 10 to 20", {"offset": 10, "limit": 11}),
    ("Get page 3 with 50 items each", {"offset": 100, "limit": 50}),
    ("Wait 2 hours, retry 3 times", {"seconds": 7200, "retries": 3}),
    ("Wait up to 10 seconds", {"seconds": 5}),
    ('Correct the spelling of "recieve" in all files', {"pattern": "receive"}),
    ('Ask for the answer to "How are you" in French', {"text": "How old are you"}),
    ("Run `lint`", {"command": "ruff"}),
    ("host-" + "8" * 4900, {"a": "host-" + "9" * 4900}),
]


@each((description, arguments, reads) for description, arguments in SAME for reads in (True, False))
def test_ambiguous_literals_are_not_reported(description: str, arguments: dict[str, Any], reads: bool) -> None:
    assert mismatch(description, arguments, reads=reads) is None


def test_a_tool_may_write_another_file_than_the_step_names() -> None:
    """A step that says which file it is about may read another one only where its tool reads, and writes any."""
    summary = ("Summarise notes.txt", {"path": "summary.txt", "content": "…"})
    assert mismatch(*summary, reads=False) is None
    assert mismatch(*summary, reads=True) == ("path", "notes.txt", "summary.txt", True)
    assert mismatch("Save it as out/a.txt", {"path": "out/b.txt"}, reads=False) == (
        "path",
        "out/a.txt",
        "out/b.txt",
        False,
    )


def test_a_contradicted_literal_is_a_high_issue_that_names_both() -> None:
    assert said(("Get https://a.example/x", "http_get", {"url": "https://a.example/y"})) == [
        (
            "the description names the URL 'https://a.example/x', the arguments 'https://a.example/y'",
            "Make description and arguments name the same URL.",
        )
    ]


@pytest.mark.parametrize(
    ("description", "arguments"),
    [
        ("Die Ergebnisse der Messung von heute an ann@a.example schicken", {"to": "bob@b.example"}),
        ("Récupérer les tarifs publiés cette année sur https://a.example/x", {"url": "https://b.example/y"}),
        ("Restart the service payments on pay-1 and wait", {"host": "pay-7"}),
        ("新入社員の研修を 2026-04-07 に設定する", {"date": "2026-04-17"}),
    ],
)
def test_a_contradicted_literal_among_other_words_is_a_medium_issue(
    description: str, arguments: dict[str, Any]
) -> None:
    pair = mismatch(description, arguments, reads=False)
    assert pair is not None
    assert pair[3] is False


def test_literals_named_by_the_goal_or_an_earlier_call_are_allowed() -> None:
    forward = ("Forward what the page https://a.example/news says today", "http_get", {"url": "https://b.example/news"})
    assert [severity for _, severity, _ in found(forward)] == ["medium"]
    assert found(("Look it up", "http_get", {"url": "https://a.example/news"}), forward) == []
    steps = plan("Follow https://a.example/news to https://b.example/news", forward)
    assert VALIDATOR.validate_plan(steps).issues == []
    few = ("Get https://a.example/news", "http_get", {"url": "https://b.example/news"})
    assert len(found(("Look it up", "http_get", {"url": "https://a.example/news"}), few)) == 1


def test_an_issue_is_high_only_if_the_literal_is_almost_alone() -> None:
    for description, alone in (("Restart web-1", True), ("Bitte web-1 neu", True), ("Please restart web-1 now", False)):
        assert mismatch(description, {"host": "web-5"}, reads=False) == ("name", "web-1", "web-5", alone)

"""The report as a web page: what it says without JavaScript, how large it gets, and that no text becomes code."""

from __future__ import annotations

import random
import re
from base64 import b85encode
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_themes import AEON_DARK, AEON_LIGHT
from aeon_themes.palette import READABLE, contrast
from aeon_tui.reports.export import export_journal
from aeon_tui.reports.web_page import TextArchive, escaped, markdown, page, tag
from tests.aeon_tui.passes import QUESTION, WANTED, Passes, converged_run, given_up_run, hostile_passes, step
from tests.aeon_tui.recordings import finished_run
from tests.aeon_tui.reports.pages import Page, journal_of

MOST_BYTES = 5_000_000
ASSETS = Path(__file__).parents[3] / "aeon_tui" / "reports" / "page"


def exported(run: Passes | object, folder: Path) -> Page:
    records = run.records  # type: ignore[attr-defined]
    return Page(export_journal(journal_of(records, folder / "r.jsonl"), "html", folder))


def test_the_page_is_complete_without_javascript(tmp_path: Path) -> None:
    shown = exported(converged_run(), tmp_path)
    for expected in (
        "✔ converged · simulated:default (simulated) · ",
        "with invoices as its resources, and a code and a sentence for every error.",
        QUESTION,
        f"{WANTED[0]}\npass 1 ◐ partly Not finished.\npass 2 ✔ yes invoices as its resources",
        f"{WANTED[2]}\npass 1 ✔ yes it is half a page long (quote not found)",
        "Pass 1 (cut short) · not converged",
        "Plan changes: + 3 added · ~ 1 changed · ⊘ 1 invalid · 1 step as before",
        "✔ change s2, accepted in pass 1: it says nothing",
        "✖ change s1, refused in pass 1: it says nothing",
        "✔ model · evaluate · judge · attempt 1 · 340 ms · 40 → 12 tokens",
        "✔ s3.1 · complete · reasoning (part of s3-r1)\nWork out the resources",
        "pass 1 high · specificity · s3: the result of s3 says nothing of its own → Split the step",
        "judge\n2\n80\n24\n$0.00\n680 ms",
        "TTL: 10 cycles spent, 40 of 50 left; limit 50.",
        "line 48: pass.plan_state: Field required",
    ):
        assert expected in shown.text
    for name in ("pass-1", "pass-2", "step-s3-r1", "step-s3.1", "record-40"):
        assert name in shown.values("id")
    assert {each[1:] for each in shown.values("href")} <= set(shown.values("id")), "every link leads somewhere"
    assert len(set(shown.values("id"))) == len(shown.values("id"))
    assert {"header", "nav", "main", "footer"} <= set(shown.tags)
    assert not {"link", "img", "iframe", "object", "form"} & set(shown.tags)
    assert not shown.values("src")


def test_calls_repairs_and_approvals_are_exported_in_full(tmp_path: Path) -> None:
    run = finished_run()
    result = run.records.pop()["result"]
    change = {"file_path": "notes.md", "old_string": "one\ntwo", "new_string": "one\nthree"}
    run.tool("s1", "Edit", change, {"path": "notes.md", "diff": "@@ -1 +1 @@\n-two\n+three"})
    asked = {"point": "tool", "pass": 1, "step_id": "s1", "digest": "d"}
    run.add("approval", **asked, state="asked", subject={"tool_name": "Edit", "arguments": change})
    run.add("approval", **asked, state="decided", decision="reject", feedback="not that file")
    run.add("run_finished", result=result)
    text = exported(run, tmp_path).text
    assert (
        "tool · Edit · pure · 2 ms\narguments\nfile_path: notes.md\n@@ -1,2 +1,2 @@\none\n-two\n+three\nresult" in text
    )
    assert text.count("-two\n+three") == 2, "as the arguments say it, and as the tool did"
    assert "Edit notes.md? · tool · pass 1 · decided: reject after 1.0 s\nfeedback\nnot that file" in text
    assert '"a": 5' in text or "a: 5" in text
    assert "✎ step repaired · 1 of 2, by the model" in text


def test_one_pass_is_exported_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from aeon_tui.cli.main import main

    path = journal_of(converged_run().records, tmp_path / "r.jsonl")
    assert main(["show", str(path), "--pass", "1", "--export", "html"]) == 0
    shown = Page(capsys.readouterr().out)
    assert ("pass-1" in shown.values("id"), "pass-2" in shown.values("id")) == (True, False)
    assert [number for number, *_ in shown.archive["passes"]] == [1]
    assert shown.archive["first"] > 0


def test_long_texts_are_held_once_and_whole(tmp_path: Path) -> None:
    run, prompt = Passes(), "".join(f"line {number} & <tag>\n" for number in range(2_000))
    for _ in range(20):
        run.ask("reason", None, prompt)
        run.answer("reason", "done")
    shown = exported(run, tmp_path)
    assert shown.archive["texts"] == [None, prompt]
    assert shown.values("data-text") == ["1"] * 20
    assert f"… {len(prompt) - 600:,} more characters" in shown.text
    assert shown.size < 150_000


@pytest.mark.exhaustive
def test_a_run_of_2000_records_fits_in_5_mb(tmp_path: Path) -> None:
    chance = random.Random(7)
    run = Passes()
    run.phase("plan")
    run.plan(*(step(f"s{number}", f"Do part {number}") for number in range(1, 101)))
    run.phase("execute")
    while len(run.records) < 1_999:
        each = f"s{len(run.records) % 100 + 1}"
        noise = b85encode(chance.randbytes(15_000)).decode().replace("Q", "\n").replace("Z", "ü")
        run.step(each, "running")
        run.ask("reason", each, noise)
        run.answer("reason", noise[:5_000], each)
        run.tool(each, "Read", {"file_path": noise[:300]}, {"text": noise[::-1]})
        run.step(each, "complete", mode="llm", output={"text": noise[5_000:9_000]})
    run.finish("completed", answer=noise)
    path = journal_of(run.records, tmp_path / "r.jsonl")
    shown = Page(export_journal(path, "html", tmp_path))
    assert path.stat().st_size > 10_000_000
    assert shown.size < MOST_BYTES
    assert "more characters, in the journal only" in shown.text
    assert len(shown.archive["texts"]) > 50, "what fits is held whole"
    assert f"record-{len(run.records) - 1}" in shown.values("id")


def test_a_text_that_does_not_fit_refers_to_the_journal() -> None:
    archive, noise = TextArchive({}, limit=8_000), b85encode(random.Random(1).randbytes(20_000)).decode()
    assert ", in the journal only" in archive.shown(noise)
    assert "data-text" in archive.shown("short of it " * 80)
    assert len(archive.packed()) < 8_500


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            "<!--<script>",
            "]]></style><img src=x onerror=alert(1)>",
            '" onclick="alert(1)" x="',
            "' autofocus onfocus=alert(1) '",
            "\u2028alert(1)\u2029",
            "[x](javascript:alert(1)) ![x](http://x/y.png) <http://x/>\n\n# h\n\n<div onclick=x>\n\n```</pre>\n",
            "| a |\n| :- |\n| b |",
            "&lt;script&gt;&#x3c;",
            "\x1b]0;t\x07\u202e\x00",
        ]
    ),
)
ELEMENTS = set(
    re.findall(
        r"\w+",
        "html head meta title style body a header nav main footer section div p span strong code pre q ul ol li dl dt "
        "dd h1 h2 h3 h4 h5 h6 details summary time table thead tbody tfoot tr th td meter ins del em hr br "
        "blockquote script",
    )
)
NAMES = set(
    re.findall(
        r"[\w-]+",
        "charset http-equiv content name lang class id href tabindex aria-label aria-labelledby data-seq data-text "
        "data-step data-icon title open role scope value min max type",
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(texts=st.lists(HOSTILE, min_size=3, max_size=3))
def test_model_and_tool_text_becomes_neither_markup_nor_code(tmp_path: Path, texts: list[str]) -> None:
    one, two, three = (text.encode(errors="replace").decode() for text in texts)
    run = Passes(one)
    run.plan(step(two or "s", three), step("s2", one, tool=two, depends_on=[three]), cause=three)
    run.report({"issue_id": one, "type": two, "severity": three, "description": one, "proposed_repair": two})
    run.assess(0.5, 0.5, one, two)
    run.called(one, two, three)
    run.tool("s2", one, {two: three, "old_string": one, "new_string": two}, {"diff": three, one: two})
    run.add("approval", **{"pass": 1}, point=one, state="asked", subject={two: three}, digest="d")
    run.step("s2", "complete", mode="llm", output={"text": three})
    run.finish(one, answer=two)
    text = export_journal(journal_of(run.records, tmp_path / "r.jsonl"), "html", tmp_path)
    shown = Page(text)
    assert set(shown.tags) <= ELEMENTS
    assert {name for name, _ in shown.attributes} <= NAMES
    assert shown.tags.count("script") == 2
    assert shown.tags.count("style") == 1
    assert all(link.startswith("#") for link in shown.values("href"))
    assert not re.search("[\x00-\x08\x0b-\x1f\u2028\u2029\u202e]", text)


def test_hostile_or_huge_texts_are_exported_safely(tmp_path: Path) -> None:
    shown = exported(hostile_passes(), tmp_path)
    assert set(shown.tags) <= ELEMENTS
    assert shown.size < 300_000


def test_the_policy_allows_only_the_pages_own_code() -> None:
    written = page("t", tag("p", "x"), archive=TextArchive({}).packed())
    policy = Page(written).values("content")[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for name in ("report.css", "report.js"):
        lines = (ASSETS / name).read_text(encoding="utf-8").split("\n")
        assert all(line == line.rstrip() for line in lines), "an export takes blanks at the ends of lines away"
        assert max(map(len, lines)) <= 140, "nothing is minified"
    assert "<script" not in page("t", tag("p", "x"))


def test_a_markdown_answer_is_drawn_without_links_images_or_markup() -> None:
    made = markdown(
        "# Title\n\n- **one** <b>two</b>\n- [a](http://x) ![b](http://y)\n\n| a | b |\n| -: | - |\n| 1 | 2 |"
    )
    assert "<h4>Title</h4>" in made
    assert "<strong>one</strong> &lt;b&gt;two&lt;/b&gt;" in made
    assert "[a](http://x) ![b](http://y)" in made
    assert "<td>1</td>" in made
    assert "style" not in made
    assert escaped("a\r\nb\x1b<") == "a\nb\\x1b&lt;"


def test_every_colour_of_the_style_can_be_read_in_light_and_in_dark() -> None:
    css = (ASSETS / "report.css").read_text(encoding="utf-8")
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|(?<!-)opacity", css), "all colours are those of the themes"
    colours = {name.replace("-", "_") for name in re.findall(r"(?<![-\w])color: var\(--([\w-]+)\)", css)}
    grounds = set(re.findall(r"background: var\(--(background|surface|panel|cursor)\)", css))
    assert len(colours) > 10
    assert grounds == {"background", "surface", "panel", "cursor"}
    for palette in (AEON_LIGHT, AEON_DARK):
        for colour in colours - {"background"}:
            for ground in grounds:
                assert contrast(getattr(palette, colour), getattr(palette, ground)) >= READABLE
        assert contrast(palette.background, palette.medium) >= READABLE, "a match of the search"


def test_an_abandoned_run_names_who_is_needed(tmp_path: Path) -> None:
    text = exported(given_up_run(), tmp_path).text
    assert text.count("s3 needs a person: refined 3 times") == 1

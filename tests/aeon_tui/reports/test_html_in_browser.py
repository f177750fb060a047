"""The report in Chromium: moments, whole texts, search, keys, links, light and dark, paper; nothing else is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from aeon_themes import AEON_DARK, AEON_LIGHT
from aeon_themes.palette import rgb
from aeon_tui.reports.export import export_journal
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.reports.pages import journal_of
from tools.web_pictures import browser, chromium

PROGRAM = chromium()
if PROGRAM is None:
    pytest.skip("there is no Chromium", allow_module_level=True)

from playwright.sync_api import Browser, Page, expect  # noqa: E402  # where there is one alone

pytestmark = pytest.mark.exhaustive

PROMPT = "the beginning\n" + "filler </script> & more\n" * 400 + "a needle at the end of a long prompt"
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    run = converged_run()
    result = run.records.pop()["result"]
    run.ask("reason", "s3.2", PROMPT)
    run.answer("reason", HOSTILE, "s3.2")
    run.step("s3.2", "complete", mode="llm", output={"text": HOSTILE})
    run.add("cycle", step_number=3)
    run.add("run_finished", result=result)
    (folder / "report.html").write_text(export_journal(journal_of(run.records, folder / "r.jsonl"), "html", folder))
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    assert PROGRAM is not None
    with browser(PROGRAM) as started:
        yield started


@pytest.fixture
def page(chrome: Browser) -> Iterator[Page]:
    """A page on which nothing is loaded but the report, and nothing is complained about."""
    opened = chrome.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    asked: list[str] = []
    problems: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    opened.close()
    assert problems == []
    assert {url.partition("#")[0].rpartition("/")[2] for url in asked} == {"report.html"}


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("html[data-ready]").wait_for(state="attached")


def moment(page: Page) -> str:
    return page.locator(".moment").inner_text()


def test_the_scrubber_and_its_keys_show_the_run_as_it_was(page: Page, file: str) -> None:
    opened(page, file)
    steps = page.locator("#tree li")
    assert moment(page).startswith("the end of the run · pass 2 of 2 · record ")
    assert steps.all_inner_texts()[2] == "⊘ s3 Put the parts together"
    page.keyboard.press("[")
    assert moment(page).startswith("a past moment · pass 1 of 2 · refine · record 46 of ")
    assert "TTL 40 of 50" in moment(page)
    assert [each.partition(" Put")[0] for each in steps.all_inner_texts()[2:4]] == [
        "⊘ s3",
        "○ s3-r1 Work out the parts and put them together",
    ]
    expect(page.locator("#answer")).to_be_hidden()
    expect(page.locator("#pass-1")).to_be_in_viewport()
    expect(page.locator("#pass-2")).to_be_hidden()
    page.keyboard.press("{")
    assert "record 45 of" in moment(page)
    page.locator("input[type=range]").fill("13")
    assert [each.split()[0:2] for each in steps.all_inner_texts()] == [["○", "s1"], ["○", "s2"], ["○", "s3"]]
    expect(page.locator("[id='step-s3.1']")).to_be_hidden()
    page.locator("input[type=range]").fill("2")
    assert steps.all_inner_texts() == ["There is no plan yet."]
    page.keyboard.press("Escape")
    assert moment(page).startswith("the end of the run")
    expect(page.locator("#answer")).to_be_visible()
    page.get_by_label("The end of pass 1", exact=True).click()
    assert "record 46 of" in moment(page)
    page.keyboard.press("]")
    assert moment(page).startswith("the end of the run")


def test_search_finds_and_unfolds_folded_text(page: Page, file: str) -> None:
    opened(page, file)
    page.keyboard.press("/")
    page.keyboard.type("NEEDLE at")
    row = page.locator(".found li")
    assert "s3.2 · ✔ model · reason" in row.inner_text()
    page.keyboard.press("Enter")
    whole = page.locator("[data-step='s3.2'] pre", has_text="a needle at the end")
    assert whole.inner_text() == PROMPT
    assert page.evaluate("[...CSS.highlights.get('match')].map(String)") == ["needle at"]
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator(".found")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("resources")
    found = row.count()
    assert page.locator(".found p").inner_text() == f"{found} places"
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    assert page.locator("#news").text_content() == f"2 of {found} places"
    page.keyboard.press("N")
    assert page.locator("#news").text_content() == f"1 of {found} places"
    page.keyboard.press("/")
    page.keyboard.type(" nowhere")
    assert page.locator(".found p").inner_text() == "Nothing was found."


def test_keys_and_links_lead_to_problems_sections_steps_and_records(page: Page, file: str) -> None:
    opened(page, f"{file}#step-s3.1")
    expect(page.locator("[id='step-s3.1']")).to_be_focused()
    expect(page.locator("[id='step-s3.1'] h3")).to_be_in_viewport()
    page.keyboard.press("n")
    number = page.locator("#news").text_content() or ""
    assert number.startswith("problem 1 of ")
    expect(page.locator("main .at")).to_be_in_viewport()
    page.keyboard.press("N")
    assert page.locator("#news").text_content() == f"problem {number.rpartition(' ')[2]} of {number.rpartition(' ')[2]}"
    page.keyboard.press("1")
    expect(page.locator("#answer")).to_be_in_viewport()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous match, else problem")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    opened(page, f"{file}#record-20")
    assert "record 20 of" in moment(page)
    expect(page.locator("#record-20")).to_be_in_viewport()
    page.locator("nav a", has_text="pass 2").click()
    expect(page.locator("#pass-2")).to_be_focused()
    assert moment(page).startswith("the end of the run"), "a link to what had not happened yet ends the past moment"
    last = int(page.locator("input[type=range]").get_attribute("max") or 0)
    page.evaluate(f"location.hash = '#record-{last - 1}'")
    expect(page.locator(f"#record-{last - 2}")).to_be_in_viewport()
    assert f"record {last - 1} of {last} " in moment(page), "the record of a cycle has no line"


def test_light_and_dark_follow_the_reader_and_the_button(page: Page, file: str) -> None:
    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    for palette, other, scheme in ((AEON_LIGHT, AEON_DARK, "light"), (AEON_DARK, AEON_LIGHT, "dark")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        opened(page, file)
        assert ground() == f"rgb{rgb(palette.background)}"
        page.get_by_label("Light or dark").click()
        assert ground() == f"rgb{rgb(other.background)}"


def test_nothing_is_wider_than_the_window(page: Page, file: str) -> None:
    opened(page, file)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_model_text_is_never_executed(page: Page, file: str) -> None:
    opened(page, file)
    page.evaluate("document.querySelectorAll('details, .more button').forEach((each) => each.click())")
    assert page.locator("[id='step-s3.2']").inner_text().count(HOSTILE) == 1
    assert page.title().startswith("Run ")
    assert page.locator("img, script[src]").count() == 0


def test_the_page_can_be_read_without_javascript_and_on_paper(chrome: Browser, file: str) -> None:
    context = chrome.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(file)
    expect(plain.locator("#answer")).to_contain_text("A REST API with invoices")
    expect(plain.locator("[id='step-s3.2'] details").first).to_be_visible()
    assert plain.locator("button, .bar").count() == 0
    plain.emulate_media(media="print", color_scheme="dark")
    expect(plain.locator("nav")).to_be_hidden()
    expect(plain.locator("#pass-2 h3")).to_be_visible()
    assert len(plain.pdf()) > 1_000
    context.close()


def test_every_control_has_a_name_and_headings_do_not_skip(page: Page, file: str) -> None:
    opened(page, file)
    tree = page.locator("body").aria_snapshot()
    controls = ('slider "Moment of the run, by record"', 'searchbox "Search the report"')
    landmarks = ("banner", 'navigation "Contents"', "main", "contentinfo", 'region "Moment and search"')
    for landmark in (*landmarks, *controls):
        assert f"- {landmark}" in tree
    assert "- button:" not in tree
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((each) => Number(each.tagName[1]))")
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))

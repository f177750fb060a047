"""The README and `docs/` tell the truth: every link leads somewhere, every command and snippet does what is shown."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import jsonschema_rs
import pytest

from aeon_core.config.loading import load_config
from aeon_core.llm import PROVIDERS
from aeon_core.schemas import schema
from aeon_core.tools import TOOL_SETS
from aeon_core.yaml_file import parse_yaml
from aeon_tui.cli.main import main
from aeon_tui.cli.parser import build_parser
from system2.settings import load_settings
from tests.sampling import sample
from tools.docs.__main__ import BESIDE, assemble
from tools.docs.reference import pages
from tools.transcripts import (
    EDITORS,
    RECORDINGS,
    editor_transcript,
    example,
    portable,
    recording_transcript,
    titled,
    transcript,
)
from tools.transcripts import PAGES as TRANSCRIPTS
from tools.yaml_editor import problems

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
WITHOUT_TERMINAL = {
    *("batch", "calibrate", "config", "delete", "doctor", "init", "label", "lint", "runs", "schema", "show", "tools"),
    "trust",
}
"""Commands that need neither the app nor a terminal."""
SLOW = {"batch"}
"""Pages whose commands start processes."""
PLACEHOLDER = re.compile(r"\b(?:PROVIDER:)?NAME\b|\bRUN\b|\bHOST\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is saved as (if any), and its text."""

    kind: str
    title: str | None
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(each["kind"], each["title"], each["text"]) for each in FENCE.finditer(page.read_text())]


def commands(block: Block) -> Iterator[tuple[list[str], int]]:
    """Yield each `aeon-tui` or `system2` command of a block, and the exit code that a comment gives it."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        expected = re.search(r"# exit (\d)", line)
        words = words[: words.index(">")] if ">" in words else words
        if words[:1] == ["aeon-tui"] or words[:3] == ["python", "-m", "system2"]:
            yield words, int(expected[1]) if expected else 0


def runs_here(words: list[str]) -> bool:
    """Whether a command can run to its end in a test: no app, no person, no server, no real model."""
    line = " ".join(words)
    if PLACEHOLDER.search(line) or "--wait" in words:
        return False
    alone = words[1:2] in (["-h"], ["--help"], ["--version"])
    return alone or "--headless" in words or "--check" in words or words[1] in WITHOUT_TERMINAL or words[0] == "python"


@pytest.mark.usefixtures("programs_on_path")
@pytest.mark.parametrize(
    "page", sample(PAGES, lambda page: page.stem not in SLOW), ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_commands_of_a_page_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page run in order in one folder; a `text` block below one is part of what it prints.

    The example of a page with a transcript runs there alone.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_tools", raising=False)
    namespace: dict[str, object] = {"__name__": "page"}
    printed: str | None = None
    elsewhere = example(page)["code"] if page in TRANSCRIPTS else None
    for block in blocks(page):
        if block.text == elsewhere:
            continue
        if block.title is not None:
            save(tmp_path / block.title, block.text)
        elif block.kind == "sh":
            printed = "".join(run(words, code, capfd) for words, code in commands(block) if checked(words))
        elif block.kind == "python":
            with redirect_stdout(StringIO()) as out:
                exec(compile(block.text, str(page), "exec"), namespace)
            printed = portable(out.getvalue())
        elif block.kind == "text" and printed:
            for line in filter(None, block.text.splitlines()):
                assert " ".join(line.split()) in " ".join(printed.split()), line
            printed = None


@pytest.mark.exhaustive
def test_the_page_about_recorded_runs_shows_what_happens() -> None:
    assert recording_transcript() == titled(RECORDINGS, "output")["text"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", TRANSCRIPTS, ids=lambda page: page.stem)
def test_a_transcript_is_what_the_example_prints(page: Path) -> None:
    """Reports that a client gets while it asks may be printed before or after what is asked."""
    pytest.importorskip(page.stem)
    assert sorted(transcript(page).splitlines()) == sorted(example(page)["printed"].splitlines())


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("npx") is None, reason="npm is not installed")
def test_the_yaml_language_server_finds_the_documented_errors(tmp_path: Path) -> None:
    assert editor_transcript() == example(EDITORS)["printed"]
    main(["init", "--project-root", str(tmp_path)])
    plan = next(block for block in blocks(EDITORS) if block.title == "review.yml")
    save(tmp_path / "review.yml", plan.text)
    assert problems(tmp_path / ".aeon" / "config.yml", tmp_path / "review.yml") == []


def save(path: Path, text: str) -> None:
    """Write a file that a page shows; configuration is loaded once, alone, so that what is wrong in it is said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if path.parts[-2:] == (".aeon", "config.yml"):
        load_config(config_file=path, start=path.parents[1])
        path.unlink()
    if path.parts[-2:] == (".system2", "config.yml"):
        warnings: list[str] = []
        load_settings(path.parents[1], warn=warnings.append)
        assert warnings == []
        path.unlink()


def checked(words: list[str]) -> bool:
    """Have the command line's parser check a command, and return whether it runs here."""
    if words[0] == "aeon-tui" and words[1:] not in (["--help"], ["--version"]):
        build_parser().parse_args(words[1:])
    return runs_here(words)


def run(words: list[str], code: int, capfd: pytest.CaptureFixture[str]) -> str:
    """Run a command in this process, and return all that it prints."""
    capfd.readouterr()
    if words[0] == "python":
        from system2.__main__ import main as system2

        ended = system2(words[3:])
    else:
        ended = main(words[1:])
    out, err = capfd.readouterr()
    assert ended == code, f"{shlex.join(words)}: exit {ended}\n{out}\n{err}"
    return out + err


def test_every_page_is_reached_from_the_navigation() -> None:
    listed = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text()))
    written = {str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents}
    assert written | set(pages()) <= listed
    assert listed <= written | set(pages()) | set(BESIDE)


def test_the_python_reference_shows_the_fields_and_properties_of_every_name() -> None:
    page = pages()["reference/python.md"]
    assert "| `step_id` | text | required | Id of the step, unique in the whole plan. |" in page
    assert "| `substeps` | list of PlanStep | required | Run in this order, before the parent ends. |" in page
    assert "| `result` | How the run ended. Raises UsageError if it has not ended yet. |" in page
    assert "system_prompt: str = ''" in page
    assert "| --- |\n\n" not in page
    assert "(*args, **kwargs)" not in page


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_every_guide_is_linked_from_the_start_pages(name: str) -> None:
    linked = {(ROOT / name).parent / target for target, _ in LINK.findall((ROOT / name).read_text())}
    assert set((ROOT / "docs" / "how-to").glob("*.md")) <= linked


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_files_next_to_the_docs_lead_somewhere(name: str) -> None:
    for target, _ in LINK.findall((ROOT / name).read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("name", ["README.md", "docs/how-to/models.md"])
def test_a_table_of_models_has_each_provider(name: str) -> None:
    assert re.findall(r"^\| `([\w-]+):", (ROOT / name).read_text(), re.MULTILINE) == list(PROVIDERS)


def test_the_table_of_tools_has_those_of_each_set() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (ROOT / "docs/how-to/tools.md").read_text(), re.MULTILINE)
    listed = {name: tuple(re.findall(r"`(\w+)`", tools)) for name, tools in rows if name in TOOL_SETS}
    assert listed == {name: each.names for name, each in TOOL_SETS.items()}


def test_every_file_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([\w.-]+(?:/[\w.-]+)+/?|\w+\.toml)`", (ROOT / "ARCHITECTURE.md").read_text())
    assert len(named) > 20
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []


@pytest.mark.exhaustive
def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    site = tmp_path / "docs"
    assemble(site)
    broken = []
    for page in site.rglob("*.md"):
        for target, anchor in LINK.findall(FENCE.sub("", page.read_text())):
            found = page.parent / target if target else page
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(f"{page.relative_to(site)}: {target}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_file_that_a_page_shows_names_its_schema_and_fits_it() -> None:
    shown = [
        (page, block) for page in PAGES for block in blocks(page) if block.kind == "yaml" and block.title is not None
    ]
    checked = 0
    for page, block in shown:
        first = block.text.partition("\n")[0]
        name = re.fullmatch(r"# yaml-language-server: \$schema=(?:\.aeon/)?schemas/([a-z-]+)\.json", first)
        if name is None:
            assert ".system2" in str(block.title), f"{page}: {block.title}"
            continue
        assert jsonschema_rs.is_valid(schema(name[1]), parse_yaml(block.text)), f"{page}: {block.title}"
        checked += 1
    assert checked > 8


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 250

from __future__ import annotations

import io
import json
import logging

import pytest

from aeon_core.errors import AeonError
from aeon_core.journal.view.reducer import fold
from aeon_tui.cli.output import OutputStream, diagnostics, stdout
from aeon_tui.cli.run_output import print_steps
from tests.aeon_tui.recordings import live_run

HOSTILE = "[bold red]x[/] \x1b[31m :smile: 12"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error
        self.tried: list[str] = []

    def write(self, text: str) -> int:
        self.tried.append(text)
        raise self.error


def test_a_pipe_gets_plain_text_and_trailing_blanks_are_cut() -> None:
    stream = io.StringIO()
    OutputStream(stream).line(("red", "bold red"), " and ", HOSTILE, "  ")
    assert stream.getvalue() == "red and [bold red]x[/] \\x1b[31m :smile: 12\n"


def test_a_terminal_gets_colour_for_our_styles_and_none_for_foreign_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    OutputStream(stream).line(("failed", "red"), " ", HOSTILE)
    assert stream.getvalue() == "\x1b[31mfailed\x1b[0m [bold red]x[/] \\x1b[31m :smile: 12\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_without_colour_gets_plain_text(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, value)
    stream = Terminal()
    OutputStream(stream).line(("failed", "red"))
    assert stream.getvalue() == "failed\n"


def test_long_lines_are_not_broken_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    OutputStream(stream).line("word " * 100 + "end")
    assert stream.getvalue().count("\n") == 1


def test_prose_is_wrapped_at_words_under_its_indent_on_a_terminal_and_is_one_line_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    prose = f"{HOSTILE} " + " ".join(["because"] * 20)
    terminal, pipe = Terminal(), io.StringIO()
    OutputStream(terminal).paragraph(prose, indent=8)
    OutputStream(pipe).paragraph(prose, indent=8)
    shown = [line.rstrip() for line in terminal.getvalue().splitlines()]
    plain = prose.replace("\x1b", r"\x1b")
    assert len(shown) == 3
    assert all(line.startswith(" " * 8) and len(line) <= 80 for line in shown)
    assert " ".join(line.strip() for line in shown) == plain
    assert pipe.getvalue() == f"{' ' * 8}{plain}\n"


def test_a_block_keeps_its_lines_and_indents_each() -> None:
    stream = io.StringIO()
    OutputStream(stream).block("one\r\n\n\ttwo\x00", indent="  ")
    assert stream.getvalue() == "  one\n\n  \ttwo\\x00\n"


def test_json_is_one_document_in_any_encoding() -> None:
    value = {"text": "grüße \x9b \u202e 日本"}
    for encoding, shown in (("utf-8", "grüße"), ("ascii", r"gr\u00fc\u00dfe")):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding)
        OutputStream(stream).json(value)
        stream.flush()
        text = raw.getvalue().decode(encoding)
        assert json.loads(text) == value
        assert shown in text
        assert "\x9b" not in text


def test_output_stops_when_the_reader_is_gone() -> None:
    stream = Broken(BrokenPipeError())
    output = OutputStream(stream)
    output.line("one")
    output.line("two")
    assert stream.tried == ["one\n"]


def test_a_full_disk_is_an_error() -> None:
    with pytest.raises(AeonError, match="cannot write the output: No space left on device"):
        OutputStream(Broken(OSError(28, "No space left on device"))).line("one")


def test_a_missing_stream_accepts_everything() -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        output = OutputStream(stream)
        output.line("one")
        output.json({})


@pytest.mark.parametrize(("ended", "word"), [(True, "stopped"), (False, "running")])
def test_a_step_left_running_by_an_ended_run_is_shown_stopped(
    capsys: pytest.CaptureFixture[str], ended: bool, word: str
) -> None:
    run = live_run()
    if ended:
        run.finish("aborted")
    print_steps(stdout(), fold(run.records))
    assert f"\ns3 {word} · " in capsys.readouterr().out


@pytest.mark.parametrize(("debug", "shown"), [(True, "Failed to export: 401\n"), (False, "")])
def test_debugging_shows_why_traces_are_not_delivered(
    capsys: pytest.CaptureFixture[str], debug: bool, shown: str
) -> None:
    with diagnostics(debug):
        logging.getLogger("opentelemetry.exporter.x").warning("Failed to export: %s", 401)
    assert capsys.readouterr().err == shown

"""The man page and the shell completions, generated from the command line's parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.command_line import Argument, commands, complete_parser, parsers

PLACES = {
    "man": "share/man/man1/aeon-tui.1",
    "bash": "share/bash-completion/completions/aeon-tui",
    "zsh": "share/zsh/site-functions/_aeon-tui",
    "fish": "share/fish/vendor_completions.d/aeon-tui.fish",
}
"""Where each file is installed, below the prefix."""
_FILES = {"FILE", "PLAN", "TASKS", "LABELS.jsonl"}
_EXITS = {
    0: "a usable result",
    1: "aborted, or a fatal error",
    2: "bad arguments, configuration, plan or journal",
    3: "no usable model, or an extra is not installed",
    4: "the budget is used up",
    5: "ended without an accepted result",
}


def write(directory: Path, version: str) -> dict[str, str]:
    """Write the files into a directory; return the place where each is installed, by its path."""
    directory.mkdir(parents=True, exist_ok=True)
    installed = {}
    for kind, place in PLACES.items():
        path = directory / kind
        path.write_text(man_page(version) if kind == "man" else completions(kind))
        installed[str(path)] = place
    return installed


def completions(shell: str) -> str:
    """Return the completions of `bash`, `zsh` or `fish`."""
    import shtab

    parser = complete_parser()
    for each in parsers(parser):
        for action in each._actions:
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif "|" in str(action.metavar):
                action.choices = str(action.metavar).split("|")
            elif action.dest == "approve":
                action.choices = ["plan", "pass", "tool", "none"]
            elif each.prog == "aeon-tui schema" and action.metavar == "NAME":
                # The build that generates these files cannot import the entities, and zsh would ask when it reads the
                # file.
                names = "aeon-tui schema 2>/dev/null"
                action.complete = {**shtab.cmd(names), "zsh": rf"(\$({names}))"}  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def man_page(version: str) -> str:
    """Return the man page, in the `man` macros of roff."""
    return "\n".join(_man_lines(version)) + "\n"


def _man_lines(version: str) -> Iterator[str]:
    program, *others = commands()
    yield f'.TH AEON-TUI 1 "" "aeon-tui {_roff(version)}" "User Commands"'
    yield from (".SH NAME", r"aeon\-tui \- run LLM tasks as declarative plans", ".SH SYNOPSIS")
    yield from (".B aeon\\-tui", "[OPTIONS] [COMMAND ...]", ".SH DESCRIPTION", _roff(program.summary), ".SH OPTIONS")
    yield from _man_arguments(program.arguments)
    yield ".SH COMMANDS"
    for each in others:
        yield from (f".SS {_roff(each.name)}", _roff(each.summary))
        yield from _man_arguments(argument for argument in each.arguments if argument not in program.arguments)
        yield from (".PP", _roff(each.epilog)) if each.epilog else ()
    yield from (".SH NOTES", _roff(program.epilog), ".SH EXIT STATUS")
    for code, meaning in _EXITS.items():
        yield from (".TP", f".B {code}", _roff(meaning))
    yield from (".SH FILES", ".TP", r".I ~/.config/aeon/config.yml", "Your configuration.")
    yield from (".TP", r".I .aeon/config.yml", "A project's configuration.")


def _man_arguments(arguments: Iterator[Argument] | list[Argument]) -> Iterator[str]:
    for each in arguments:
        yield from (".TP", f".B {_roff(each.written)}", _roff(each.help))


def _roff(text: str) -> str:
    """Return a text escaped for roff, so that no line is a request and no character an escape."""
    text = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text

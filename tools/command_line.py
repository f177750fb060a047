"""The command line as data, from which the reference, the man page and the completions are generated."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO

from aeon_tui.cli.parser import build_parser


@dataclass(frozen=True)
class Argument:
    """An option or a positional argument: how it is written, and its help."""

    written: str
    help: str


@dataclass(frozen=True)
class Command:
    """A command with its arguments; `name` is empty for the program itself."""

    name: str
    summary: str
    usage: str
    epilog: str
    arguments: list[Argument] = field(default_factory=list)


def complete_parser() -> argparse.ArgumentParser:
    """Return the parser with the options of every command, which are otherwise added when the command is used."""
    parser = build_parser()
    for command in _subparsers(parser).values():
        with redirect_stdout(StringIO()), suppress(SystemExit):
            command.parse_args(["--help"])
    return parser


def parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return a parser, followed by those of its commands."""
    return [parser, *_subparsers(parser).values()]


def commands() -> list[Command]:
    """Return the program itself, then every command in the order of `aeon-tui --help`."""
    parser = complete_parser()
    # In a terminal, the usage would be as wide as that.
    with redirect_stdout(StringIO()):
        return [_described("", parser), *(_described(name, made) for name, made in _subparsers(parser).items())]


def _described(name: str, parser: argparse.ArgumentParser) -> Command:
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    return Command(name, parser.description or "", usage, parser.epilog or "", list(_arguments(parser)))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())
        if not action.option_strings:
            yield Argument(value, action.help or "")
        else:
            takes_value = action.nargs != 0
            written = ", ".join(f"{option} {value}" if takes_value else option for option in action.option_strings)
            yield Argument(written, action.help or "")


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next(action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))

"""What goes out to others: a deployment, a publication, a push over what they have pushed."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from aeon_core.tools.shell.ast import Finding, SimpleCommand
from aeon_core.tools.shell.names import DATA_VERBS, RUNNERS, TAKES_DATA, TASK_RUNNERS
from aeon_core.tools.shell.nested_commands import operand_start
from aeon_core.tools.shell.wrappers import SHELLS, is_interpreter, is_wrapper

_SHOWN = 60


def release(command: SimpleCommand) -> Finding | None:
    """Return a finding for `npm publish`, `make deploy`, `./deploy.sh`: where the word names what is done."""
    for name in ("deploy", "publish"):
        if any(name == word or (splits and name in re.split(r"[._:/-]", word)) for word, splits in _actions(command)):
            return name, f"{command.text[:_SHOWN]!r} would {name}"
    return None


def _actions(command: SimpleCommand) -> list[tuple[str, bool]]:
    """Return the words that name what is done, each with whether a part of it counts, as in `deploy:prod`."""
    program = command.program
    actions = [(command.words[0], True)]
    before = command.arguments[: command.arguments.index("--")] if "--" in command.arguments else command.arguments
    operands = [word for word in before if not word.startswith("-") and "=" not in word]
    if program in TASK_RUNNERS:
        return actions + [(word, True) for word in operands]
    if program in SHELLS or is_interpreter(program) or program in {"source", "."}:
        return actions + _script_actions(command)
    if program in TAKES_DATA or is_wrapper(program):
        return actions
    start = operand_start(command.words, frozenset({"-C", "-c"})) if program == "git" else 1
    operands = operands if program != "git" else list(command.words[start : start + 1])
    for place, word in enumerate(operands[:3]):
        if place and (operands[place - 1] in DATA_VERBS or not re.fullmatch(r"@?\w[\w:.-]*", operands[place - 1])):
            break
        actions.append((word, place == 0 or operands[place - 1] in RUNNERS))
    return actions


def _script_actions(command: SimpleCommand) -> list[tuple[str, bool]]:
    """Return the script or module that is run, and its first argument; nothing where code is given instead."""
    words = command.words
    start = operand_start(words, frozenset({"-W", "-X", "-o", "-O", "--rcfile"}))
    options = words[1:start]
    if "-m" in options:
        module = options.index("-m") + 2
        return _actions(replace(command, words=words[module:], literal=command.literal[module:]))
    if any(re.fullmatch(r"-[a-zA-Z]*[ce]|--eval", option) for option in options):
        return []
    return [(word, place == 0 or words[start] in RUNNERS) for place, word in enumerate(words[start : start + 2])]


def forced_push(command: SimpleCommand) -> Finding | None:
    """Return a finding for `git push --force` in any spelling, and for `push --force` of any other program."""
    words = command.words
    if command.program == "git":
        start = operand_start(words, frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"}))
        return _git_push(words[start + 1 :]) if words[start : start + 1] == ("push",) else None
    if command.program not in TAKES_DATA and any(
        one == "push" and other.startswith("--force") for one, other in pairwise(words[1:])
    ):
        return "push --force", "the push overwrites what others have pushed"
    return None


def _git_push(arguments: tuple[str, ...]) -> Finding | None:
    for word in arguments:
        if word.startswith("--force"):
            return "push --force", f"git push {word} overwrites what others have pushed"
        if re.fullmatch(r"-[a-zA-Z0-9]*f[a-zA-Z0-9]*", word):
            return "git push -f", f"git push {word} overwrites what others have pushed"
        if re.match(r"\+.", word):
            return "push --force", f"the refspec {word!r} overwrites what others have pushed"
    return None

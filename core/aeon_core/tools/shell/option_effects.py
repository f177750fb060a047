"""Options by which programs that seem to read only write files or run others: `git diff --output=x`, `sort -o x`.

One table a kind of effect. What a rule such as `Bash(git diff*)` allows does not cover such a file or program. Programs
whose very purpose is to write or to run (`cp`, `tee`, `make`) are not here: their name says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.tools.shell.ast import SimpleCommand
from aeon_core.tools.shell.nested_commands import Inner, Opaque, Script, operand_start

GIT_OPTIONS = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"})
"""Options of git itself, before its sub-command, whose value is the next word."""

_WRITING: dict[str, tuple[str, str]] = {
    "sort": ("-o --output", "kStT"),
    "shuf": ("-o --output", "inr"),
    "iconv": ("-o --output", "ft"),
    "tree": ("-o", "LPIH"),
    "patch": ("-o --output -r --reject-file", "pdiDFB"),
    "gpg": ("-o --output", "ru"),
    "openssl": ("-out", ""),
    "time": ("-o --output", "f"),
    "strace": ("-o --output", "epsuEabIOPSUX"),
    "ltrace": ("-o --output", "epsuan"),
    "less": ("-o -O --log-file --LOG-FILE", "bhjkpPtTxyz"),
    "curl": (
        """-o --output -O --remote-name --remote-name-all -J --output-dir -D --dump-header -c --cookie-jar --trace
        --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl""",
        "XHdAbeuTFQKmwxECtUPYyzr",
    ),
    "sed": ("-i --in-place", "efl"),
    "perl": ("-i", "eEIMmFxCD"),
    "ruby": ("-i", "eIrFxCE"),
    "yq": ("-i --inplace", "pPoI"),
    "gawk": ("-o --pretty-print -d --dump-variables -p --profile", "fFveEilL"),
    "find": ("-fprint -fprint0 -fprintf -fls -delete", ""),
    "date": ("-s --set", "dfrI"),
    "xxd": ("-r", "cglnos"),
    "sdiff": ("-o --output", "wI"),
    "file": ("-C --compile", "efFmP"),
    "dot": ("-o -O", "TKGNEl"),
    "objdump": ("--dwarf-check-out", ""),
    "ctags": ("-o -f", ""),
    "jq": ("--output-file", ""),
}
"""By program: the options that write, and the letters of options that take a value."""

_GIT_WRITING: dict[str, str] = {
    "": "--output",
    "archive": "-o --output",
    "format-patch": "-o --output-directory --output",
    "fast-export": "--export-marks",
    "bundle": "create",
    "apply": "--build-fake-ancestor",
    "mailsplit": "-o",
    "config": "--edit -e",
    "branch": "--edit-description",
    "symbolic-ref": "--delete -d",
    "bugreport": "-o --output-directory",
    "diagnose": "-o --output-directory",
}
"""By sub-command of git, the empty one for all."""

_RUNNING: dict[str, tuple[str, str]] = {
    "tar": (
        "--to-command -I --use-compress-program -F --info-script --new-volume-script --rsh-command --rmt-command",
        "fbCTXKgLNVH",
    ),
    "rg": ("--pre --hostname-bin", ""),
    "sort": ("--compress-program", ""),
    "split": ("--filter", ""),
    "rsync": ("-e --rsh", "fTBM"),
    "scp": ("-S", "cFiJloPX"),
    "sftp": ("-S -D", "BbcFilJoPRs"),
    "man": ("-P --pager -H --html", "CLMSsTE"),
    "zip": ("-TT --unzip-command", ""),
    "compgen": ("-C", "AGWFXPSV"),
    "mapfile": ("-C", "dnOsuc"),
    "readarray": ("-C", "dnOsuc"),
    "wget": ("--use-askpass -e --execute", "oaiBPOTtwUQDIlXARS"),
    "cpio": ("--rsh-command", ""),
    "gcc": ("-wrapper", ""),
    "npm": ("--script-shell", ""),
    "git archive": ("--exec", ""),
    "git send-email": ("--to-cmd --cc-cmd --smtp-server --sendmail-cmd", ""),
    "git rebase": ("-x --exec", "sXCS"),
    "git difftool": ("-x --extcmd", "t"),
    "git grep": ("-O --open-files-in-pager", "efABCm"),
    "git clone": ("-u --upload-pack", "obcj"),
}
"""By program: the options that name another one to run."""
_GIT_RUNNING = "--upload-pack --receive-pack --exec --extcmd --open-files-in-pager"
_GIT_ELSEWHERE = re.compile(r"--(?:exec-path|git-dir|config-env)=.|--git-dir$")

_BRACKET = re.compile(r"\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_AWK_RUNS = re.compile(r"system\s*\(|\|\s*&?\s*(?:getline|\"|\w)|\"\s*\||@load|@include")
_AWK_WRITES = re.compile(r"print[^;\n}]*>")


def written_files(command: SimpleCommand) -> Iterator[str]:
    """Yield the files that the options of a command write, `(unnamed)` where they do not say which."""
    program, words = command.program, command.words
    if program == "git":
        start = operand_start(words, GIT_OPTIONS)
        operands = words[start:]
        names = f"{_GIT_WRITING['']} {_GIT_WRITING.get(operands[0], '')}" if operands else ""
        if operands[:2] == ("bundle", "create"):
            yield next((word for word in operands[2:] if not word.startswith("-")), "(unnamed)")
        yield from _values(operands, names, "")
        return
    if program in _WRITING:
        yield from _values(words, *_WRITING[program])
    if program in {"uniq", "xxd"}:
        operands = tuple(word for word in command.arguments if not word.startswith("-"))
        yield from operands[1:2]
    if program == "sed":
        yield from (effect[1:] for effect in _sed_effects(command) if effect.startswith(">"))
    if program in {"awk", "gawk", "mawk", "nawk"} and any(map(_AWK_WRITES.search, command.arguments)):
        yield "(unnamed)"


def programs_of_options(command: SimpleCommand) -> Iterator[Inner]:
    """Yield what the options of a command run; what cannot be read as a command is `Opaque`."""
    program, words = command.program, command.words
    if program == "git":
        start = operand_start(words, GIT_OPTIONS)
        if any(_GIT_ELSEWHERE.match(word) for word in words[1:start]):
            yield Opaque()  # settings of another repository, or another git
        operands = words[start:]
        names, valued = _RUNNING.get(f"git {operands[0]}" if operands else "", ("", ""))
        yield from map(Script, _values(operands, f"{_GIT_RUNNING} {names}", valued))
        return
    if program in _RUNNING:
        yield from map(Script, _values(words, *_RUNNING[program]))
    if program == "sed" and "!" in _sed_effects(command):
        yield Opaque()
    if program in {"awk", "gawk", "mawk", "nawk"}:
        options = ("-f", "-i", "-l", "-E", "--file", "--include", "--load", "--exec")
        if any(map(_AWK_RUNS.search, command.arguments)) or any(word.startswith(options) for word in command.arguments):
            yield Opaque()


def _values(words: tuple[str, ...], names: str, valued: str) -> Iterator[str]:
    """Yield the values of the named options: long ones also shortened, short ones also in a cluster."""
    options = names.split()
    letters = {option[1] for option in options if len(option) == 2}
    for index, word in enumerate(words[1:], 1):
        if word == "--":
            return
        following = words[index + 1] if index + 1 < len(words) else "(unnamed)"
        name, equals, value = word.partition("=")
        if name in options or _shortens(name, options):
            yield value if equals else following
        elif re.match(r"-[^-]", word) and letters:
            yield from _in_cluster(word, letters, valued, following)


def _shortens(name: str, options: list[str]) -> bool:
    return len(name) > 3 and name.startswith("--") and any(option.startswith(name) for option in options)


def _in_cluster(word: str, letters: set[str], valued: str, following: str) -> Iterator[str]:
    for place, letter in enumerate(word[1:], 2):
        if letter in letters:
            yield word[place:].lstrip("=") or following
            return
        if letter in valued or not letter.isalnum():
            return


def _sed_effects(command: SimpleCommand) -> list[str]:
    """Return `>FILE` for each file that a sed script writes, and `!` where it may run something."""
    words, scripts = command.words, []
    scripts += list(_values(words, "-e --expression", "l"))
    if any(_values(words, "-f --file", "el")):
        return ["!"]
    if not scripts:
        start = operand_start(words, frozenset({"-l", "--line-length"}))
        scripts = list(words[start : start + 1])
    known = all(command.literal[index] for index in range(len(words)) if words[index] in scripts)
    found = _sed_script("\n".join(scripts)) if known else ["!"]
    return ["!"] if found is None else found


def _sed_script(script: str) -> list[str] | None:  # noqa: C901  # one case a command
    """Return the effects of a script; None where it cannot be read."""
    found: list[str] = []
    place = 0
    while place < len(script):
        if script[place] in " \t\n;{}":
            place += 1
            continue
        after = _sed_address(script, place)
        if after is None or after >= len(script):
            return None
        name, place = script[after], after + 1
        end = script.find("\n", place)
        line = script[place : end if end >= 0 else len(script)]
        if name in "sy":
            finished = _sed_parts(script, place)
            if finished is None:
                return None
            flags = re.compile(r"[gpiImM0-9 \t]*").match(script, finished)
            place = flags.end() if flags else finished
            rest = script[place : end if end >= place else len(script)]
            if rest.startswith("e"):
                found.append("!")
            elif rest.startswith("w"):
                found.append(f">{rest[1:].strip()}")
                place += len(rest)
        elif name in "wW":
            found.append(f">{line.strip()}")
            place += len(line)
        elif name == "e":
            found.append("!")
            place += len(line)
        elif name in "aicrR#:btT":
            place += len(line) if name not in ":btT" else len(re.split(r"[;}]", line, maxsplit=1)[0])
        elif name not in "{=dDgGhHlLnNpPqQvxzF":
            return None
        elif digits := re.match(r"[ \t]*\d+", line):
            place += digits.end()
    return found


def _sed_address(script: str, place: int) -> int | None:
    """Return where the command begins after its addresses."""
    for _ in range(2):
        if script[place] == "/" or script[place] == "\\":
            start = place + (2 if script[place] == "\\" else 1)
            finished = _sed_until(script, start, script[start - 1])
            if finished is None:
                return None
            place = finished
        found = re.compile(r"[ \t]*[+~]?(?:\d+|\$)?(?:~\d+)?[IM]*[ \t]*").match(script, place)
        place = found.end() if found else place
        if place >= len(script) or script[place] != ",":
            break
        place += 1 + len(script[place + 1 :]) - len(script[place + 1 :].lstrip(" \t"))
        if place >= len(script):
            return None
    while place < len(script) and script[place] in "! \t":
        place += 1
    return place


def _sed_parts(script: str, place: int) -> int | None:
    """Return where the flags of `s/a/b/` begin; `place` is that of the first delimiter."""
    if place >= len(script):
        return None
    middle = _sed_until(script, place + 1, script[place])
    return None if middle is None else _sed_until(script, middle, script[place], regex=False)


def _sed_until(script: str, place: int, delimiter: str, *, regex: bool = True) -> int | None:
    """Return what comes after the next delimiter; None where a bracket holds one, which not every sed takes alike."""
    while place < len(script):
        if script[place] == "\\":
            place += 2
        elif regex and script[place] == "[" and (found := _BRACKET.match(script, place)):
            if delimiter in found[0]:
                return None
            place = found.end()
        elif script[place] == delimiter:
            return place + 1
        else:
            place += 1
    return None

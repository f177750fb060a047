"""Options by which programs that seem to read only write files or run others: `git diff --output=x`, `sort -o x`.

What a rule such as `Bash(git diff*)` allows does not cover such a file; a program that another runs is asked about.
Programs whose very purpose is to write (`cp`, `tee`) are not here: their name says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.tools.shell.programs import CLIENTS

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
        """--to-command -I --use-compress-program -F --info-script --new-volume-script --rsh-command --rmt-command
        --checkpoint-action""",
        "fbCTXKgLNVH",
    ),
    "rg": ("--pre --hostname-bin", ""),
    "sort": ("--compress-program", ""),
    "split": ("--filter", ""),
    "rsync": ("-e --rsh", "fTBM"),
    "scp": ("-S -o", "cFiJlPX"),
    "sftp": ("-S -D -o -b", "BcFilJPRs"),
    "find": ("-exec -execdir -ok -okdir", ""),
    "fd": ("-x -X --exec --exec-batch", "dEetcjSp"),
    "fdfind": ("-x -X --exec --exec-batch", "dEetcjSp"),
    "fzf": ("--preview --bind --execute", ""),
    "less": ("-k --lesskey-file --lesskey-src", "bhjoOpPtTxyz"),
    "make": ("--eval", "CfIjloW"),
    "gmake": ("--eval", "CfIjloW"),
    "man": ("-P --pager -H --html", "CLMSsTE"),
    "zip": ("-TT --unzip-command", ""),
    "compgen": ("-C", "AGWFXPSV"),
    "mapfile": ("-C", "dnOsuc"),
    "readarray": ("-C", "dnOsuc"),
    "wget": ("--use-askpass -e --execute", "oaiBPOTtwUQDIlXARS"),
    "cpio": ("--rsh-command", ""),
    "gcc": ("-wrapper", ""),
    "npm": ("--script-shell", ""),
    "git push": ("--receive-pack --exec", "o"),
    "git fetch": ("--upload-pack", "jo"),
    "git pull": ("--upload-pack", "josXS"),
    "git ls-remote": ("--upload-pack --exec", "o"),
    "git archive": ("--exec", ""),
    "git send-email": ("--to-cmd --cc-cmd --smtp-server --sendmail-cmd", ""),
    "git rebase": ("-x --exec", "sXCS"),
    "git difftool": ("-x --extcmd", "t"),
    "git grep": ("-O --open-files-in-pager", "efABCm"),
    "git clone": ("-u --upload-pack", "obcj"),
}
"""By program: the options that name another one to run."""
_ENVIRONMENTS = re.compile(
    r"(?:uv|poetry|pipenv|hatch|pdm|rye|conda|mamba|bundle) .*\b(?:run|exec|tool|x)\b.*"
    r"|(?:npm|pnpm|yarn|bun) (?:.* )?(?:exec|dlx|x) .*"
    r"|(?:docker|podman|nerdctl|kubectl|oc|lxc|vagrant|toolbox|distrobox) .*\b(?:exec|run|sh|ssh|debug|enter)\b.*"
)
"""Commands that run others somewhere else: in an environment, a container."""
_SETTINGS = re.compile(
    r"config .*(?:pager|editor|command|helper|textconv|clean|smudge|process|cmd|driver|alias|hook|fsmonitor|program).*"
    r"|(?:bisect|submodule|filter-branch|difftool|mergetool|send-email|daemon|instaweb)\b.*",
    re.IGNORECASE,
)
"""Sub-commands of git that run others, or set what git runs."""
_EDITORS = {"vi", "vim", "nvim", "ex", "ed", "emacs", "view"}
_ESCAPES = re.compile(r"\\!|\.(?:shell|system)\b|\bPROGRAM\b", re.IGNORECASE)
_AWK_RUNS = re.compile(r"system\s*\(|\|\s*&?\s*(?:getline|\"|\w)|\"\s*\||@load|@include")
_AWK_WRITES = re.compile(r"print[^;\n}]*>")
_AWKS = {"awk", "gawk", "mawk", "nawk"}
_ADDRESS = r"(?:\d+|\$|/[^/\\\[]*/)"
_SED_READS = re.compile(
    rf"(?:{_ADDRESS}(?:,\s*{_ADDRESS})?)?\s*!?\s*(?:[pdqDPnNgGhHxl=]?|s([/|,#])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI\d]*)"
)


def operand_start(words: tuple[str, ...], valued: frozenset[str]) -> int:
    """Return the index of the first word after the program that is neither an option, nor an option's value."""
    index = 1
    while index < len(words) and words[index].startswith(("-", "+")) and len(words[index]) > 1:
        if words[index] == "--":
            return index + 1
        index += 2 if words[index] in valued else 1
    return min(index, len(words))


def writes_files(program: str, words: tuple[str, ...]) -> bool:
    """Return whether an option or an unusual operand makes a program write a file, or run what it does not name."""
    if program == "git":
        operands = words[operand_start(words, GIT_OPTIONS) :]
        names = f"{_GIT_WRITING['']} {_GIT_WRITING.get(operands[0], '')}" if operands else ""
        return operands[:2] == ("bundle", "create") or any(_values(operands, names, ""))
    if program in _WRITING and any(_values(words, *_WRITING[program])):
        return True
    if program in {"uniq", "xxd"}:
        return len([word for word in words if not word.startswith("-")]) > 2
    if program == "sed":
        return not _only_reads(words)
    if program in _AWKS:
        options = ("-f", "-i", "-l", "-E", "--file", "--include", "--load", "--exec")
        return any(_AWK_RUNS.search(word) or _AWK_WRITES.search(word) or word.startswith(options) for word in words[1:])
    return False


def runs_others(program: str, words: tuple[str, ...], stdin: str) -> bool:
    """Return whether an option, an operand or the input makes a program run another."""
    if program == "git":
        start = operand_start(words, GIT_OPTIONS)
        if any(re.match(r"-c|--(?:config-env|exec-path|git-dir)\b", word) for word in words[1:start]):
            return True
        operands = words[start:]
        options = _RUNNING.get(f"git {operands[0]}", ("", "")) if operands else ("", "")
        return any(_values(operands, *options)) or bool(_SETTINGS.match(" ".join(operands)))
    if program in _EDITORS:
        return bool(stdin) or program in {"ex", "ed"} or any(word.startswith(("-", "+")) for word in words[1:])
    if program in _AWKS:
        return any(map(_AWK_RUNS.search, words[1:]))
    if program in CLIENTS:
        return any(map(_ESCAPES.search, (*words[1:], stdin)))
    if program in {"make", "gmake"} and any(re.match(r"\.?SHELL\w*\s*[:+?]?=|-f-|-$", word) for word in words[1:]):
        return True
    return any(_values(words, *_RUNNING.get(program, ("", "")))) or bool(
        _ENVIRONMENTS.match(" ".join((program, *words[1:])))
    )


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


def _only_reads(words: tuple[str, ...]) -> bool:
    """Return whether a sed script only prints, deletes and replaces."""
    if any(_values(words, "-f --file -i --in-place -s --separate", "el")):
        return False
    scripts = list(_values(words, "-e --expression", "l"))
    if not scripts:
        start = operand_start(words, frozenset({"-l", "--line-length"}))
        scripts = list(words[start : start + 1])
    return all(_SED_READS.fullmatch(part.strip()) for script in scripts for part in script.split(";"))

"""What rules know about programs, and the options with which seemingly read-only programs write files or run others.

A rule such as `Bash(git diff*)` does not allow `--output=x` to write a file, and a program that another one runs is
asked about. Programs whose purpose is to write (`cp`, `tee`) have no options here: their name says it. A word that may
be such an option counts as one, even a value attached to another option (`sort -to`), so that nothing is missed, and
some harmless things are asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = _words("sh bash dash zsh ksh mksh ash fish rbash csh tcsh yash pwsh")
INTERPRETERS = re.compile(
    r"(?:python|perl|ruby|node|nodejs|php|lua|luajit|deno|bun|pypy|osascript|R|Rscript|julia|octave|groovy|scala|elixir|erl"
    r"|guile|raku|gnuplot|dc|tsx|ts-node|ghc|sbcl|tclsh|jshell)[\d.]*"
)

SIMPLE_RUNNERS = _words("env sudo doas timeout time nice nohup setsid command builtin exec")
"""Programs that run the words after a duration (`timeout`) or assignments (`env`, `sudo`). Options are not parsed."""

NAMING = _words("read export unset wait")
"""Builtins whose arguments are names of variables."""

RUNNERS = _words(
    """
    pkexec coproc ionice chrt taskset stdbuf unbuffer chroot unshare nsenter setpriv strace ltrace fakeroot busybox
    toybox systemd-run flock watch xargs parallel su runuser gosu script ssh bwrap at batch tmux screen expect npx bunx
    pnpx uvx eval trap alias enable hash shopt let declare typeset local readonly mapfile readarray getopts compgen
    complete bind fc jobs setarch linux32 linux64 i386 x86_64 prlimit numactl run-parts start-stop-daemon
    """
)
"""Programs that run text or words in ways that are not parsed here, or give a word another meaning."""

READERS = _words(
    """
    echo cat tac ls dir ll cd pushd popd grep egrep fgrep head tail wc cut paste join comm diff cmp mkdir rmdir touch
    stat du df basename dirname realpath readlink pwd sleep true false seq expr column fold nl rev md5sum sha1sum
    sha256sum return exit shift
    """
)
"""Programs that destroy and run nothing, whatever their arguments."""

ONLY_READ = _words(
    """
    ls cat head tail wc grep egrep fgrep rg find fd tree du df stat file diff cmp comm sort uniq cut nl column pwd echo
    which basename dirname realpath readlink md5sum sha1sum sha256sum jq ps date
    """
)
"""Programs that only read: a rule may allow them with any arguments, except for options that write.
"""

GIT_RECORDS = _words(
    "status log diff show blame ls-files ls-tree rev-parse rev-list describe shortlog cat-file add commit"
)
"""Subcommands of git that read, or record what is there."""

WRITERS = _words("tee cp mv install rsync ln shred wipefs sponge truncate blkdiscard sgdisk")
"""Programs that write to a path among their arguments."""

CLIENTS = _words(
    """
    psql pgcli mysql mycli mariadb mysqladmin sqlite sqlite3 litecli duckdb clickhouse clickhouse-client
    sqlcmd osql tsql isql sqlplus usql mongosh mongo bq snowsql cockroach cqlsh dropdb db2 trino presto hive
    beeline spark-sql impala-shell heroku wrangler
    """
)
"""Clients of databases."""

TASK_RUNNERS = _words(
    """
    make gmake ninja just task rake mvn mvnw gradle gradlew ant sbt lein grunt gulp mage doit waf scons invoke
    inv fab npm-run-all run-s run-p ansible-playbook nox tox
    """
)
"""Programs whose operands each name an action."""

DATA_VERBS = _words(
    """
    test install i add view info show remove uninstall search generate g help get list ls logs log status
    describe delete rm create new init build tag pull push checkout clone open edit diff policy why update
    upgrade lint format check config set explain outdated
    """
)
"""Subcommands, of any program, whose operands are files or names."""

RUNNERS_OF_TASKS = _words("run run-script exec x task dlx job workflow do call")
"""Subcommands whose first operand names an action."""

TAKES_DATA = (
    READERS
    | ONLY_READ
    | _words(
        """
    printf zgrep ag ack locate sed awk gawk mawk less more most bat tr colordiff patch cp mv rm ln install chmod
    chown chgrp test [ vi vim nvim nano emacs code subl jest vitest mocha rspec unittest phpunit ctest nosetests
    man info help type whereis whatis apropos hash export declare local readonly typeset unset read set alias
    unalias trap let tar zip unzip gzip gunzip zcat bzip2 xz zstd yq xmllint curl wget ssh scp sftp rsync ping
    dig nslookup host kubectl pytest ruff mypy black isort flake8 pylint eslint prettier tsc tee xxd od hexdump
    strings cal kill pkill killall pgrep top htop systemctl service journalctl tmux screen id groups whoami
    hostname uname yes bc truncate dd split shred mktemp mount umount lsof printenv fzf psql mysql sqlite3 ctags
    cloc wait jobs fg bg useradd userdel usermod groupadd passwd getent crontab logger open xdg-open pbcopy
    xclip
    """
    )
)
"""Programs whose operands are files, patterns, names or text, never an action."""


READ_ENVIRONMENT = _words(
    """
    ack ag apropos awk bat bc black bzip2 code colordiff crontab ctags curl dig emacs eslint flake8 fzf gawk git gunzip
    gzip host isort journalctl kubectl less locate man mawk more most mypy mysql nano nslookup nvim open patch pbcopy
    ping prettier psql pylint rg rsync ruff scp screen sed service sftp sqlite3 ssh subl systemctl tar tee tmux tsc
    unzip vi vim wget xclip xdg-open xmllint xz yq zcat zgrep zip zstd
    """
)
"""Programs that only read or move data, but may run another because of a variable. Interpreters, builds and tests are
not among them, since they run things in any case.
"""

GIT_OPTIONS = _words("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --attr-source")
"""Options of git itself, before its subcommand, whose value is the next word."""

_WRITING = {
    **dict.fromkeys(("sort", "shuf", "iconv", "gpg", "sdiff", "git archive", "git mailsplit"), "-o --output"),
    **dict.fromkeys(("git format-patch", "git bugreport", "git diagnose"), "-o --output --output-directory"),
    "tree": "-o -R",
    "patch": "-o --output -r --reject-file",
    "openssl": "-out",
    "less": "-o -O --log-file --LOG-FILE",
    "curl": """-o --output -O --remote-name --remote-name-all -J --output-dir -D --dump-header -c --cookie-jar --trace
        --trace-ascii --stderr --etag-save --hsts --alt-svc --libcurl -K --config""",
    "perl": "-i",
    "ruby": "-i",
    "yq": "-i --inplace",
    "gawk": "-o --pretty-print -d --dump-variables -p --profile",
    "find": "-fprint -fprint0 -fprintf -fls -delete",
    "date": "-s --set",
    "xxd": "-r",
    "file": "-C --compile",
    "dot": "-o -O",
    "objdump": "--dwarf-check-out",
    "ctags": "-o -f",
    "jq": "--output-file",
    "git": "--output",
    "git fast-export": "--export-marks",
    "git bundle": "create",
    "git apply": "--build-fake-ancestor",
    "git config": "--edit -e",
    "git branch": "--edit-description",
    "git symbolic-ref": "--delete -d",
}
"""The options that write, by program or subcommand of git."""

_FD = "-x -X --exec --exec-batch"
_RUNNING = {
    "tar": """--to-command -I --use-compress-program -F --info-script --new-volume-script --rsh-command --rmt-command
        --checkpoint-action""",
    "rg": "--pre --hostname-bin",
    "sort": "--compress-program",
    "split": "--filter",
    "rsync": "-e --rsh",
    "scp": "-S -o",
    "sftp": "-S -D -o -b",
    "find": "-exec -execdir -ok -okdir",
    "fd": _FD,
    "fdfind": _FD,
    "fzf": "--preview --bind --execute",
    "less": "-k --lesskey-file --lesskey-src",
    "make": "--eval",
    "gmake": "--eval",
    "man": "-P --pager -H --html",
    "zip": "-TT --unzip-command",
    "wget": "--use-askpass -e --execute",
    "cpio": "--rsh-command",
    "gcc": "-wrapper",
    "npm": "--script-shell",
    "git push": "--receive-pack --exec",
    "git fetch": "--upload-pack",
    "git pull": "--upload-pack",
    "git ls-remote": "--upload-pack --exec",
    "git archive": "--exec",
    "git rebase": "-x --exec",
    "git grep": "-O --open-files-in-pager",
    "git clone": "-u --upload-pack --template",
    "git init": "--template",
    "git fetch-pack": "--upload-pack --exec",
    "git send-pack": "--receive-pack --exec",
}
"""The same for options that name another program to run."""
_ENVIRONMENTS = re.compile(
    r"(?:uv|poetry|pipenv|hatch|pdm|rye|conda|mamba|bundle) .*\b(?:run|exec|tool|x)\b.*"
    r"|(?:npm|pnpm|yarn|bun) (?:.* )?(?:exec|dlx|x) .*"
    r"|(?:docker|podman|nerdctl|kubectl|oc|lxc|vagrant|toolbox|distrobox) .*\b(?:exec|run|sh|ssh|debug|enter)\b.*"
)
"""Commands that run others elsewhere: in an environment, a container."""
_SETTINGS = re.compile(
    r"(?:config|clone (?:.* )?(?:-c|--config)).*(?:pager|editor|command|helper|textconv|clean|smudge|process|cmd|driver"
    r"|alias|hook|fsmonitor|program|include|askpass|external|gitproxy|uploadpack|receivepack|template|browser|protocol|\.update).*"
    r"|(?:bisect|submodule|filter-branch|difftool|mergetool|send-email|daemon|instaweb|remote-ext|merge-index"
    r"|for-each-repo|shell|hook)\b.*",
    re.IGNORECASE,
)
"""Subcommands of git that run others, or set what git runs."""
_EDITORS = {"vi", "vim", "nvim", "ex", "ed", "emacs", "view"}
_ESCAPES = re.compile(
    r"\\!|(?<![\w/])\.(?:sh(?!o)|sy|load\b)|\bPROGRAM\b|load_extension|(?:(?<![\w/])\.[a-z]+\s[^\n]*|\\[gow]\s*)\|",
    re.IGNORECASE,
)
_AWK_RUNS = re.compile(r"system\s*\(|\|\s*&?\s*(?:getline|\"|\w)|\"\s*\||@load|@include")
_AWK_WRITES = re.compile(r"print[^;\n}]*>")
_AWKS = {"awk", "gawk", "mawk", "nawk"}
_SEDS = {"sed", "gsed", "ssed"}
_SED_OPTION = re.compile(
    r"-[nErsuz]*(?:e(?P<script>.*)|l\d*)?|--e\w*(?:=(?P<long>.*))?"
    r"|--(?:quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug|sandbox|line-length=\d+)",
    re.DOTALL,
)
"""The options of sed that write nothing, with the script that they may have."""
_SED_FILE = re.compile(r"-[nErsuz]*f.*|--f.*", re.DOTALL)


_BRACKETS = r"\[\^?+\]?+(?:\[[:.=][^\]\n]*\]|\[(?![:.=])|[^][\\\n]|\\[^]\n])*\]"
"""A set of characters in an expression, in which the delimiter is one of them. `\\]` means not the same to all seds."""


def _regex(delimiter: str) -> str:
    return rf"(?:(?!(?P={delimiter}))[^[\\\n]|\\.|{_BRACKETS})*(?P={delimiter})"


_REPLACEMENT = r"(?:(?!(?P=by))[^\\\n]|\\.)*(?P=by)"
"""A text up to the delimiter that the group `by` holds."""


def _address(name: str) -> str:
    return rf"(?:\d+(?:~\d+)?|\$|(?:\\(?=[^\\\n])|(?=/))(?P<{name}>.){_regex(name)}[IM]*)"


_SED_COMMAND = re.compile(
    rf"[\s;]*(?:{_address('first')}(?:\s*,\s*(?:[+~]\d+|{_address('last')}))?)?\s*(?:!\s*)*(?P<name>.)", re.DOTALL
)
_SED_ARGUMENTS = {
    **dict.fromkeys("=dDgGhHnNpPxzF{}", re.compile("")),
    **dict.fromkeys("lLqQ", re.compile(r"[ \t]*\d*")),
    **dict.fromkeys(":btTv", re.compile(r"[ \t]*[^\s;}]*")),
    **dict.fromkeys("rR#weW", re.compile(r"[^\n]*")),
    **dict.fromkeys("aic", re.compile(r"(?:[^\\\n]|\\.)*", re.DOTALL)),
    "y": re.compile(rf"(?P<by>[^\\\n]){_REPLACEMENT}{_REPLACEMENT}", re.DOTALL),
    "s": re.compile(
        rf"(?P<by>[^\\\n]){_regex('by')}{_REPLACEMENT}(?P<flags>[gpiImMe\d]*w?)(?:(?<=w)[^\n]*)?", re.DOTALL
    ),
}
"""The possible arguments of each command of sed."""


def operand_start(words: tuple[str, ...], valued: frozenset[str]) -> int:
    """Return the index of the first word after the program that is neither an option nor an option's value."""
    index = 1
    while index < len(words) and words[index].startswith(("-", "+")) and len(words[index]) > 1:
        if words[index] == "--":
            return index + 1
        index += 2 if words[index] in valued else 1
    return min(index, len(words))


def writes_files(program: str, words: tuple[str, ...]) -> bool:
    """Return whether an option or unusual operand makes a program write a file, or run something unnamed."""
    if any(has_option(words, _WRITING.get(name, "")) for name in _names(program, words)):
        return True
    if program in {"uniq", "xxd"}:
        return len([word for word in words if not word.startswith("-") or word in {"-", "--"}]) > 2
    if program in _SEDS:
        return bool(_sed_effects(words))
    if program in _AWKS:
        options = ("-f", "-i", "-l", "-E", "--file", "--include", "--load", "--exec")
        return any(_AWK_RUNS.search(word) or _AWK_WRITES.search(word) or word.startswith(options) for word in words[1:])
    return False


def runs_others(program: str, words: tuple[str, ...], stdin: str) -> bool:
    """Return whether an option, an operand or the input makes a program run another."""
    if any(has_option(words, _RUNNING.get(name, "")) for name in _names(program, words)):
        return True
    if program == "git":
        start = operand_start(words, GIT_OPTIONS)
        own = any(re.match(r"-c|--(?:config-env|exec-path|git-dir)\b", word) for word in words[1:start])
        return own or bool(_SETTINGS.match(" ".join(words[start:])))
    if program in _EDITORS:
        return bool(stdin) or program in {"ex", "ed"} or any(word.startswith(("-", "+")) for word in words[1:])
    if program in _AWKS:
        return any(map(_AWK_RUNS.search, words[1:]))
    if program in _SEDS:
        return "e" in _sed_effects(words)
    if program in CLIENTS:
        return any(map(_ESCAPES.search, (*words[1:], stdin)))
    if program in {"make", "gmake"}:
        # make evaluates variables: `X!=ls`, `X=$(shell ls)`.
        return any(re.match(r"\.?SHELL\w*\s*[:+?]?=|-f-|-$|[^=]*!=|[^=]*=.*\$[({]", word) for word in words[1:])
    return bool(_ENVIRONMENTS.match(" ".join((program, *words[1:]))))


def _names(program: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a command in the tables."""
    return (program, *(f"git {word}" for word in words[operand_start(words, GIT_OPTIONS) :][:1] if program == "git"))


def has_option(words: Sequence[str], names: str) -> bool:
    """Return whether one of the options is given, including shortened long ones and clustered short ones."""
    options = names.split()
    letters = "".join(option[1] for option in options if len(option) == 2)
    cluster = re.compile(rf"-[a-zA-Z0-9]*[{letters}]") if letters else None
    for word in words[1:]:
        name = word.partition("=")[0]
        shortened = len(name) > 2 and name.startswith("--") and any(option.startswith(name) for option in options)
        if name in options or shortened or (cluster and cluster.match(word)):
            return True
    return False


def _sed_effects(words: tuple[str, ...]) -> set[str]:
    """Return `w` if a sed command writes a file, `e` if its script runs a program, both if that is unknown.

    A script in a file counts as writing.
    """
    scripts: list[str] = []
    operands: list[str] = []
    effects, in_file, rest = set[str](), False, iter(words[1:])
    for word in rest:
        option = _SED_OPTION.fullmatch(word)
        if word == "--":
            operands += rest
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        elif option is None:
            effects.add("w")
            in_file = in_file or _SED_FILE.fullmatch(word) is not None
        elif word.startswith("--e") or option["script"] is not None:
            scripts.append(option["long"] or option["script"] or next(rest, ""))
    if not scripts and not in_file:
        scripts = operands[:1]
    return effects | _script_effects("\n".join(scripts))


def _script_effects(script: str) -> set[str]:
    effects, at = set[str](), 0
    while found := _SED_COMMAND.match(script, at):
        name = found["name"]
        arguments = _SED_ARGUMENTS[name].match(script, found.end()) if name in _SED_ARGUMENTS else None
        if arguments is None:
            return {"w", "e"}
        effects |= {"w", "e"} & {name.lower(), *arguments.groupdict().get("flags", "")}
        at = arguments.end()
    return effects

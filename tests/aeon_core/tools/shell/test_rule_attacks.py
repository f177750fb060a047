"""Lines that a rule such as `Bash(git diff*)` must not let pass: what they write or run is not what the rule names."""

# ruff: noqa: E501  # one attack a line
from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.blocklist import judge
from aeon_core.tools.shell.isolation import Isolation
from aeon_core.tools.shell.settings import ShellSettings
from tests.sampling import each

BECOMES_A_COMMAND = [
    "c=rm_-rf_/; IFS=_; $c",
    "c='ls -l'; $c",
    "${x:-rm} a",
    "${x}rm a",
    "set -- rm a; \"$@\"",
    "set -- rm a; $1 $2",
    "set -- rm a; $*",
    "$(echo rm) a",
    "`echo rm` a",
    "a=(rm b); \"${a[@]}\"",
    "a=(rm b); ${a[0]} b",
    "x=a; y=x; ${!y}",
    "f() { \"$1\" b; }; f rm",
    "for c in rm ls; do $c a; done",
    "while read c; do $c; done < file",
    "env $c",
    "nice -n 5 $c",
    "xargs $c < file",
    "timeout 5 $(cat file)",
    "sh -c \"$c\"",
    "bash -c '$0 a' rm",
    "bash <<< \"$c\"",
    "/bin/r? a",
    "/usr/bin/[r]m a",
    "/???/rm a",
    "{rm,a}",
    "$'r'$c a",
    "~/$c",
    "if $c; then :; fi",
    "! $c",
    "ls | $c",
    "$c &",
    "(cd a && $c)",
    "time $c",
    "coproc $c",
    "command $c",
    "exec -a ls $c",
    "find . -exec $c {} ;",
    "trap '$c' EXIT",
    "PATH=.:$PATH ls",
    "PATH=. ; ls",
    "export PATH=$PWD/bin:$PATH",
    "declare -x PATH=.",
    "read PATH <<< .; ls",
    "for PATH in .; do ls; done",
    "printf -v PATH .; ls",
    "declare -n p=PATH; p=.; ls",
    "IFS=x; ls",
    "BASH_ENV=./x bash -c ls",
    "ENV=./x sh -c ls",
    "PROMPT_COMMAND='rm a'; ls",
    "LD_PRELOAD=./x.so ls",
    "PS4='$(rm a)' bash -xc ls",
    "alias ls='rm a'; ls",
    "shopt -s expand_aliases",
    "hash -p /tmp/x ls; ls",
    "enable -f ./x.so x",
    "BASH_ALIASES[ls]=rm; ls",
    "GIT_DIR=evil git status",
    "env GIT_DIR=evil git status",
    "export GIT_DIR=evil; git status",
    "GIT_DIR=evil bash -c 'git status'",
    "TERM=dumb; export GIT_DIR=evil TZ=UTC && cd x && git log",
    "KUBECTL_EXTERNAL_DIFF=./x kubectl diff",
    "ZIPOPT='-TT ./x' zip a b",
    "PERL5OPT=-Mx perl a.pl",
    "PERL5LIB=. perl a.pl",
    "NODE_OPTIONS=-rx node a.js",
    "PYTHONSTARTUP=x python3",
    "MAKEFLAGS=--eval=x make",
    "GCONV_PATH=. iconv -l",
    "set -a; GIT_DIR=evil; git status",
    "set -o allexport; ls",
    "set -ek; git status GIT_DIR=evil",
    "GLOBIGNORE=; rg x *",
    "unset GLOBIGNORE; rg x *",
    "bash -c 'rg x *'",
    "sh -c 'tar cf a [!a]*'",
    "bash -c 'tar cf a \"-\"*'",
    "bash -c 'rg x \"\"*'",
    "git clone -c core.sshCommand=./x a",
    "git clone --depth 1 --config=diff.external=./x a b",
    "git clone --template=evil a b",
    "git init --template evil",
    "git fetch-pack --upload-pack=./x h",
    "git send-pack --receive-pack=./x h",
    "git config include.path ../evil",
    "git config diff.external ./x",
    "git config submodule.a.update !./x",
    "sed '1e rm a' y",
    "sed -n '/a/,$!{p;e' y",
    "sed s/a/b/e y",
    "sed -E 's/[/]/b/2ge' y",
    "sed --expr='s,a,b,e' y",
    "sed -i -e p -e '$e' y",
    "sed 's/[\\]/]/e/' y",
]  # fmt: skip

ORDINARY = [
    "git status --short",
    "while IFS= read -r line; do echo \"$line\"; done < file",
    "IFS=, read -ra parts <<< a,b",
    "for f in *.py; do wc -l \"$f\"; done",
    "x=$(date); echo $x",
    "FOO=bar make test",
    "python3 -m pytest -q",
    "[ -f x ] && echo y || true",
    "ls | grep x | sort -u > out",
    "cat <<'E'\n$c\nE",
    "export FOO=bar",
    "SECONDS=0; env A=b CC=gcc make -j4 2>&1 CFLAGS='-O2 -g' >&- | tee log",
    "sqlite3 data.db '.mode csv' 'select a || b from t'; sqlite3 d '.show'",
    "bash -c 'cat | python3 x.py' < in",
    "echo $HOME \"$x\" $(date)",
    "timeout 60 python3 -m pytest -q",
    "bash -c 'cd src && ls'",
    "git commit -m \"$(cat <<'E'\nrm -rf /\nE\n)\"",
    "GIT_AUTHOR_DATE=2020-01-01 TZ=UTC git commit -m x",
    "export FOO=bar; cd x; make; ls",
    "FOO=bar ./configure && FOO=bar pytest && FOO=bar node x.js",
    "set -Eeuo pipefail; unset IFS; set +x; set -- a; ls *",
    "rg x * && tar cf a.tar -- *",
    "git clone -c fetch.fsck.badTimezone=ignore --depth 1 https://example.org/a.git",
    "git init -q && git config user.name x && git config http.proxy y",
    "bash -c 'ls * && git add * && rg x ./*'",
    "sed -i.bak -e 's/we/ew/g' -e '/e/,/w/{s|[^/e]*$|w|;p}' file",
    "sed ':a;N;$!ba;s/\\n/ /g' file | sed '1i e id' | sed -n '/x/!p;y/we/ew/;$=' | sed 's/[][/]*e//'",
    "python3 - <<'E'\nprint(1)\nE",
]  # fmt: skip

WRITES_OR_RUNS = {
    "git diff*": [
        "git diff --output=x", "git diff --output x", "git diff --outp=x", "git diff HEAD --ou=x -- a", "git diff > x",
        "git -C . diff --output=x", "git --no-pager diff --output=x", "git -c core.pager=x diff", "git -c diff.external=x diff",
        "git --exec-path=. diff", "git --git-dir=evil diff", "git -c alias.diff=!x diff", "GIT_EXTERNAL_DIFF=x git diff",
    ],
    "git log*": ["git log --output=x", "git log -p --output=x"],
    "git show*": ["git show --output=x HEAD"],
    "git stash show*": ["git stash show --output=x"],
    "git format-patch*": ["git format-patch -o d HEAD~1", "git format-patch --output-directory=d -1", "git format-patch -1 -od"],
    "git archive*": ["git archive -o x HEAD", "git archive --output=x HEAD", "git archive -ox HEAD", "git archive --exec=x HEAD"],
    "git bundle*": ["git bundle create x HEAD", "git bundle create -q x HEAD"],
    "git grep*": ["git grep -Orm x", "git grep --open-files-in-pager=rm x", "git grep -O x"],
    "git fetch*": ["git fetch --upload-pack=x", "git fetch --upload-pack x o"],
    "git push*": ["git push --receive-pack=x o", "git push --exec=x o"],
    "git clone*": ["git clone -u x a b", "git clone -c core.fsmonitor=x a b".replace("-c core.fsmonitor", "--upload-pack")],
    "git rebase*": ["git rebase -x 'rm a' HEAD", "git rebase --exec='rm a' HEAD"],
    "git difftool*": ["git difftool -x rm", "git difftool --extcmd=rm", "git difftool -yx rm"],
    "sort*": ["sort -o x y", "sort -ox y", "sort -uo x y", "sort --output=x y", "sort --out=x y", "sort --o=x y", "sort --compress-program=./x y", "sort y -o y"],
    "shuf*": ["shuf -o x y"],
    "uniq*": ["uniq a b", "uniq -c a b", "uniq - b", "uniq -- -a b"],
    "tree*": ["tree -o x"],
    "find*": [
        "find . -delete", "find . -fprint x", "find . -fprintf x %p", "find . -fls x", "find . -exec rm {} ;",
        "find . -execdir rm {} +", "find . -ok rm {} ;",
    ],
    "fd*": ["fd -x rm", "fd --exec rm", "fd -X rm"],
    "sed*": [
        "sed -i s/a/b/ x", "sed -ni s/a/b/ x", "sed --in-place s/a/b/ x", "sed -i.bak s/a/b/ x", "sed --in-pl=b s/a/b/ x",
        "sed 'w x' y", "sed -n '/a/w x' y", "sed s/a/b/w\\ x y", "sed 's/a/b/gw x' y", "sed '1e rm a' y", "sed s/a/b/e y",
        "sed 's,a,b,e' y", "sed -e p -e 'w x' y", "sed '1,3{p;w x' y", "sed -f x y", "sed --file=x y", "sed '$!N;W x' y",
        "sed \"s/a/$b/\" y", "sed 's/[/]/b/w x' y", "sed 'y/ab/ba/;e' y",
        "sed -nee y", "sed -ee y", "sed --expression=e y", "sed p -e e y", "sed -ne p -e 'w x' y",
    ],
    "awk*": [
        "awk '{print > \"x\"}' y", "awk '{print | \"sh\"}' y", "awk 'BEGIN{system(\"x\")}'", "awk '{\"date\" | getline}' y",
        "awk -f x y", "gawk -i inplace '{print}' y".replace("gawk", "awk"), "awk '{printf \"%s\", $1 >> \"x\"}' y",
    ],
    "rg*": ["rg --pre ./x y", "rg --pre=./x y", "rg --hostname-bin ./x y"],
    "tar*": [
        "tar -xf a --to-command=rm", "tar -xf a --to-command rm", "tar -xf a --to-com=rm", "tar -cf a b -I ./x",
        "tar -cf a b --use-compress-program=./x", "tar -cf a b --checkpoint-action=exec=./x",
        "tar -cf a b --checkpoint-act=exec=./x", "tar -xf a -F ./x", "tar -xf a --rsh-command=./x", "tar cf a -I./x b",
    ],
    "env*": ["env -S 'rm a'", "env rm a", "env -i rm a", "env --split-string='rm a'"],
    "xargs*": ["xargs rm < x", "xargs -n1 rm"],
    "time*": ["time -o x ls"],
    "curl*": ["curl -o x u", "curl -sSLo x u", "curl --output x u", "curl -O u", "curl -fsSLO u", "curl -D x u", "curl -c x u"],
    "less*": ["less -o x y", "less --log-file=x y"],
    "yq*": ["yq -i .a=1 x", "yq --inplace .a=1 x"],
    "perl*": ["perl -i -pe s/a/b/ x", "perl -pi -e s/a/b/ x"],
    "xxd*": ["xxd -r a b", "xxd a b"],
    "iconv*": ["iconv -f a -t b -o x y", "iconv --output=x y", "iconv --o=x y"],
    "rsync*": ["rsync -e ./x a b", "rsync --rsh=./x a b"],
    "ssh*": ["ssh -o ProxyCommand=./x h", "ssh -oProxyCommand=./x h", "ssh -o 'ProxyCommand ./x' h"],
    "man*": ["man -P ./x ls", "man --pager=./x ls"],
    "split*": ["split --filter=./x a"],
}  # fmt: skip

STILL_ALLOWED = [
    ("git diff*", "git diff --stat HEAD~1 -- src"),
    ("git diff*", "git diff -O orderfile --color=never"),
    ("git log*", "git log --oneline -n 5"),
    ("git show*", "git show --stat HEAD"),
    ("git archive*", "git archive --format=tar HEAD"),
    ("git grep*", "git grep -n -e foo"),
    ("sort*", "sort -k 2 -t o -u names"),
    ("uniq*", "uniq -c names"),
    ("find*", "find . -name '*.py' -newer x -print"),
    ("sed*", "sed -n '1,20p' file"),
    ("sed*", "sed -e 's/week/word/g; s|a|w|' -e '/^#/d' file"),
    ("sed*", "sed '$!d' file"),
    ("sed*", "sed -Ez -e '1,+3{/e/I!s/[w/]/e/p;b' -e '}' file"),
    ("awk*", "awk '{print $1}' file"),
    ("awk*", "awk -F: '$3 > 5 {print $1}' file"),
    ("rg*", "rg -n --type py foo"),
    ("tar*", "tar -tzf a.tar.gz"),
    ("curl*", "curl -sSfL https://example.org"),
    ("curl*", "curl -X POST -H Origin:x https://example.org"),
    ("git diff*", "git diff > /dev/null"),
]


def answer(rule: str, command: str) -> str:
    tool = BashTool(Path("/tmp"), isolation=Isolation("landlock", False))
    return Policy(PolicyRules(allow=(f"Bash({rule})" if rule else "Bash",))).verdict(tool, {"command": command}).answer


@each((rule, command) for rule in ("", "*") for command in BECOMES_A_COMMAND)
def test_text_that_becomes_a_command_is_always_asked_about(rule: str, command: str) -> None:
    assert answer(rule, command) in {"ask", "deny"}


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_lines_are_allowed_as_a_whole(command: str) -> None:
    assert answer("", command) == "allow"


@each((rule, line) for rule, lines in WRITES_OR_RUNS.items() for line in lines)
def test_an_option_that_writes_or_runs_is_not_what_was_allowed(rule: str, command: str) -> None:
    assert answer(rule, command) in {"ask", "deny"}


@pytest.mark.parametrize(("rule", "command"), STILL_ALLOWED)
def test_read_only_options_are_allowed(rule: str, command: str) -> None:
    assert answer(rule, command) == "allow"


@pytest.mark.parametrize(
    "command",
    ["DROP DATABASE d", "drop database d", "DROP SCHEMA s", "DROP TABLE t", "TRUNCATE t", "TRUNCATE TABLE t",
     "truncate table t", "Drop  Table if exists t", "true; DROP DATABASE d", "sh -c 'TRUNCATE t'", "Truncate t"],
)  # fmt: skip
def test_bare_statements_of_sql_are_blocked(command: str) -> None:
    match = judge(command)
    assert match is not None
    assert match.pattern in {"DROP TABLE", "DROP DATABASE", "TRUNCATE"}


@pytest.mark.parametrize("command", ["truncate -s 0 log", "echo DROP DATABASE d", "grep TRUNCATE x.sql", "drop x"])
def test_text_that_only_looks_like_sql_is_not_blocked(command: str) -> None:
    assert judge(command) is None


@pytest.mark.parametrize("pattern", ["(", "[a", "*x", "(?P<a", "a{2,1}"])
def test_a_bad_pattern_is_refused_with_its_name(pattern: str) -> None:
    with pytest.raises(UsageError, match="is not a regular expression") as raised:
        ShellSettings(blocklist=("good", pattern))
    assert repr(pattern) in raised.value.message

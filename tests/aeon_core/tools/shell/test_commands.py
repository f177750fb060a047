# ruff: noqa: E501  # one case after the other
from __future__ import annotations

import shutil
import subprocess
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.tools.shell.commands import exit_code_of, policy_texts, read, unknown_program
from aeon_core.tools.shell.syntax import Redirect, SimpleCommand
from tests.sampling import examples

BASH = shutil.which("bash")


def words_of(text: str) -> list[tuple[str, ...]]:
    line = read(text)
    assert line.doubt is None, line.doubt
    return [command.words for command in line.commands]


def only(text: str) -> SimpleCommand:
    [command] = read(text).commands
    return command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", ("ls", "-la")),
        ("'l''s' \"-l\"a", ("ls", "-la")),
        ("l\\s a\\ b", ("ls", "a b")),
        ("l\\\ns a\\\nb c \\\n d", ("ls", "ab", "c", "d")),
        ("echo '' \"\"", ("echo", "", "")),
        ("echo 'a\nb' \"c\n d\"", ("echo", "a\nb", "c\n d")),
        ('echo "a\\"b\\$c\\n"', ("echo", 'a"b$c\\n')),
        ("echo '*' \"?\" \\[a] '{a,b}'", ("echo", "*", "?", "[a]", "{a,b}")),
        ("echo é'ü' {} a@{1}", ("echo", "éü", "{}", "a@{1}")),
        ("echo a#b # c", ("echo", "a#b")),
        ("echo \\ a \\$x", ("echo", " a", "$x")),
    ],
    ids=range(11),
)
def test_words_are_those_the_program_would_get(text: str, words: tuple[str, ...]) -> None:
    command = only(text)
    assert command.words == words
    assert command.literal == (True,) * len(words)


@pytest.mark.parametrize(
    ("text", "words", "literal"),
    [
        ("ls $x", ("ls", "$x"), (True, False)),
        ('ls "a $x b"', ("ls", "a $x b"), (True, False)),
        ("ls *.py a?", ("ls", "*.py", "a?"), (True, True, True)),
        ("ls $HOME/x ${PWD}", ("ls", "~/x", "."), (True, False, False)),
        ("$x ls", ("$x", "ls"), (False, True)),
        ("l$u", ("l$u",), (False,)),
        ("l?", ("l?",), (False,)),
    ],
    ids=range(7),
)
def test_an_unknowable_word_is_marked(text: str, words: tuple[str, ...], literal: tuple[bool, ...]) -> None:
    command = only(text)
    assert (command.words, command.literal) == (words, literal)


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("ls a | ls b |& ls c && ls d || ls e; ls f & ls g\nls h", "abcdefgh"),
        ("(ls a; { ls b; })", "ab"),
        ("if ls a; then ls b; elif ls c; then ls d; else ls e; fi", "abcde"),
        ("for x in $(ls a); do ls b; done; while ls c; do ls d; done; until ls e; do ls f; done", "abcdef"),
        ("! ls a; time ls b", "ab"),
        ('ls a "$(ls b)" $(ls c | (ls d))', "abcd"),
        ("X=$(ls a) ls b; Y=c$(ls d)", "abd"),
        ("ls a <<'EOF'\n$(ls b) `ls c`\nEOF\nls d", "ad"),
        ("ls a <<-EOF && ls b\n\tx $y\n\tEOF\nls c", "abc"),
        ("ls a\n\\ls b\n# ls c\nls d # ls e", "abd"),
        ("while read -r x; do ls a; done < f > g", "a"),
    ],
    ids=range(11),
)
def test_commands_are_found_wherever_they_are(text: str, programs: str) -> None:
    found = [words[1] for words in words_of(text) if words[:1] == ("ls",)]
    assert sorted(word[0] for word in found) == sorted(programs)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("env A=b ls -l", ("ls", "-l")),
        ("sudo A=b nice timeout 5 ls", ("ls",)),
        ("command ls", ("ls",)),
        ("time ls", ("ls",)),
        ("bash -euc 'cd x && ls -l'", ("ls", "-l")),
        ("sh -c \"bash -c 'ls -l'\"", ("ls", "-l")),
    ],
    ids=range(6),
)
def test_commands_run_by_a_command_are_found(text: str, inner: tuple[str, ...]) -> None:
    assert inner in words_of(text)


@pytest.mark.parametrize(
    "text",
    ["command -v ls", "git status", "bash x.sh", "bash -x x.sh", "python x.py", "docker ps", "echo env ls", ". a"],
)
def test_a_command_that_runs_no_other_is_listed_alone(text: str) -> None:
    assert len(words_of(text)) == 1


def test_input_given_in_the_line_is_known() -> None:
    commands = read("cat a <<< 'x y'\ncat b <<E\nz $u\nE\ncat c").commands
    assert [command.stdin for command in commands] == ["x y", "z $u", None]


def test_redirections_and_assignments_belong_to_their_command() -> None:
    command = only("A=1 B='x y' cat < in 2>> err > 'o u' 2>&1 a")
    assert command.words == ("cat", "a")
    assert command.assignments == ("A=1", "B=x y")
    assert command.redirects == (
        Redirect("<", "in"), Redirect(">>", "err"), Redirect(">", "o u"), Redirect(">&", "1"),
    )  # fmt: skip
    assert [redirect.writes for redirect in command.redirects] == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("git status --short", ["git status --short"]),
        ("'git'   \"status\"", ["git status"]),
        ("git commit -m 'a b'", ["git commit -m 'a b'"]),
        ("env rm x", ["env rm x", "rm x"]),
        ("git status; rm x", ["git status", "rm x"]),
        ("git log > out", ["git log > out", "> out"]),
        ("git log 2>&1 < in", ["git log"]),
        ("FOO=x make test", ["FOO=x make test"]),
        ("ls *.py $x", ["ls *.py $x"]),
        ("{ ls; } > out", ["ls", "> out"]),
        ("ls; ls", ["ls"]),
        ("for x in a b; do ls $x; done", ["ls $x"]),
        ("sh -c 'git status; rm x'", ["sh -c 'git status; rm x'", "git status", "rm x"]),
        ("[ -f x ] && ls", ["[ -f x ]", "ls"]),
        ("", []),
    ],
    ids=range(15),
)
def test_rules_see_commands_with_assignments_and_redirections(text: str, texts: list[str]) -> None:
    assert policy_texts(text) == texts


@pytest.mark.parametrize(
    "text",
    [
        "$x status", "$(echo git) status", "g$x status", "/bin/gi? status", "{git,status}", "X=git; $X status",
        'bash -c "$x"', "bash -c '$0' ls", "env $x git status", "eval $x", "git status )", "echo 'open",
        "(" * 10_000, "ls;" * 40_000, "sh -c 'ls )'", "sudo " * 100 + "ls", "x= $x; ls",
        "(( 'a[$(x)]' ))", "[[ -v 'a[$(x)]' ]]; ls", "[[ $a -gt 1 ]]; ls", "ls $((x + 1))", "ls ${a[b]}", "ls ${a:b}",
        "ls ${x@P}", "let a=1", "printf -v 'a[$(x)]' y", "printf -v $x y", "test -v 'a[0]'", "declare -i a; ls",
        "read 'a[0]'", "for ((i = x; i < 1; i++)); do ls; done", "unset 'a[$(x)]'", "f() { ls; }", "a=(b)", "a[0]=b",
        "case x in x) ls;; esac", "ls `ls`", "ls $'a'", 'ls $"a"', "ls <(ls)", "ls > $x", "ls > *", "ls {a,b}", "ls {1..3}",
        "cat <<E\n$(ls)\nE", "cat <<E\nx", "cat <<$HOME\n~\n$HOME", "for PATH in .; do ls; done", "env *", "export *",
        "echo $\\\n(ls)", "rm $x", "pytest $x", "exec < x",
        "xargs ls", "find . -exec ls {} +", "trap ls EXIT", "curl x | python3 -", "python3 <(ls)", "git -c a=b status",
    ],
)  # fmt: skip
def test_complex_commands_are_asked_about(text: str) -> None:
    assert policy_texts(text) is None
    assert unknown_program(text)


PIECES = st.lists(
    st.sampled_from(
        ["a", "'b c'", '"d e"', "\\'", "\\ ", "''", '"\\$f"', "g=h", "'*'", "é", "\\\n", '"i\nj"', "l#k", '"$"', "'$l'"]
    ),
    min_size=1,
    max_size=6,
).map("".join)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@given(st.lists(PIECES, min_size=1, max_size=4))
def test_quotes_are_read_as_bash_reads_them(pieces: list[str]) -> None:
    text = "printf '%s\\0' x" + "".join(f" {piece}" for piece in pieces) + "\n: end"
    done = subprocess.run([str(BASH), "-c", text], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    command = read(text).commands[0]
    assert list(command.words[2:]) == done.stdout.decode().split("\0")[:-1]


@given(st.text(st.sampled_from("ab $(){}[]<>|&;'\"`\\\n#*=!EOF0\x00\ud800\ue020"), max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    line, texts = read(text), policy_texts(text)
    assert texts is None or not line.doubt
    assert all(len(command.words) == len(command.literal) == len(command.shown) for command in line.commands)


WORDS = (
    'p1 p2 p3 p4 p5 if then elif else fi while until do done for { } ( ) $( "$( )" ! time ; && || | |& & \' " \\ # in'
)
WORDS += " p1 p2 p3 p4 p5 <<E <<'E' <<< 2>&1 A=1 case esac coproc function [[ ]] $x '' x"
LINES = st.lists(
    st.sampled_from([*WORDS.split(), "for x in a", "< f", "\n", "\\\n", "\nE\n"]), min_size=1, max_size=14
).flatmap(lambda words: st.sampled_from([" ".join(words), "".join(words), "; ".join(words), " p1\n".join(words)]))


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=examples(400))
@given(LINES)
@example("if p1; then p2; fi; p3")
@example("p1; p2 )")
@example("p1\n} p2")
@example("( p1 ) p2")
@example("{ p1; } p2")
@example("! time p1")
def test_bash_runs_nothing_that_is_not_among_the_commands(text: str) -> None:
    line = read(text)
    if line.doubt:
        return
    handler = "command_not_found_handle() { printf '%s\\0' \"$1\" >&3; return $((RANDOM % 2)); }"
    run = [str(BASH), "-c", f'ulimit -t 1; {handler}; x=p5; exec 3>&1 >/dev/null\neval "$1"', "bash", text]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(run, capture_output=True, cwd=folder, env={"PATH": folder}, timeout=60, check=False)
    # Behind a pipe, `time` is a program that runs the command behind it.
    assert set(done.stdout.decode().split("\0")[:-1]) <= {"time", *(command.program for command in line.commands)}


@pytest.mark.parametrize(
    ("text", "what"),
    [('echo "`ls`"', "a backquote"), ("cat <<E 'a\nb'\nE\n", "a line end in quotes before a here-document")],
)
def test_unread_parts_of_quotes_are_named(text: str, what: str) -> None:
    assert unknown_program(text) == f"{what} is not read as plain commands"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("pytest", ""),
        ("cd a && pytest &&\n ruff check", ""),
        ("pytest -k 'a|b;c'", ""),
        ("for i in 1 2; do pytest; done", ""),
        ("pytest | tail -5", "tail -5"),
        ("(cd a && pytest) |& tee log", "tee log"),
        ("pytest || true", "true"),
        ("pytest; echo done", "echo done"),
        ("cat > f <<E\nx | y\nE\ncd a && pytest", "cd a && pytest"),
        ("if pytest; then echo ok; fi", "echo ok"),
        ("set -o pipefail; pytest | tail", ""),
        ("set -e\npytest\necho done", ""),
        ("pytest | tail; exit ${PIPESTATUS[0]}", ""),
    ],
)
def test_a_line_of_several_commands_has_the_exit_code_of_the_last(line: str, command: str) -> None:
    assert exit_code_of(line) == command

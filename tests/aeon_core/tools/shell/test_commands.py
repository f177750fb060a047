from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.tools.shell.commands import Redirect, SimpleCommand, policy_texts, simple_commands

BASH = shutil.which("bash")


def words_of(text: str) -> list[tuple[str, ...]]:
    commands = simple_commands(text)
    assert commands is not None
    return [command.words for command in commands]


def only(text: str) -> SimpleCommand:
    commands = simple_commands(text)
    assert commands is not None
    assert len(commands) == 1
    return commands[0]


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
        ("echo $'a\\tb\\x41\\101\\u00e9\\'\\\\'", ("echo", "a\tbAAé'\\")),
        ('echo $"x"', ("echo", "x")),
        ("echo '*' \"?\" \\[a] '{a,b}'", ("echo", "*", "?", "[a]", "{a,b}")),
        ("echo é'ü'", ("echo", "éü")),
        ("echo a#b # c", ("echo", "a#b")),
    ],
    ids=range(12),
)
def test_words_are_what_the_program_would_get(text: str, words: tuple[str, ...]) -> None:
    command = only(text)
    assert command.words == words
    assert command.literal == (True,) * len(words)


@pytest.mark.parametrize(
    ("text", "words", "literal"),
    [
        ("ls $x", ("ls", "$x"), (True, False)),
        ('ls "a $x b"', ("ls", "a $x b"), (True, False)),
        ("ls *.py a?", ("ls", "*.py", "a?"), (True, False, False)),
        ("ls {a,b}c", ("ls", "ac", "bc"), (True, False, False)),
        ("ls {1..3}", ("ls", "{1..3}"), (True, False)),
        ("ls $HOME/x", ("ls", "~/x"), (True, False)),
        ("ls $((1+1))", ("ls", "$((1+1))"), (True, False)),
        ("$x ls", ("$x", "ls"), (False, True)),
        ("l$u", ("l$u",), (False,)),
    ],
    ids=range(9),
)
def test_a_word_that_cannot_be_known_is_marked(text: str, words: tuple[str, ...], literal: tuple[bool, ...]) -> None:
    command = only(text)
    assert (command.words, command.literal) == (words, literal)


def test_a_variable_that_is_set_in_the_line_is_followed_but_not_literal() -> None:
    commands = simple_commands("X='a b'; ls $X \"$X\" ${Y:-c}")
    assert commands is not None
    assert commands[1].words == ("ls", "a", "b", "a b", "c")
    assert commands[1].literal == (True, False, False, False, False)


def test_a_word_that_a_variable_leaves_empty_makes_all_of_the_command_uncertain() -> None:
    commands = simple_commands("X=; $X ls a")
    assert commands is not None
    assert commands[1].words == ("ls", "a")
    assert commands[1].literal == (False, False)
    assert policy_texts("X=; $X ls a") is None


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("a | b |& c && d || e; f & g\nh", "abcdefgh"),
        ("(a; { b; })", "ab"),
        ("if a; then b; elif c; then d; else e; fi", "abcde"),
        ("for x in $(a); do b; done; while c; do d; done; until e; do f; done", "abcdef"),
        ("case $(a) in x) b;; *) c;; esac", "abc"),
        ("f() { a; }; function g { b; }", "ab"),
        ("! a; [[ -n $(b) ]]; (( $(c) ))", "abc"),
        ('a <(b) >(c) `d` "$(e)" $(f)', "abcdef"),
        ("X=$(a) b; export Y=`c`", "bac"),
        ("a <<EOF\n$(b) `c`\nEOF\nd", "abcd"),
        ("a <<'EOF'\n$(b) `c`\nEOF\nd", "ad"),
        ("a <<EOF && b\nEOF\nc", "abc"),
        ("a `b \\`c\\``", "abc"),
        ("a\n\\b x", "ab"),
        ("X=1\n\\a x\n\\b", "ab"),
        ("a > f\n\\b", "ab"),
        ("a\n\\\nb", "ab"),
        ("a # c\n\\b", "ab"),
        ("a | b | { c; } && d", "abcd"),
        ("time X= a", "a"),
        ("a ${X:-`b`}", "ab"),
        ("time { a; }", "a"),
    ],
    ids=range(22),
)
def test_commands_are_found_wherever_they_stand(text: str, programs: str) -> None:
    found = [words[0] for words in words_of(text) if words and words[0] in set("abcdefgh")]
    assert sorted(found) == sorted(programs)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("env -i -u X A=b ls -l", ("ls", "-l")),
        ("env -S 'ls -l' x", ("ls", "-l", "x")),
        ("sudo -nu root A=b ls", ("ls",)),
        ("sudo --user=root -- ls", ("ls",)),
        ("timeout -k 1 5 ls", ("ls",)),
        ("nice -n5 ls", ("ls",)),
        ("bash -euo pipefail -c 'ls $1' _ x", ("ls", "x")),
        ("su - user -c 'ls -l'", ("ls", "-l")),
        ("echo a | xargs -n 1 ls", ("ls", "a")),
        ("find . -name x -exec ls {} +", ("ls", "{}")),
        ("ssh -p 22 host ls -l", ("ls", "-l")),
        ("trap 'ls' EXIT", ("ls",)),
        ("git -c alias.x='!ls -l' x", ("ls", "-l")),
        ("git -c alias.x='status -s' x", ("git", "status", "-s")),
        ("GIT_SSH_COMMAND='ls -l' git fetch", ("ls", "-l")),
        ("uv run --with x -- ls", ("ls",)),
        ("docker exec -it db psql x", ("psql", "x")),
        ("bash <<< 'ls'", ("ls",)),
        ("time { ls; }", ("ls",)),
        ("flock x -c 'ls'", ("ls",)),
    ],
    ids=range(20),
)
def test_what_a_command_runs_is_found_behind_it(text: str, inner: tuple[str, ...]) -> None:
    assert inner in words_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "command -v ls",
        "git status",
        "bash x.sh",
        "python x.py",
        "docker ps",
        "echo env ls",
        "trap - EXIT",
        "timeout -s",
    ],
)
def test_a_command_that_runs_no_other_stands_alone(text: str) -> None:
    assert len(words_of(text)) == 1


def test_a_stage_of_a_pipeline_knows_the_commands_before_it() -> None:
    commands = simple_commands("a $(b) | env c | { d; e; } && f")
    assert commands is not None
    before = {command.program: [source.program for source in command.piped_from] for command in commands}
    assert before == {
        "a": [], "b": [], "env": ["a", "b"], "c": ["a", "b"], "d": ["a", "b", "env", "c"],
        "e": ["a", "b", "env", "c"], "f": [],
    }  # fmt: skip


def test_what_a_command_reads_is_known_where_the_line_holds_it() -> None:
    commands = simple_commands("a <<< 'x y'\nb <<EOF\nz\nEOF\nprintf 'p\\n' | c; cat f | d; while e; do :; done <<< w")
    assert commands is not None
    read = {command.program: command.input_text() for command in commands if command.program in set("abcde")}
    assert read == {"a": "x y", "b": "z\n", "c": "p\n", "d": None, "e": "w"}


def test_what_a_command_runs_does_not_count_its_redirections_and_assignments_again() -> None:
    commands = simple_commands("PAGER=a env ls > out")
    assert commands is not None
    assert [(command.words, command.redirects, command.assignments) for command in commands] == [
        (("env", "ls"), (Redirect(">", "out"),), ("PAGER=a",)),
        (("a",), (), ()),
        (("ls",), (), ()),
    ]


def test_words_behind_a_redirection_are_arguments_and_no_targets() -> None:
    command = only("echo a > out b 'c d' 2> err")
    assert command.words == ("echo", "a", "b", "c d")
    assert command.redirects == (Redirect(">", "out"), Redirect(">", "err"))


def test_redirections_and_assignments_belong_to_their_command() -> None:
    command = only("A=1 B='x y' cat < in 2>> err > 'o u' 2>&1")
    assert command.words == ("cat",)
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
        ("git status $(rm x)", ["git status $(rm x)", "rm x"]),
        ("git log > out", ["git log > out", "> out"]),
        ("git log 2>&1 < in", ["git log"]),
        ("LD_PRELOAD=x git status", ["LD_PRELOAD=x git status"]),
        ("PATH=x; git status", ["PATH=x", "git status"]),
        ("ls *.py $x", ["ls *.py $x"]),
        ("{ ls; } > out", ["ls", "> out"]),
        ("ls; ls", ["ls"]),
        ("sh -c 'git status; rm x'", ["sh -c 'git status; rm x'", "git status", "rm x"]),
        ("[ -f x ] && ls", ["ls"]),
        ("", []),
    ],
    ids=range(16),
)
def test_a_rule_sees_every_command_with_what_it_sets_and_writes(text: str, texts: list[str]) -> None:
    assert policy_texts(text) == texts


@pytest.mark.parametrize(
    "text",
    [
        "$x status", "$(echo git) status", "g$x status", "/bin/gi? status", "{git,status}", "X=git; $X status",
        'bash -c "$x"', "env $x git status", "eval $x", "if true; then", "git status )", "echo 'open",
        "(" * 10_000, "ls;" * 40_000, "sh -c 'ls )'", "\ue020ls", "sudo " * 100 + "ls", "x= $x; ls",
        "ls \\ a", "ls\n\\$x",
        "(( 'a[$(x)]' ))", "[[ -v 'a[$(x)]' ]]; ls", "[[ $a -gt 1 ]]; ls", "ls $((x + 1))", "ls ${a[b]}", "ls ${a:b}",
        "ls ${x@P}", "let a=1", "printf -v 'a[$(x)]' y", "printf -v $x y", "test -v 'a[0]'", "declare -i a; ls",
        "read 'a[0]'", "for ((i = x; i < 1; i++)); do ls; done", "unset 'a[$(x)]'",
    ],
    ids=range(35),
)  # fmt: skip
def test_no_rule_may_allow_what_cannot_be_told(text: str) -> None:
    assert policy_texts(text) is None


PIECES = st.lists(
    st.sampled_from(
        ["a", "'b c'", '"d e"', "\\'", "\\ ", "$'\\x41\\t'", "''", '"\\$f"', "g=h", "'*'", "é", "\\\n", '"i\nj"']
    ),
    min_size=1,
    max_size=6,
).map("".join)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@given(st.lists(PIECES, min_size=1, max_size=4))
def test_quotes_are_read_as_bash_reads_them(pieces: list[str]) -> None:
    text = "printf '%s\\0' x" + "".join(f" {piece}" for piece in pieces) + " end"
    done = subprocess.run([str(BASH), "-c", text], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    if simple_commands(text) is None:
        assert "\\ " in text, "only an escaped blank after a quote or at the start of a word is not read"
        return
    command = only(text)
    assert list(command.words[2:]) == done.stdout.decode().split("\0")[:-1]
    assert all(command.literal)


@given(st.text(st.sampled_from("ab $(){}[]<>|&;'\"`\\\n#*=!EOF0\x00\ud800\ue020"), max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    commands = simple_commands(text)
    texts = policy_texts(text)
    assert texts is None or (commands is not None and len(texts) <= len(commands))
    assert all(len(command.words) == len(command.literal) for command in commands or ())

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.tools.shell.blocklist import PATTERNS, BlockedCommand, judge
from aeon_core.tools.shell.settings import compile_patterns
from tests.cpu_limit import cpu_limit
from tests.sampling import each

HARMLESS = [
    "",
    "ls -la",
    'git commit -m "rm -rf / is bad"',
    'echo "rm -rf /"',
    "echo rm -rf /",
    "printf '%s\\n' 'rm -rf /'",
    "cat <<EOF > notes.md\nrm -rf / and mkfs and DROP TABLE\nEOF",
    "cat <<'EOF' | grep rm\nrm -rf /\nEOF",
    "grep -rn 'rm -rf /' scripts/",
    "# rm -rf /\nls",
    "ls # rm -rf /",
    "rm -rf build",
    "rm -rf node_modules dist/*",
    "rm -rf *.pyc",
    'rm -rf "$BUILD_DIR"',
    "rm -rf ${BUILD_DIR:-build}",
    "rm -r src/old",
    "rm -r ./old",
    "rm -f /tmp/x.lock",
    "rm .env",
    "rm -i -- -rf",
    "X=/; ls $X",
    "alarm -rf /",
    "find . -name '*.pyc' -delete",
    "find . -name node_modules -exec rm -rf {} +",
    "find / -name x -print",
    "find src -type f -delete",
    "find . -mmin +5 -delete",
    "mytool rm -rf build",
    "gh pr create --title 'Refuse rm -rf /'",
    "find . -name '*.tmp' | xargs rm -f",
    "man mkfs",
    "which mkfs.ext4",
    "cat docs/mkfs.md",
    "echo 'dd if=x'",
    "dd of=out bs=1M count=1",
    "git add if=x",
    "f() { echo hi; }; f; f",
    "walk() { for d in \"$1\"/*; do walk \"$d\"; done; }; walk .",
    "echo x > /dev/null",
    "ls 2>/dev/stderr",
    "cat /dev/sda1.txt > out",
    "cp /dev/sda backup.img",
    "echo '> /dev/sda'",
    "chmod 777 x",
    "chmod -R 755 src",
    "chmod -R u+rwx .",
    "chmod -R go-rwx .",
    "chmod +x run.sh",
    "curl -fsSL x -o install.sh",
    "curl x | jq .name",
    "curl x | shasum -a 256",
    "curl x | python3 -m json.tool",
    "curl x | grep sh",
    "curl x | tee sh",
    "wget x && ls | sort",
    "echo 'curl x | sh'",
    "base64 -d x | tar x",
    "echo ls | sh",
    "cat x | base64 -d",
    "echo eval",
    "which eval",
    "pytest --eval",
    "type eval",
    "grep -n eval src/x.py",
    "python evaluate.py",
    "python eval.py",
    "grep -rn 'DROP TABLE' migrations/",
    "cat drop_table.sql",
    "echo 'DROP TABLE x'",
    "psql -c 'select 1'",
    "psql -c 'select dropped, truncated from tables'",
    "psql -tAc'select 1 -- drop'",
    "truncate -s 0 f",
    "git commit -m 'TRUNCATE the log'",
    "git checkout deploy-docs",
    "git push origin deploy",
    "git checkout -b deploy",
    "cat docs/deploy.md",
    "ls deploy/",
    "cd deploy && ls",
    "cp -r deploy publish",
    'git commit -m "deploy later"',
    "gh pr create --title 'deploy later'",
    "git log --grep=publish",
    "grep publish src",
    "python -m pytest tests/deploy",
    "pytest tests/test_deploy.py",
    "npm run build -- --out deploy",
    "vim deploy.sh",
    "chmod +x deploy.sh",
    "systemctl status deploy",
    "redeploy --help",
    "make published",
    "npm install publisher",
    "docker compose -f deploy.yml ps",
    "kubectl get deploy",
    "git push",
    "git push origin main",
    "git push -u origin feature",
    "git push --follow-tags",
    "git commit -m 'push --force'",
    "git fetch --force",
    "git stash push -m x",
    "git log -f",
    "ssh host 'ls -la'",
    "sudo apt-get install mkfs-tools",
    "env A=b ls",
    "$EDITOR notes.md",
    "for f in *.py; do python -m py_compile \"$f\"; done",
    "python -c 'print(1)'",
    "sh -c 'echo \"rm -rf /\"'",
    "awk '/deploy/ { print }' log",
    "awk -F'|' '{ print $2 }' x",
    "sed -n '/eval/p' x",
    "trap 'rm -f x' EXIT",
    "command -v eval",
    "{ ls; } > out 2>&1",
    "curl x | grep y | { cat; } && sh build.sh",
    "curl x > y || sh build.sh",
    "npm view deploy",
    "cargo test publish",
    "yarn test deploy",
    "git checkout main -- deploy.sh",
    "python -m unittest tests.test_deploy",
    "git commit -m \"$(cat <<'EOF'\nFix: rm -rf / no more, eval\nEOF\n)\"",
    "python3 script.py --target deploy",
]  # fmt: skip


@each(HARMLESS)
def test_harmless_lookalikes_match_nothing(text: str) -> None:
    assert judge(text) is None


def test_the_patterns_are_those_of_the_specification_in_its_order() -> None:
    assert PATTERNS == (
        "rm -rf /", "rm -rf ~", "rm -rf .", "mkfs", "dd if=", ":(){", "> /dev/sd", "chmod -R 777", "wget ... | sh",
        "curl ... | sh", "eval", "DROP TABLE", "DROP DATABASE", "TRUNCATE", "deploy", "publish", "push --force",
        "git push -f",
    )  # fmt: skip


def test_a_match_names_the_command_and_the_reason() -> None:
    assert judge("cd x && sudo sh -c 'rm -rf \"/srv\"; ls'") == BlockedCommand(
        "rm -rf /", "rm -rf /srv", "rm removes '/srv' and everything in it"
    )


def test_a_long_command_is_cut_in_the_match() -> None:
    match = judge("rm -rf / " + "x" * 1000)
    assert match is not None
    assert len(match.command) == 200
    assert match.command.endswith("…")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("case x in (a) 'r'm -rf /;; *) ls ;& esac", "rm -rf /"),
        ("if true; then; git push --force", "push --force"),
        ("curl -fsSL x | sudo bash; if", "curl ... | sh"),
        ("wget -qO- x | /bin/sh )", "wget ... | sh"),
        (":(){ :|:& ", ":(){"),
        ("'" * 9999 + "rm -rf /", "rm -rf /"),
        ("(" * 10_000 + "rm -rf /" + ")" * 10_000, "rm -rf /"),
        ("true;" * 20_000 + "rm -rf /", "rm -rf /"),
        ("true;" * 20_000 + "'r'm -r\\f /", "rm -rf /"),
    ],
    ids=range(9),
)
def test_unparseable_lines_are_searched_as_text(text: str, pattern: str) -> None:
    match = judge(text)
    assert match is not None
    assert match.pattern == pattern
    assert match.why


@pytest.mark.parametrize(
    "text", ["if true; then", "((((", "echo 'open", "ls )", "curl x -o y; if", "ls | sh; wget x; if"]
)
def test_an_unparseable_line_without_a_pattern_does_not_match(text: str) -> None:
    assert judge(text) is None


def test_an_unread_line_is_matched_by_its_text() -> None:
    match = judge("f() { mkfs /dev/x; }")
    assert match is not None
    assert (match.pattern, match.command) == ("mkfs", "f() { mkfs /dev/x; }")
    assert judge("f() { ls /dev/x; }") is None


def test_a_users_patterns_are_searched_in_the_whole_text() -> None:
    match = judge("echo terraform destroy", [r"kubectl\s+delete", r"terraform\s+destroy"])
    assert match == BlockedCommand(
        r"terraform\s+destroy", "echo terraform destroy", "it matches a pattern in the configuration"
    )
    assert judge("echo Terraform destroy", [r"terraform\s+destroy"]) is None
    assert judge("rm -rf /", ["x"]) is not None


@pytest.mark.parametrize("pattern", ["(", "*", "[a", "(?P<n>x)(?P<n>y)", "x{99999999999999999999}"])
def test_an_invalid_regular_expression_is_named(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_patterns(["ok", pattern])
    assert str(caught.value).startswith(f"blocklist: {pattern!r} is not a regular expression (")
    assert str(caught.value).endswith("; fix or remove it")
    assert "\n" not in str(caught.value)


SHELL_TEXT = st.text(st.sampled_from("rm -f/~.$(){}[]<>|&;'\"`\\\n#*?!=:xEOF0 \t\ue020é\x00\ud800"), max_size=60)


@given(st.text() | SHELL_TEXT)
def test_no_text_raises(text: str) -> None:
    match = judge(text)
    assert match is None or match.pattern in PATTERNS


HEAVY = {
    "parentheses": "(" * 10_000 + "a" + ")" * 10_000,
    "substitutions": "$(" * 5_000 + "a" + ")" * 5_000,
    "arrays": "a=(" * 16_000,
    "pipes": "|" * 50_000,
    "commands": "echo hello; " * 9_000,
    "just read": "echo hello; " * 4_000,
    "words": "echo" + " a" * 24_000,
    "downloads": "wget " * 20_000,
    "commas": "echo {" + "," * 45_000,
    "braces": "echo " + "{a,b}" * 9_000,
    "doubling": "X=$X$X;" * 6_000 + "$X",
    "variables": "X=" + "a" * 900 + "; echo" + " $X" * 10_000,
    "evals": "eval " * 9_000,
    "wrappers": "env " * 9_000,
    "finds": "find -exec " * 4_000,
    "shells": "bash -c " * 5_000,
    "stages": "ls|" * 15_000 + "ls",
    "comments": "psql '" + "/*" * 20_000 + "'",
    "here-documents": "<<a " * 10_000,
    "blanks": "rm" + " " * 90_000 + "-rf",
    "unknown": "$x " * 8_000,
    "quotes": "'" * 49_999,
    "backquotes": "`" * 49_999,
    "passed on": "x" + " rm" * 16_000,
    "sed": "sed '" + "s/[[:" * 9_000 + "'",
    "assigned": "A=1 " * 5_000 + "git status;" * 2_000,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY.keys())
def test_a_hard_text_is_classified(text: str) -> None:
    with cpu_limit(30):
        judge(text)


def test_an_endless_project_pattern_blocks_the_command_without_hanging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aeon_core.tools.shell.blocklist._SECONDS", 0.01)
    match = judge("x" * 60 + "!", ["^(x|xx)+$"])
    assert match is not None
    assert "simplify it" in match.why

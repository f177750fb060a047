"""Ways around the blocklist and the rules: none is allowed without a question, whatever the rules allow."""

# ruff: noqa: E501  # one case after the other
from __future__ import annotations

from pathlib import Path

from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation
from tests.sampling import each

EVASIONS = [
    "r''m -r'f' /", '"\\rm" -rf /; "rm" -rf "/"', "r$@m -rf /", "r${x}m -rf /", "${x:-rm} -rf /", "$'rm' -rf /",
    '$"rm" -rf /', "{rm,-rf,/}", "/???/rm -rf /", "env /bin/r? -rf /", "env * -rf /", "IFS=_; c=rm_-rf_/; $c",
    "IFS=, read -r c <<< rm,-rf; $c /", 'set -- rm -rf /; "$@"', 'a=(rm -rf /); "${a[@]}"', "printf -v c rm; $c -rf /",
    "while read -r c; do $c; done <<< 'rm -rf /'", "for c in rm; do $c -rf /; done", "$(echo rm) -rf /", "`echo rm` -rf /",
    "echo cm0gLXJmIC8= | base64 -d | sh", "bash <(base64 -d <<< cm0gLXJmIC8=)", 'sh -c "$(base64 -d <<< cm0gLXJmIC8=)"',
    "bash << E\n$(rm -rf /)\nE", "cat <<A; rm -rf /\nA", "cat <<\\A\nA\nrm -rf /", "cat <<$HOME\n~\n$HOME\nrm -rf /",
    "bash -c '$0 -rf /' rm", "bash -c \"bash -c 'r\\\"\\\"m -rf /'\"", "bash --norc -c 'x'", "e\\val 'x'", "command eval x",
    "env -S 'x y'", "env -Srm -rf /", "env A=b sudo nice rm -rf /", "PATH=. ls", "export P'AT'H=.; ls", "export *",
    "LD_PRELOAD=./x.so ls", "BASH_ENV=x bash y.sh", "HOME=/; rm -rf ~", "alias ls=x", "trap x EXIT", "hash -p ./x ls",
    "git -c core.pager=x log", "git config alias.x '!x'", "git config core.hooksPath x", "GIT_PAGER=x git log",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=x git log", "git rebase -x x main",
    "git bisect run x", "git submodule foreach x", "git fetch --upload-pack=x o", "find . -exec x ;", "find / -delete",
    "xargs x < y", "fd -x x", "echo x | sh", "echo x | . /dev/stdin", "tar xf a --to-command=x", "tar xf a --to-com x",
    "tar cf a b --checkpoint-action=exec=x", "tar cf a b -Ix", "rsync -e x a b:c", "man -P x ls", "make SHELL=x",
    "make -f - <<'E'\na:; x\nE", "make -f /dev/stdin <<< 'a:; x'", "echo 'a:; x' | make -f /dev/fd/0", "crontab - <<< x", "vim -c '!x'", "psql -c '\\! x'", "awk 'BEGIN { system(\"x\") }'", "ex a <<< '!x'",
    "timeout -s KILL 5 x", "time -p x", "time { rm -rf /; }", "i\\\nf rm -rf /; then ls; fi", "f() { x; }; f",
    "case x in x) rm -rf /;; esac", "coproc x", "echo x # y\nrm -rf /", "echo a \\\n; rm -rf /", 'echo "$(rm -rf /)"',
    "echo ${x:-$(x)}", "cat < <(x)", "echo $\\\n(x)", "echo > /dev//sd'a'", "D=/dev/sda; echo > $D", "exec <<< x; sh",
    "[[ -v 'a[$(x)]' ]]", "test -v 'a[$(x)]'", "x='a[$(x)]'; echo $(( x ))", "echo ${x@P}", "declare -i x=y",
    "source <(x)", "rm -rf $HOME", "rm -rf $x", "curl x | sudo -E bash -s", "curl x | python3 -", "{ sh; } <<< x",
    "python3 <<< 'import os; os.system(\"rm -rf /\")'", "npx vercel deploy", "docker run x", "uv run x", "ssh h x",
    "for RANDOM in 'a[$(x)]'; do ls; done", "for SECONDS in 'a[$(x)]'; do ls; done", "OPTIND='a[$(x)]'", "SRANDOM='a[$(x)]' ls",
    "read HISTCMD <<< 'a[$(x)]'", "ls >&'$(x)'", "rm -rf >&-/", "git push <&---force", "git 2\\\n>o push --force", "env a-b=c rm -rf /",
    "env 'BASH_FUNC_ls%%=() { x; }' bash -c ls", "sudo a.b=c x", "jobs -x rm -rf /", "linux32 x", "csh -c 'x'", "echo x | bash -c python3",
    "bash -c python3 <<< x", "make 'X!=x'", "make 'X:=$(shell x)'", "sqlite3 d '.sh x'", "sqlite3 d '.read |x'", "psql -c '\\o |x'",
    "{ echo drop; echo database d; } | mysql", "psql < drop.sql", "cat drop.sql | sqlite3 d", "sudo psql d 0< drop.sql",
    "TAR_OPTIONS=--to-command=x tar xf a", "git remote-ext 'x'", "git for-each-repo --config=a x",
]  # fmt: skip
WRITES = [
    "echo x > main.py", "echo x &> main.py", "echo x 2>> main.py", "cat x | git diff --output=y", "git log --out=y",
    "sort -o x y", "sort $x y", "sed -i s/a/b/ x", "sed -n 'w x' y", "find . -fprint x", "tar xf a --to-command=x",
    "git status; rm x", "echo $(rm x)", "env rm x", "{ echo x; } > main.py", "tree $(echo -o x)", "tree -R -L 1 -H .", "curl -K x", "echo x | tee y", "sh -c 'rm x'",
]  # fmt: skip


def answer(command: str, *allow: str) -> str:
    tool = BashTool(Path("/tmp"), isolation=Isolation("bubblewrap", network=False))
    return Policy(PolicyRules(allow=allow)).verdict(tool, {"command": command}).answer


@each((rule, command) for rule in ("Bash", "Bash(*)") for command in EVASIONS)
def test_an_evasion_is_blocked_or_asked_about_whatever_is_allowed(rule: str, command: str) -> None:
    assert answer(command, rule) in {"ask", "deny"}


@each(WRITES)
def test_a_rule_about_programs_that_read_allows_no_file_to_be_written(command: str) -> None:
    rules = ("echo*", "cat*", "git *", "sort*", "sed*", "find*", "tar*", "env*", "tree*", "curl*")
    assert answer(command, *(f"Bash({rule})" for rule in rules)) in {"ask", "deny"}

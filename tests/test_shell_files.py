"""The man page and the completions hold the command line as it is, in a form that man and the shells accept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.command_line import commands
from tools.shell_files import PLACES, completions, man_page, write


def test_the_man_page_has_every_command_and_argument() -> None:
    page = man_page("1.2.3")
    for command in commands():
        assert not command.name or f"\n.SS {command.name.replace('-', chr(92) + '-')}\n" in page
        for argument in command.arguments:
            assert f".B {argument.written.replace('-', chr(92) + '-')}\n" in page


def test_a_build_without_our_dependencies_makes_the_man_page() -> None:
    root = Path(__file__).parents[1]
    script = (
        f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'core')!r}]; "
        "from tools import shell_files; print(shell_files.man_page('1.2.3'), end='')"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == man_page("1.2.3")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_formats_the_man_page_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Kutf8", "-Tutf8"],
        input=man_page("1.2.3"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "run LLM tasks as declarative plans" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_a_script_of_their_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / shell
    script.write_text(completions(shell))
    subprocess.run([shell, "-n", str(script)], check=True)


def test_bash_completes_commands_their_options_and_the_values_of_these(tmp_path: Path) -> None:
    script = tmp_path / "aeon-tui"
    script.write_text(completions("bash"))
    ask = (
        'source "$0"; function=$(complete -p aeon-tui | sed -E "s/.*-F ([^ ]+).*/\\1/"); '
        'complete_at() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); $function; '
        'echo "${COMPREPLY[@]}"; }; '
        "complete_at aeon-tui re; complete_at aeon-tui run --ju; complete_at aeon-tui run --durability ''; "
        "complete_at aeon-tui run --approve ''; aeon-tui() { echo $1 Plan RunResult; }; complete_at aeon-tui schema Ru"
    )
    done = subprocess.run(["bash", "-c", ask, str(script)], capture_output=True, text=True, check=True)
    first, second, third, *others = done.stdout.splitlines()
    assert sorted(first.split()) == ["replay", "resume"]
    assert sorted(second.split()) == ["--judge-model", "--judge-votes"]
    assert third.split() == ["full", "normal", "off"]
    assert others == ["plan pass tool none", "RunResult"]


def test_each_file_has_its_place_below_the_prefix(tmp_path: Path) -> None:
    written = write(tmp_path, "1.2.3")
    assert sorted(written.values()) == sorted(PLACES.values())
    assert all(Path(path).stat().st_size for path in written)

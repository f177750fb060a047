from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aeon_core.errors import UsageError
from aeon_themes import AEON_DARK, AEON_HIGH_CONTRAST, AEON_LIGHT
from aeon_themes.files import MAX_BYTES, hard_to_read, load_themes, read_theme
from aeon_themes.folders import theme_files, theme_folders
from aeon_themes.palette import COLOURS
from tests.test_architecture import loaded_by


def theme(folder: Path, text: str, name: str = "dusk") -> Path:
    path = folder / f"{name}.yml"
    path.write_text(text)
    return path


def test_missing_colours_come_from_the_extended_theme(tmp_path: Path) -> None:
    path = theme(tmp_path, "extends: aeon-high-contrast\ncolours:\n  failed: '#FFF'\n  score_good: '#00ff7F'\n")
    assert read_theme(path) == replace(AEON_HIGH_CONTRAST, name="dusk", failed="#ffffff", score_good="#00ff7f")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: paper\n", replace(AEON_DARK, name="paper")),
        ("dark: true\n", replace(AEON_DARK, name="dusk")),
        ("dark: false\n", replace(AEON_LIGHT, name="dusk")),
        ("extends: aeon-light\n", replace(AEON_LIGHT, name="dusk")),
        ("extends: aeon-light\ndark: true\n", replace(AEON_LIGHT, name="dusk", dark=True)),
    ],
)
def test_the_name_and_the_base_have_defaults(tmp_path: Path, text: str, expected: object) -> None:
    assert read_theme(theme(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must hold keys and values, such as `name: dusk`"),
        ("- a\n", "must hold keys and values, such as `name: dusk`"),
        ("colours: [\n", "line 2 is not valid YAML: did not find expected node content"),
        ("a: " + "[" * 5000, "nested deeper than 100 levels"),
        ("a: \x00", "is not valid YAML"),
        ("a" * (MAX_BYTES + 1), f"is larger than {MAX_BYTES:,} bytes"),
        ("name: 3\n", "'name' is 3, expected letters, digits, - and _"),
        ("name: a b\n", "'name' is 'a b', expected letters"),
        ("name: aeon-dark\n", "other than the name of a built-in theme"),
        ("dark: 1\n", "'dark' is 1, expected true or false"),
        ("extends: aeon-drak\n", "'extends' is 'aeon-drak', expected one of aeon-dark, aeon-light"),
        ("colour: {}\n", "'colour' is unknown; did you mean 'colours'?"),
        ("failed: '#fff'\n", "'failed' belongs under 'colours'"),
        ("1: 2\n", "line 1: expected a text key, got '1'"),
        ("colours: [1]\n", "'colours' is a list, expected names of colours"),
        ("colours: {faild: '#fff'}\n", "unknown colour 'faild'; did you mean 'failed'?"),
        ("colours: {failed: red}\n", "the colour 'failed' is 'red'; expected a colour in quotes, such as '#1b2230'"),
        ("colours: {failed: '#ffff'}\n", "the colour 'failed' is '#ffff'; expected a colour"),
        ("colours: {failed: 123456}\n", "the colour 'failed' is 123456; expected a colour"),
        ("colours:\n  failed: #ff0000\n", "the colour 'failed' is empty (an unquoted # begins a comment)"),
        ("colours: {failed: &a [*a]}\n", "line 1: anchors and aliases are not supported"),
    ],
)
def test_a_bad_file_is_one_line_with_the_file_and_the_key(tmp_path: Path, text: str, problem: str) -> None:
    path = theme(tmp_path, text)
    with pytest.raises(UsageError) as error:
        read_theme(path)
    assert error.value.message.startswith(f"the theme file {str(path)!r}")
    assert problem in error.value.message
    assert "\n" not in error.value.message


@given(st.dictionaries(st.sampled_from(COLOURS), st.from_regex(r"#[0-9a-f]{6}", fullmatch=True)))
def test_every_colour_that_is_given_is_taken(tmp_path_factory: pytest.TempPathFactory, colours: dict[str, str]) -> None:
    lines = "".join(f"  {name}: '{color}'\n" for name, color in colours.items())
    path = theme(tmp_path_factory.mktemp("themes"), f"colours:\n{lines}" if lines else "colours: {}\n")
    assert read_theme(path) == replace(AEON_DARK, name="dusk", **colours)


def test_bad_files_are_left_out_and_the_project_s_theme_counts(tmp_path: Path) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    user.mkdir()
    project.mkdir()
    theme(user, "colours: {text: '#ffffff'}\n")
    theme(user, "colours: {text: '#333333'}\n", "night")
    theme(user, "dark: 3\n", "bad")
    theme(project, "colours: {text: '#fefefe'}\n")
    loaded = load_themes(theme_files([user, tmp_path / "none", project]))
    assert {palette.name: palette.text for palette in loaded.palettes} == {"dusk": "#fefefe", "night": "#333333"}
    assert [problem.partition(": ")[2] for problem in loaded.problems] == ["'dark' is 3, expected true or false"]
    (warning,) = loaded.warnings
    assert warning.startswith("the theme 'night' is hard to read: 'text' on 'cursor' has a contrast of 1.")
    assert warning.endswith("text needs 4.5:1 (and 4 more such pairs)")


def test_a_readable_theme_causes_no_warning() -> None:
    assert hard_to_read(AEON_LIGHT) is None


def test_only_files_are_read(tmp_path: Path) -> None:
    theme(tmp_path, "dark: true\n", "b")
    theme(tmp_path, "dark: true\n", "a")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder.yml").mkdir()
    os.mkfifo(tmp_path / "pipe.yml")
    assert [path.name for path in theme_files([tmp_path])] == ["a.yml", "b.yml"]


def test_themes_are_searched_next_to_the_configuration(tmp_path: Path) -> None:
    folders = theme_folders(tmp_path, {"XDG_CONFIG_HOME": "/etc/xdg"})
    assert folders == (Path("/etc/xdg/aeon/themes"), tmp_path / ".aeon" / "themes")
    assert theme_folders(tmp_path, {"HOME": "/home/ann"})[0] == Path("/home/ann/.config/aeon/themes")


def test_themes_are_read_without_a_screen() -> None:
    assert not loaded_by("import aeon_themes, aeon_themes.files") & {"textual", "rich"}

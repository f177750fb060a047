"""Keys of a person's own, and that every action has what help, palette and rebinding need."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.screen import Screen

from aeon_core.config.keys import AppSettings
from aeon_tui.app import AeonApp
from aeon_tui.keymap import (
    CheckedKeys,
    checked_keys,
    clash,
    contexts,
    kinds,
    known_keys,
    own_keys,
    title_of,
    why_no_key,
)
from aeon_tui.screens.keys import KeyColumns
from tests.aeon_tui.key_table import key_table


def own_bindings() -> list[tuple[str, Binding]]:
    """Return every binding that a class of ours declares."""
    return [
        (kind.__name__, binding)
        for kind in kinds()
        for binding in Binding.make_bindings(vars(kind).get("BINDINGS", ()))
    ]


def test_every_binding_has_an_id_and_a_short_description() -> None:
    found = own_bindings()
    assert len(found) > 100
    assert [(kind, each.key) for kind, each in found if not each.id or each.id.count(".") != 1] == []
    assert [
        (kind, each.key, each.description) for kind, each in found if not 1 <= len(each.description.split()) <= 5
    ] == []


def test_an_id_belongs_to_one_action_everywhere() -> None:
    apart: dict[tuple[str, str], set[str]] = {}
    for title, bindings in contexts():
        for each in bindings:
            apart.setdefault((title, str(each.id)), set()).add(each.action)
    assert {place: actions for place, actions in apart.items() if len(actions) > 1 and "lines." not in place[1]} == {}


@pytest.mark.parametrize("first", ["aeon_tui.screens.workflow.screen", "aeon_tui.screens.run.screen"])
def test_an_action_belongs_to_the_same_place_whichever_screen_is_loaded_first(first: str) -> None:
    loads = f"import {first}, aeon_tui.app, aeon_tui.keymap as keymap"
    code = f"{loads}\nfor name, known in keymap.known_keys().items(): print(name, known.title)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    places = dict(line.split(" ", 1) for line in printed.splitlines())
    assert places == {name: action.title for name, action in known_keys().items()}
    assert (places["workflow.resume"], places["run.zoom"], places["field.next"]) == ("Workflow", "Run", "Field")


def test_the_list_of_keys_begins_with_those_of_the_first_screen() -> None:
    assert [title for title, _ in contexts()][:3] == ["Everywhere", "Runs", "Compare"]


def test_a_key_has_one_meaning_everywhere() -> None:
    found: dict[str, set[str]] = {}
    for action, known in known_keys().items():
        for key in known.keys:
            found.setdefault(key, set()).add(action)
    table = key_table()
    assert found.keys() ^ table.keys() == set(), "say in key_table.py what each of these keys means"
    for key, actions in found.items():
        ids = table[key].ids
        assert {each for each in actions if not any(fnmatch(each, of) for of in ids)} == set(), key
        assert {each for each in ids if not any(fnmatch(action, each) for action in actions)} == set(), key


def test_an_action_may_keep_a_key_that_it_shares_by_default() -> None:
    assert checked_keys({"confirm.next": "down"}) == CheckedKeys({"confirm.next": "down"})


def test_configured_keys_do_not_clash_in_one_place() -> None:
    known = known_keys()
    assert known["run.zoom"].keys == ("z",)
    assert known["run.zoom"].title == "Run"
    assert own_keys()["lines.down"] == "down,j"


def test_wanted_keys_are_written_as_textual_does() -> None:
    checked = checked_keys({"run.zoom": "Z", "run.follow": "ctrl+f, ?".replace("?", "f9"), "app.keys": "F1".lower()})
    assert checked.problems == ()
    assert checked.keymap == {"run.zoom": "Z", "run.follow": "ctrl+f,f9", "app.keys": "f1"}
    assert checked_keys({"browser.filter": "+"}).keymap == {"browser.filter": "plus"}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"run.zom": "Z"}, "keys: the action 'run.zom' is unknown; did you mean 'run.zoom'?"),
        ({"run.zoom": "pgedown"}, "keys: 'pgedown' for 'run.zoom' is not a key; did you mean 'pagedown'?"),
        ({"run.zoom": "ctl+z"}, "keys: 'ctl+z' for 'run.zoom' is not a key; write it as Z, f5 or ctrl+d"),
        ({"run.zoom": "f"}, "keys: 'run.zoom' uses 'f', which belongs to 'run.follow'; give that action another key"),
        ({"run.zoom": "q"}, "keys: 'run.zoom' uses 'q', which belongs to 'app.quit'; give that action another key"),
        (
            {"app.new_run": "z"},
            "keys: 'app.new_run' uses 'z', which belongs to 'run.zoom'; give that action another key",
        ),
        ({"run.zoom": "ctrl+c"}, "keys: 'ctrl+c' is reserved for quitting; choose another key"),
    ],
)
def test_bad_keys_are_reported_in_one_line_and_ignored(keys: dict[str, str], problem: str) -> None:
    checked = checked_keys(keys)
    assert (dict(checked.keymap), checked.problems) == ({}, (problem,))


def test_two_actions_can_swap_their_keys() -> None:
    wanted = {"run.zoom": "f", "run.follow": "z"}
    assert checked_keys(wanted) == checked_keys(dict(reversed(wanted.items())))
    assert checked_keys(wanted).problems == ()


def test_a_key_is_not_given_away_by_an_action_that_gets_no_other() -> None:
    checked = checked_keys({"run.zoom": "?", "app.keys": "q"})
    assert checked.keymap == {}
    assert [problem.partition(";")[0] for problem in checked.problems] == [
        "keys: 'app.keys' uses 'q', which belongs to 'app.quit'",
        "keys: 'run.zoom' uses 'question_mark', which belongs to 'app.keys'",
    ]


def test_the_same_key_may_mean_other_things_in_other_places() -> None:
    assert clash("approval.replay", "m", own_keys()) is None
    assert clash("run.follow", "z", own_keys()) == ("z", "run.zoom")


def test_every_default_key_could_be_configured() -> None:
    keys = [(each.id, key) for each in known_keys().values() for key in each.keys]
    assert [
        (action, key) for action, key in keys if key not in ("escape", "ctrl+q", "ctrl+c") and why_no_key(key)
    ] == []


async def test_a_configured_key_works_and_is_shown_in_footer_and_help() -> None:
    app = AeonApp(Path("runs"))
    app.apply_settings(AppSettings(keys={"app.keys": "f9"}))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "question_mark" not in app.screen.active_bindings
        await pilot.press("f9")
        await pilot.pause()
        assert app.screen.query_one(KeyColumns).text.count("f9") == 1


async def test_a_wrong_key_is_reported_and_the_others_are_used() -> None:
    app = AeonApp(Path("runs"))
    app.apply_settings(AppSettings(keys={"app.keys": "f9", "app.kess": "x"}))
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [each.message for each in app._notifications] == [
            "keys: the action 'app.kess' is unknown; did you mean 'app.keys'?"
        ]
        assert "f9" in app.screen.active_bindings


def test_every_bound_action_exists() -> None:
    missing = []
    for kind in filter(title_of, kinds()):
        for binding in Binding.make_bindings(vars(kind).get("BINDINGS", ())):
            name = binding.action.partition("(")[0]
            owner = {"app": AeonApp, "screen": Screen}.get(name.partition(".")[0], kind)
            action = name.rpartition(".")[2]
            if not any(hasattr(owner, f"{prefix}action_{action}") for prefix in ("", "_")):
                missing.append((kind.__name__, binding.action))
    assert missing == []

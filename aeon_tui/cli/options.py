"""What the options of a command yield: configuration, runs directory, tools, model."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.keys import KEYS
from aeon_core.config.loading import LoadedConfig, LoadedValues, load_config, load_values
from aeon_core.config.trust import ProjectTrust, TrustMode, TrustRequired, refusal
from aeon_core.errors import AeonError, UsageError
from aeon_core.paths import default_runs_directory, expanded
from aeon_tui.cli.output import stderr
from aeon_tui.cli.trust import ask_for
from aeon_tui.platform.stdio_capture import capture_stdio

if TYPE_CHECKING:
    from aeon_core.config.schema import RunConfig
    from aeon_tui.app import AeonApp

_REQUIRING = frozenset({"run", "batch", "resume", "fork"})
"""Commands that need consent to what a project asks for; others leave it out and report that."""
_SILENT = frozenset({None, "config", "demo", "doctor", *_REQUIRING})
"""Commands that report it themselves, or use none of it."""


def load(args: Namespace) -> LoadedConfig:
    """Return the configuration of all layers, the command's options last. Raises UsageError."""
    options, file, mode = _options(args), _config_file(args), trust_mode(args)
    try:
        loaded = load_config(options, config_file=file, trust=mode)
    except TrustRequired as error:
        ask_for(args, error)
        loaded = load_config(options, config_file=file, trust=mode)
    _report_ignored(args, loaded)
    return loaded


def check_served(config: RunConfig, named: Iterable[str]) -> None:
    """Raise UsageError if no session could use a configured model, file or tool, rather than at the first task.

    Tools of the project and MCP servers are loaded only if they are `named` on the command line.
    """
    from aeon_core.runs.factory import inspect_tools
    from aeon_tui.sessions.run_jobs import checked_model

    for model in (*config.models, *filter(None, [config.judge_model])):
        checked_model(model)
    check_files(config)
    with capture_stdio():
        inspect_tools(config, named)[0].close()


def check_files(config: RunConfig) -> None:
    """Raise UsageError if the criteria or the requirements cannot be read."""
    from aeon_core.convergence import load_criteria
    from aeon_core.plan.files import load_requirements

    if config.criteria is not None:
        load_criteria(config.criteria)
    if config.requirements is not None:
        load_requirements(config.requirements)


def trust_mode(args: Namespace) -> TrustMode:
    """Return how to treat the project's settings that need consent."""
    if getattr(args, "trust_project", False):
        return "apply"
    command = getattr(args, "command", None)
    if command == "demo":
        return "never"
    return "require" if command in _REQUIRING and "asked_for_trust" not in args else "ignore"


def _report_ignored(args: Namespace, loaded: LoadedConfig | LoadedValues) -> None:
    """Report once on stderr which project settings do not apply to a command that works without them."""
    if (
        loaded.ignored
        and "reported_ignored" not in args
        and "declined_trust" not in args
        and getattr(args, "command", None) not in _SILENT
    ):
        args.reported_ignored = True
        stderr().line(
            ("note: ", "yellow"),
            f"ignoring this untrusted project's {', '.join(loaded.ignored)}; "
            "to see what it asks for, run `aeon-tui trust`",
        )


def ask_for_trust(args: Namespace) -> None:
    """Ask on the screen for the consent that a command in the app needs, before it reads anything that needs it.

    From then on the app asks if it needs more. Raises AeonError if the user leaves without an answer.
    """
    required = trust_mode(args) == "require"
    args.asked_for_trust = True
    if not required:
        return
    options = _options(args)
    loaded = load_values(options, config_file=_config_file(args), trust="ignore")
    given_names = {key for key, value in options.items() if value is not None}
    if refusal(loaded.trust, given_names) is not None:
        prompt_for_trust(loaded.trust, args, loaded)


def prompt_for_trust(trust: ProjectTrust, args: Namespace, loaded: LoadedValues) -> None:
    """Ask on the screen for one consent, and save it. Raises AeonError if the user leaves without an answer."""
    from aeon_core.config.trust import grant_trust
    from aeon_tui.app import run_app
    from aeon_tui.screens.trust import TrustGate

    gate = TrustGate(trust)

    def prepare(app: AeonApp) -> None:
        app.apply_settings(loaded.app)
        app.first_screen = gate

    run_app(runs_dir_of(loaded), prepare=prepare)
    if gate.answer is None:
        raise AeonError("nothing was run: you did not decide whether to trust this folder")
    if gate.answer == "trust":
        grant_trust(trust)
    else:
        args.declined_trust, args.reported_ignored = trust, True


def without_trust(args: Namespace) -> Callable[[AeonApp], None] | None:
    """Return a notice for the app if the user continues without trusting the folder, else None."""
    declined = getattr(args, "declined_trust", None)
    return (lambda app: app.actions.continue_without(declined)) if declined is not None else None


def runs_dir(args: Namespace) -> Path:
    """Return the runs directory of the options and the configuration. Raises UsageError."""
    return runs_dir_of(load_light(args))


def load_light(args: Namespace) -> LoadedValues:
    """Return the values of all layers without validating them as a whole, which loads much. Raises UsageError."""
    # The runs directory is needed before a command asks for consent.
    mode = trust_mode(args)
    mode = "ignore" if mode == "require" else mode
    loaded = load_values(_options(args), config_file=_config_file(args), trust=mode)
    _report_ignored(args, loaded)
    return loaded


def runs_dir_of(loaded: LoadedValues) -> Path:
    """Return the runs directory of these values."""
    values = loaded.values
    return values["runs_dir"] if "runs_dir" in values else default_runs_directory(values["project_root"])


def _options(args: Namespace) -> dict[str, Any]:
    given = {key: getattr(args, key, None) for key in KEYS}
    if (rules := getattr(args, "allow", None)) is not None:
        given["policy"] = {"allow": [_rule(rule) for rule in rules]}
    return given


def _rule(rule: str) -> str:
    from pydantic import ValidationError

    from aeon_core.policy import PolicyRules

    try:
        PolicyRules.model_validate({"allow": [rule]})
    except ValidationError:
        form = "TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB)"
        raise UsageError(f"--allow {rule!r} is not a rule; write {form}, such as 'Bash(git status*)'") from None
    return rule


def _config_file(args: Namespace) -> Path | None:
    return expanded(args.config, "the option --config") if args.config is not None else None


@contextlib.contextmanager
def given_file(given: str, what: str) -> Iterator[Path]:
    """Yield the named file, or for `-` one with as much of standard input as a plan may have; `what` names it."""
    if given != "-":
        yield expanded(given, what)
        return
    if sys.stdin is None:
        raise UsageError(f"standard input is closed; name a file for {what}")
    from aeon_core.plan.files import MAX_BYTES

    with tempfile.TemporaryDirectory(prefix="aeon-") as folder:
        file = Path(folder) / "standard input"
        file.write_bytes(sys.stdin.buffer.read(MAX_BYTES + 1))
        try:
            yield file
        except AeonError as error:
            error.message = error.message.replace(repr(str(file)), "standard input")
            raise


def file_options(args: Namespace) -> list[str]:
    """Return the options that name the project, the runs and the configuration, for another process."""
    given: list[str] = []
    for name in ("project_root", "runs_dir", "config"):
        if (value := getattr(args, name)) is not None:
            option = f"--{name.replace('_', '-')}"
            given += [option, str(expanded(value, f"the option {option}").absolute())]
    return given


def whole_number(text: str | None, option: str, most: int | None = None) -> int | None:
    """Return the number of an option, from 1 to `most`; None if it is not given. Raises UsageError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= (most or int(text)):
        wanted = f" from 1 to {most}" if most is not None else ", 1 or more"
        raise UsageError(f"{option} must be a whole number{wanted}; got {text[:40]!r}")
    return int(text)

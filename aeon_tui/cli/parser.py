"""The commands and their options. `--help` imports only argparse; a command adds its options when it is used."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


MAX_WIDTH = 100
"""The most columns of a help text; in a pipe it has as many."""


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, and suggests the nearest name for a misspelt one."""

    def __init__(self, fill: Callable[[Parser], None] | None = None, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=_width()),
            **options,
        )
        self._fill = fill

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._fill is not None:
            self._fill(self)
            _common(self)
            self._fill = None
        if self._subparsers is not None and args:
            self._check_leading(args)
        parsed, rest = super().parse_known_args(args, namespace)
        if not any(word.startswith("-") for word in rest):
            # argparse takes these for superfluous, since an option came between.
            for action in self._get_positional_actions():
                if rest and action.nargs == "+":
                    getattr(parsed, action.dest).extend(rest)
                    rest = []
                elif rest and action.nargs == "?" and getattr(parsed, action.dest) is None:
                    setattr(parsed, action.dest, rest.pop(0))
        if rest:
            from aeon_core.config.keys import KEYS, MAPPINGS, OPTIONS
            from aeon_core.suggest import unknown_argument

            takes_task = any(action.dest == "task" for action in self._get_positional_actions())
            settings = set(KEYS).difference(OPTIONS, MAPPINGS)
            known = self._option_string_actions
            self.error(unknown_argument(rest[0], known, takes_task=takes_task, settings=settings))
        return parsed, rest

    def _check_leading(self, args: list[str]) -> None:
        """Refuse an option of a command that comes before it: argparse would take its value for the command."""
        words = iter(args)
        for word in words:
            name, given, _ = word.partition("=")
            if not name.startswith("-"):
                return
            action = self._option_string_actions.get(name)
            if action is None:
                if (command := next((word for word in words if word in _COMMANDS), None)) is not None:
                    self.error(f"write {name!r} after the command: {self.prog} {command} {name} …")
                from aeon_core.suggest import unknown_argument

                self.error(unknown_argument(name, self._option_string_actions))
            if action.nargs is None and not given:
                next(words, None)

    def error(self, message: str) -> NoReturn:
        from aeon_core.errors import UsageError

        see = f"see `{self.prog} --help`"
        raise UsageError(f"{message} S{see[1:]}" if message.endswith("?") else f"{message}; {see}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or the version. A reader that has gone is no error; unlike for argparse, a full disk is."""
        try:
            print(message, end="", file=file)
        except BrokenPipeError:
            pass
        except OSError as error:
            from aeon_core.errors import AeonError

            raise AeonError(f"cannot write the output: {error.strerror}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from aeon_core.suggest import did_you_mean

            choices = list(map(str, action.choices))
            near = did_you_mean(str(value), choices)
            if not isinstance(action, argparse._SubParsersAction):
                name = action.option_strings[-1] if action.option_strings else f"the {action.dest}"
                self.error(f"{name} must be one of {', '.join(choices)}; got {value!r}{near}")
            if not near or " " in value:
                near = f"; to run a task: {self.prog} run {_as_task(str(value))}"
            self.error(f"unknown command {value!r}{near}")


def _width() -> int:
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        columns = 0
    # A terminal that does not know its width reports 0.
    return min(MAX_WIDTH, columns - 2) if columns else MAX_WIDTH


class Version(argparse.Action):
    """Prints the version and exits."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from aeon_core.installation import versions

        parser._print_message(f"aeon-tui {versions()['aeon']}\n", sys.stdout)
        parser.exit()


def _as_task(text: str) -> str:
    import shlex

    return shlex.quote(text) if " " in text else f"'{text} …'" if text.isalnum() else "'…'"


RUN = "a run id or a unique prefix of one, a path to a journal, or 'last'"
_JSON_RESULT = "run without the app and print only the RunResult, as JSON"


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; its result has `module`, the command's module, with a function if that is not `execute`.

    If the arguments start with a `command`, other commands are left out.
    """
    parser = Parser(
        prog="aeon-tui",
        description="Run LLM tasks as plans: watch, steer and explain every run. Without a command, open the app.",
        epilog=f"RUN is {RUN}.",
    )
    parser.add_argument("--version", action=Version)
    parser.set_defaults(module="main:open_app", command=None)
    _common(parser, None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name in [command] if command in _COMMANDS else _COMMANDS:
        module, summary, fill = _COMMANDS[name]
        description = f"{summary[0].upper()}{summary[1:]}."
        made = commands.add_parser(name, help=summary, description=description, epilog=_EPILOGS.get(name), fill=fill)
        made.set_defaults(module=module, command=name)
    return parser


def _add(to: argparse._ActionsContainer, form: str, text: str, *, dest: str = "", **options: Any) -> None:
    """Add an argument as help shows it: `-o, --output FILE`, `--json`, `RUN`, `[TASK]`, `PLAN…`.

    An option without a value and `choices` is a flag.
    """
    if not form.startswith("-"):
        value = form.strip("[]…")
        many: dict[str, Any] = {"nargs": "?"} if form.startswith("[") else {"nargs": "+"} if form.endswith("…") else {}
        to.add_argument(dest or value.lower(), metavar=value, help=text, **many, **options)
        return
    words = form.replace(",", "").split()
    names = [word for word in words if word.startswith("-")]
    if len(names) < len(words):
        options["metavar"] = words[-1]
    elif "choices" in options:
        options["metavar"] = "|".join(options["choices"])
    else:
        options["action"] = "store_true"
    if dest:
        options["dest"] = dest
    to.add_argument(*names, help=text, **options)


def _common(parser: Parser, default: Any = argparse.SUPPRESS) -> None:
    """Add the options of every command, except those that it defines itself."""
    for form, text in (
        ("--project-root DIR", "project folder (default: the nearest parent with .aeon or .git)"),
        ("--runs-dir DIR", "folder for run journals"),
        ("--config FILE", "an additional YAML config file, read last"),
        ("--debug", "show tracebacks and diagnostics"),
    ):
        if form.partition(" ")[0] not in parser._option_string_actions:
            _add(parser, form, text, default=default)


def _settings(parser: Parser, *keys: str, **helps: str) -> None:
    """Add the options of these configuration keys, with their own help unless another is given."""
    from aeon_core.config.keys import CONFIG_KEYS

    for key in dict.fromkeys((*keys, *helps)):
        option = CONFIG_KEYS[key].option
        if option is None:
            raise ValueError(f"{key!r} has no option")
        kind: dict[str, Any] = {"metavar": option.metavar}
        if option.metavar is None:
            kind = {"action": "store_true", "default": None}
        elif option.repeatable:
            kind["action"] = "append"
        names = [f"-{option.short}"] if option.short else []
        names.append(f"--{option.name or key.replace('_', '-')}")
        parser.add_argument(*names, help=helps.get(key, option.help), **kind)


def _options(parser: Parser, **helps: str) -> None:
    """Add the options of a run's configuration, with their own help unless another is given."""
    from aeon_core.config.keys import OPTIONS

    _settings(parser, *OPTIONS, **helps)
    _trust_project(parser)


def _trust_project(parser: Parser) -> None:
    text = "trust this project's files for this command only: they can run code, redirect requests or widen access"
    _add(parser, "--trust-project", text)


def _json(parser: Parser, text: str = "print JSON") -> None:
    _add(parser, "--json", text)


def _run_id(parser: Parser) -> None:
    _add(parser, "RUN", RUN)


def _where(parser: Parser, *, json: bool = True) -> None:
    """Add the options for the display of a run."""
    text = "run without the app (the default without a terminal): progress on stderr, result on stdout"
    _add(parser, "--headless", text)
    if json:
        _json(parser, _JSON_RESULT)
    form = parser.add_mutually_exclusive_group()
    _add(form, "-q, --quiet", "without the app: print only the answer and errors")
    _add(form, "-v, --verbose", "without the app: also print cycle counts, model and tool calls")


def _run(parser: Parser) -> None:
    _add(parser, "[TASK]", "the task; '-' reads standard input")
    _new_run(parser)


def _demo(parser: Parser) -> None:
    _new_run(parser, model="model to use instead of the simulated one")


def _new_run(parser: Parser, **helps: str) -> None:
    _where(parser)
    _add(parser, "--plan FILE", "run this plan (JSON or YAML) instead of generating one")
    _options(parser, **helps)


def _with_default(key: str, default: str) -> dict[str, str]:
    """Return the help of a key's option for a command with a default of its own."""
    return {key: f"{_without_defaults(key)[key]} (default: {default})"}


def _without_defaults(*keys: str) -> dict[str, str]:
    """Return the help of these keys' options for a continued run, whose own values are the defaults."""
    from aeon_core.config.keys import CONFIG_KEYS

    found = ((key, CONFIG_KEYS[key].option) for key in keys)
    return {key: option.help.partition(" (default: ")[0] for key, option in found if option is not None}


def _batch(parser: Parser) -> None:
    _add(parser, "TASKS", "JSONL file with one task per line; '-' reads standard input")
    _add(parser, "--headless", "has no effect: a batch always runs without the app")
    _json(parser, "print only the results, as a JSON list in the order of the tasks")
    _add(parser, "--jobs N", "number of parallel runs (default: one per core, or every thread of the cluster)")
    _add(
        parser, "--scheduler URL", "scheduler of a Dask cluster that shares the runs directory, such as tcp://HOST:8786"
    )
    _add(parser, "--name NAME", "prefix of the run ids (default: the file's name, or 'stdin')")
    _add(parser, "--plan FILE", "run this plan (JSON or YAML) for every task instead of generating one")
    _add(parser, "--retry-failed", "rerun tasks that ended without a usable result; the old journals are renamed")
    _options(parser, **_with_default("approve", "none"))


def _runs(parser: Parser) -> None:
    _json(parser)
    _add(parser, "--limit N", "list only the newest N")


def _delete(parser: Parser) -> None:
    _add(parser, "RUN…", RUN, dest="runs")
    _add(parser, "--yes", "delete without asking; each run must be named in full, or as 'last'")


def _config(parser: Parser) -> None:
    _add(parser, "get|set|path", "what to do", dest="action", choices=("get", "set", "path"))
    _add(parser, "[NAME]", "a setting, such as ttl or shell.timeout")
    _add(parser, "[VALUE]", "with set: the value; a list may have commas, a mapping is YAML")
    where = parser.add_mutually_exclusive_group()
    _add(where, "--user", "with set or path: your own file (the default of set)")
    _add(where, "--project", "with set or path: the project's .aeon/config.yml")
    _add(parser, "--unset", "with set: remove the setting from the file instead")
    _json(parser, "with get: print name, value and source as JSON")


def _show(parser: Parser) -> None:
    _run_id(parser)
    _json(parser, "print the ExecutionHistory as JSON")
    _add(parser, "--pass N", "show only this pass, counted from 1", dest="pass_number")
    _add(parser, "--export", "write a report: Markdown, a web page, or JSON", choices=("md", "html", "json"))
    _add(parser, "-o, --output FILE", "write to FILE instead of standard output")


def _replay(parser: Parser) -> None:
    _run_id(parser)
    _where(parser, json=False)
    form = parser.add_mutually_exclusive_group()
    _add(form, "--check", "exit 1 and print the first difference if Aeon now behaves differently from the recording")
    _add(form, "--json", _JSON_RESULT)
    _add(form, "--speed X", "playback speed in the app: 1 (default), 10, … or max; pauses are cut to 3 s")


def _resume(parser: Parser) -> None:
    from aeon_core.config.keys import OPTIONS

    _run_id(parser)
    _where(parser)
    same = ("model", "base_url", "judge_model", "tools", "approve", "wait")
    other = {
        **_without_defaults("model", "judge_model"),
        "ttl": "maximum number of cycles, including those already spent",
        "budget": "maximum cost of the run, including what is already spent",
        **_with_default("on_unknown", "fail; in the app: ask"),
        **_without_defaults("durability"),
    }
    _settings(parser, *same, **other)
    _trust_project(parser)
    # Reported in one line as fork's, rather than as unknown.
    _add(parser, "--plan PLAN", argparse.SUPPRESS)
    _settings(parser, **{key: argparse.SUPPRESS for key in OPTIONS if key not in (*same, *other)})


def _fork(parser: Parser) -> None:
    from aeon_core.config.keys import OPTIONS

    _run_id(parser)
    _where(parser)
    text = "required for a run: start where this pass started, with all earlier results"
    _add(parser, "--pass N", text, dest="pass_number")
    _add(parser, "--gate N", "required for a workflow: start at this gate and decide it again")
    _add(parser, "--feedback TEXT", "with --gate: reject there with this reason instead of being asked")
    plan = parser.add_mutually_exclusive_group()
    _add(plan, "--plan FILE", "start with this plan (JSON or YAML) instead of the pass's own")
    _add(plan, "--edit", "edit the pass's plan in $VISUAL or $EDITOR first")
    _options(parser, **_without_defaults(*(key for key in OPTIONS if key not in ("approve", "wait"))))


def _watch(parser: Parser) -> None:
    _add(parser, "[RUN]", f"{RUN}; it may not exist yet (default: the newest running run, else the newest)")
    _where(parser)


def _decide(parser: Parser) -> None:
    _run_id(parser)
    answers = ("approve", "edit", "reject", "replay", "accept", "abort")
    _add(parser, "[DECISION]", f"{', '.join(answers)} (default: print the question)", choices=answers)
    _add(parser, "--feedback TEXT", "the reason to reject, abort or accept; a rejected plan is refined with it")
    text = "answer an open question; repeat it for further questions, in the order asked"
    _add(parser, "--answer TEXT", text, action="append")
    text = "with edit: file with the plan or the call's arguments (JSON or YAML); '-' reads standard input"
    _add(parser, "--edited FILE", text)
    text = "decide only if the run still waits with this question; --json shows its number"
    _add(parser, "--seq N", text)
    _add(parser, "--digest SHA256", "decide only if the question still has this content; --json shows the digest")
    _json(parser, "print only the question or the decision, as JSON")


def _workflow(parser: Parser) -> None:
    _add(parser, "[TASK]", "the task; '-' reads standard input (default: the app asks)")
    _add(parser, "--resume RUN", "continue a workflow: its id, its journal or transcript, or 'last'")
    _settings(parser, model="model to use instead of Bedrock's, such as simulated:default")
    _settings(parser, "base_url")
    _add(parser, "--unsafe-bash", "run plain commands without asking, except blocked ones")
    _add(parser, "--auto-approve", "approve every gate whose work was produced, without asking")
    text = "what to do with the documents that an earlier workflow left in spec/ (default: ask)"
    _add(parser, "--spec", text, choices=("continue", "replace"))
    _add(parser, "--headless", "run without the app: questions and the log at the terminal")
    text = "with --headless and no terminal: seconds to wait for a decision from another terminal"
    _add(parser, "--wait SECONDS", text)
    _add(parser, "--log-format", "with --headless: format of the log (default: text)", choices=("text", "json"))
    _add(parser, "--log-file FILE", "with --headless: file for the log (default: stderr)")
    _add(parser, "-v, --verbose", "with --headless: log debugging details too")
    _trust_project(parser)
    _add(parser, "--project-root DIR", "project folder (default: the git root, then the working directory)")
    _add(parser, "--config FILE", "settings file (default: .system2/config.yml in the project)")


def _trust(parser: Parser) -> None:
    form = parser.add_mutually_exclusive_group()
    _add(form, "--show", "show what the project asks for, without asking you")
    _add(form, "--revoke", "stop trusting this project")
    _add(form, "--yes", "trust the project without being asked")
    _json(parser, "with --show: print only what the project asks for, as JSON")


def _list_tools(parser: Parser) -> None:
    _json(parser, "print JSON, as a model receives it")
    _settings(parser, "tools")


def _schema(parser: Parser) -> None:
    text = "plan-file, criteria-file, requirements-file, config-file, an entity or a journal record type"
    _add(parser, "[NAME]", text)


def _lint(parser: Parser) -> None:
    _add(parser, "PLAN…", "plan file (JSON or YAML); - reads standard input", dest="plan_files")
    _json(parser, "print the SemanticValidationReport as JSON; of several plans, a list of them")
    severities, text = ("low", "medium", "high"), "exit 1 at this severity or higher (default: high)"
    _add(parser, "--fail-on", text, choices=severities, default="high")
    _add(parser, "--judge", "also ask a model, and add what it finds")
    budget = "maximum cost of --judge; stop before a call that could exceed it"
    _settings(parser, "model", "base_url", "tools", budget=budget)


def _calibrate(parser: Parser) -> None:
    _add(parser, "[LABELS.jsonl]", "your own labelled outcomes", dest="labels")
    _add(parser, "--history", "compare past verdicts with your own labels instead, without calling a model")
    budget = "maximum cost; stop before a call that could exceed it"
    _settings(parser, "model", "base_url", "judge_model", "judge_votes", budget=budget)
    _add(parser, "--limit N", "judge only N outcomes, spread evenly")
    _add(parser, "--least X", "exit 5 if the agreement (0 to 1) is below X")
    _json(parser, "print only the figures and the disagreements, as JSON")


def _label(parser: Parser) -> None:
    _run_id(parser)
    _add(parser, "good|bad", "your verdict on the result", dest="verdict", choices=("good", "bad"))
    _add(parser, "--why TEXT", "the reason, recorded with the label")


def _serve(parser: Parser) -> None:
    _add(parser, "--host ADDRESS", "address to serve on (default: 127.0.0.1, this machine only)")
    _add(parser, "--port N", "port to serve on (default: 8000)")
    _add(parser, "--expose", "allow an address that other machines can reach; there is no authentication")


def _mcp_serve(parser: Parser) -> None:
    text = "serve on loopback instead of standard input and output (default port: 8765)"
    _add(parser, "--http PORT", text, nargs="?", const="8765")
    wait = "seconds to wait for a person's decision; then the run ends (default: 0, no limit)"
    _options(parser, wait=wait, **_with_default("approve", "tool"))


def _acp(parser: Parser) -> None:
    from aeon_core.config.keys import OPTIONS

    # The editor asks the person, however long that takes.
    _settings(parser, *(key for key in OPTIONS if key != "wait"), **_with_default("approve", "pass,tool"))
    _trust_project(parser)


def _doctor(parser: Parser) -> None:
    _settings(parser, "model", "base_url")


_EPILOGS = {
    "batch": (
        'Each line of TASKS is {"id": "a", "task": "the task"} plus any RunConfig fields. Each task is its own run, '
        "named after the batch and the id; call the command again to run or resume what is missing. Exit code: the "
        "highest of all runs, 0 if all succeeded; 2 if a line is invalid, before anything starts. Ctrl-C aborts the "
        "runs; press it again to kill them."
    ),
    "delete": "A run that is still running is not deleted, and neither are a run's forks.",
    "init": (
        "Creates .aeon/config.yml with every setting, .aeon/.gitignore to keep runs out of the repository, and the "
        "schemas that editors use, in .aeon/schemas. Existing files are kept."
    ),
    "config": (
        "get shows a setting and its source, or all of them without NAME; set changes one in your own file, or "
        "with --project in the project's, and keeps comments; path shows the files. Nested settings have dots: "
        "shell.timeout, policy.allow, mcp_servers.NAME.command."
    ),
    "replay": "In the app: space pauses, + and - change the speed, . shows the next record, End shows all of them.",
    "resume": "The plan, criteria, requirements and policy stay as they were; to change them, use `fork`.",
    "fork": (
        "A run needs --pass, a workflow --gate. Options that you leave out are taken from the original, which is not "
        "changed."
    ),
    "decide": (
        "Without DECISION, the question is printed in full. For a plan or a call: approve, edit, reject or abort. For "
        "a pass also: replay (run it again) or accept (end with this result). Exit code: 0 when the run has taken the "
        "decision, 1 if someone else decided first or the process ended, 2 if the run is not waiting, or for something "
        "else."
    ),
    "workflow": (
        "With --headless, this is the command system2. Exit code: 0 all gates approved and nothing left open, 1 "
        "aborted, failed or something left open, 2 bad arguments or nobody to decide at the gates, 3 no usable model "
        "or rejected credentials, 4 cost ceiling reached."
    ),
    "trust": (
        "You trust exactly what is shown. When the project's configuration or a file that it can run changes, you are"
        " asked again and see the difference. All worktrees of a repository share the decision. Exit code: 0 if there"
        " is nothing left to ask, 1 if the project is not trusted."
    ),
    "calibrate": (
        'LABELS.jsonl has one labelled outcome per line, at least {"id", "label": "good" or "bad", "goal", "answer"};'
        " without it, the labelled outcomes that ship with Aeon are used, in several languages. Exit code: 5 if the "
        "agreement is below --least, 3 without a usable model; after the verdicts so far are printed, 4 if the budget "
        "is used up, 1 if interrupted or if the judge keeps failing."
    ),
    "label": "The last label counts. `aeon-tui calibrate --history` shows how often the judge agreed with you.",
    "serve": "Each tab is its own app. Ctrl-C closes them all and aborts their runs.",
    "acp": (
        "An editor such as Zed, a JetBrains IDE or toad starts this command and talks to it over standard input and "
        "output. Each prompt is a run in the editor's folder."
    ),
    "mcp-serve": (
        "An MCP client such as Claude Desktop or VS Code starts this command. Its model runs tasks and reads runs; what"
        " needs approval waits for a person: in the client, in the app, or with `aeon-tui decide`."
    ),
}
_COMMANDS = {
    "run": ("run", "run a task in the app, or headless with --headless", _run),
    "demo": ("run", "take a guided tour with the built-in simulated model: no key, no network", _demo),
    "batch": ("batch", "run many tasks, in processes or on a Dask cluster", _batch),
    "watch": ("watch", "follow a run in another process, or wait for it to start", _watch),
    "decide": ("decide", "answer what a run is asking, from another terminal", _decide),
    "runs": ("runs", "list past and live runs", _runs),
    "show": ("show", "show the history of a run", _show),
    "replay": ("replay", "replay a run from its journal, without calling a model", _replay),
    "delete": ("runs:delete", "delete runs that have ended", _delete),
    "resume": ("resume", "continue a run after a crash or an abort, or with more cycles or budget", _resume),
    "fork": ("fork", "start a new run from a pass of another run", _fork),
    "workflow": ("workflow", "run a gated workflow of thirteen agents (--headless: system2)", _workflow),
    "init": ("init", "create a commented .aeon/config.yml, and keep runs out of git", lambda _: None),
    "config": ("config", "show or change settings", _config),
    "trust": ("trust", "show what this project's files ask for, and trust them", _trust),
    "tools": ("tools", "list the registered tools and their schemas", _list_tools),
    "schema": ("init:schemas", "print the JSON Schema of a file, an entity or a record, or list the names", _schema),
    "lint": ("lint", "check a plan file; with --judge, ask a model too", _lint),
    "calibrate": ("calibrate", "measure how well the judge agrees with labelled outcomes or with you", _calibrate),
    "label": ("runs:label", "record your verdict on a result", _label),
    "serve": ("serve", "serve the app to a browser on this machine", _serve),
    "acp": ("acp", "run as an agent in an editor, over the Agent Client Protocol", _acp),
    "mcp-serve": ("mcp_serve", "serve runs to other agents as MCP tools", _mcp_serve),
    "doctor": ("doctor", "show the configuration, what is missing, and which model would be used", _doctor),
}

"""The commands and their options. `--help` imports argparse alone; a command makes its options when it is used."""

from __future__ import annotations

import argparse

from aeon_tui.cli._argument_parser import Parser, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

APPROVE = (
    "what you are asked about: plan (before it runs), pass (when it has ended), tool (calls that need it), or none "
    "(default: none; app: pass,tool)"
)
WAIT = (
    "without the app, where no terminal can answer: how many seconds to wait for `aeon-tui decide` or `watch` "
    "where --approve asks; for a tool's call only with --approve tool (default: 0)"
)
RUN = "a run id, the unique beginning of one, a path to a journal, or 'last'"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; what it parses has `module`, the command's module in this package."""
    parser = Parser(
        prog="aeon-tui",
        description="Run a task as a plan: watched live, repaired, journaled. Without a command: the app.",
        epilog=f"RUN is {RUN}.",
    )
    parser.add_argument("--version", action=Version)
    parser.set_defaults(module="app", command=None)
    _common(parser, None)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, (module, summary, fill) in _COMMANDS.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        made = commands.add_parser(name, help=summary, description=description, fill=fill)
        made.set_defaults(module=module, command=name)
    return parser


def _common(parser: Parser, default: Any = argparse.SUPPRESS) -> None:
    def add(name: str, **options: Any) -> None:
        parser.add_argument(name, default=default, **options)

    add("--project-root", metavar="DIR", help="the project (default: the nearest folder with .aeon or .git)")
    add("--runs-dir", metavar="DIR", help="where runs live")
    add("--config", metavar="FILE", help="a further config file, YAML")
    add("--debug", action="store_true", help="show tracebacks and diagnostics")


def _tools(parser: Parser) -> None:
    text = "further tools: files, shell, mcp, or MODULE:ATTRIBUTE from the project root; may be repeated"
    parser.add_argument("--tools", metavar="SPEC", action="append", help=text)


def _trust_project(parser: Parser) -> None:
    text = (
        "let this project's files run code, redirect or widen access, for this call alone; `aeon-tui trust` shows how"
    )
    parser.add_argument("--trust-project", action="store_true", help=text)


def _json(parser: Parser, text: str = "as JSON") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _run(parser: Parser) -> None:
    parser.add_argument("task", nargs="?", metavar="TASK", help="what is to be done; '-' reads standard input")
    _demo(parser)


def _demo(parser: Parser) -> None:
    add = parser.add_argument
    add("--headless", action="store_true", help="without the app: progress on stderr, the result on stdout")
    _json(parser, "with --headless: the RunResult as JSON, alone on stdout")
    add("--plan", metavar="FILE", help="run this plan, JSON or YAML, instead of having one made")
    _options(parser)


def _options(parser: Parser) -> None:
    """Add the options of a run that its configuration takes."""
    add = parser.add_argument
    _model(parser)
    add("--ttl", metavar="N", help="the most cycles the run may use (default: 50)")
    add("--single-pass", action="store_true", default=None, help="one pass, without evaluation or refinement")
    add(
        "--criteria",
        metavar="FILE",
        help="criteria of convergence, YAML: completeness, coherence, consistency, additional",
    )
    add("--requirements", metavar="FILE", help="what a finished answer must satisfy, one a line, instead of inferred")
    _judge_model(parser)
    add("--judge-votes", metavar="1|3", help="verdicts of which the majority counts (default: 1)")
    add("--approve", metavar="WHAT[,WHAT]", help=APPROVE)
    add("--wait", metavar="SECONDS", help=WAIT)
    _tools(parser)
    text = "let a tool's calls happen without asking: TOOL or TOOL(GLOB), such as 'Bash(git status*)'; may be repeated"
    add("--allow", metavar="RULE", action="append", help=text)
    add("--budget", metavar="USD", help="what the run may cost; it stops before a call that might cost more")
    text = "fail, retry or ask: what becomes of an unsafe tool call that a crash has cut (default: fail)"
    add("--on-unknown", metavar="HOW", help=text)
    add("--durability", metavar="HOW", help="full, normal or off: how often the journal is synced (default: normal)")
    _trust_project(parser)
    _common(parser)


def _batch(parser: Parser) -> None:
    parser.epilog = (
        'A line of TASKS is {"id": "a", "task": "what is to be done"} and any fields of RunConfig. Each task is a run '
        "of its own, named after the batch and its id: a second call goes on with what is missing. Exit code: 0 where "
        "every run's is 0, else the highest among them; 2 where a line is bad, and then nothing has started. Ctrl-C "
        "aborts what is running, once more kills it."
    )
    add = parser.add_argument
    add("tasks", metavar="TASKS", help="a JSONL file, one task a line; '-' reads standard input")
    add("--headless", action="store_true", help="accepted, and always so: a batch has no screen")
    _json(parser, "a list of results in the order of the tasks, alone on stdout")
    add("--jobs", metavar="N", help="how many runs at once (default: a process a core; all threads of the cluster)")
    text = "the scheduler of a Dask cluster that shares the runs directory, such as tcp://HOST:8786"
    add("--scheduler", metavar="URL", help=text)
    add("--name", metavar="NAME", help="what the run ids begin with (default: the file's name; 'stdin')")
    text = "run anew what ended without a result to use; the old journals get other names"
    add("--retry-failed", action="store_true", help=text)
    _options(parser)


def _judge_model(parser: Parser) -> None:
    text = "another model that judges results and reviews plans (default: the model)"
    parser.add_argument("--judge-model", metavar="PROVIDER:NAME", help=text)


def _model(parser: Parser) -> None:
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="the model (else AEON_MODEL, else the config)")
    parser.add_argument("--base-url", metavar="URL", help="another server that speaks the provider's protocol")


def _runs(parser: Parser) -> None:
    _json(parser)
    _common(parser)


def _show(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    _json(parser, "the ExecutionHistory as JSON")
    add = parser.add_argument
    add("--pass", dest="pass_number", metavar="N", help="only what belongs to this pass, counted from 1")
    add("--export", choices=("md", "html", "json"), help="a report to hand on: Markdown, a web page, or --json's")
    add("-o", "--output", metavar="FILE", help="write to this file instead of standard output")
    _common(parser)


def _replay(parser: Parser) -> None:
    parser.epilog = "In the app: space pauses, + and - change the speed, . shows one more record, End all the rest."
    parser.add_argument("run", metavar="RUN", help=RUN)
    text = "without the app, as where there is no terminal: progress on stderr, result on stdout"
    parser.add_argument("--headless", action="store_true", help=text)
    form = parser.add_mutually_exclusive_group()
    text = "exit 1, with the first difference, where Aeon now does something else than what was recorded"
    form.add_argument("--check", action="store_true", help=text)
    form.add_argument("--json", action="store_true", help="without the app: the RunResult as JSON, alone on stdout")
    text = "in the app: 1 as it was (default), 10 ten times as fast, or max; a wait is at most 3 s at any speed"
    form.add_argument("--speed", metavar="X", help=text)
    _common(parser)


def _resume(parser: Parser) -> None:
    parser.epilog = "What a run began with, such as its plan, its criteria and its policy, stays; `fork` changes it."
    _headless(parser)
    add = parser.add_argument
    _model(parser)
    _judge_model(parser)
    add("--ttl", metavar="N", help="the most cycles the run may use, those that are spent included")
    add("--budget", metavar="USD", help="what the run may cost, what is spent included")
    text = (
        "fail, retry or ask: what becomes of an unsafe tool call that was begun and not ended (default: fail; app: ask)"
    )
    add("--on-unknown", metavar="HOW", help=text)
    add("--approve", metavar="WHAT[,WHAT]", help=APPROVE)
    add("--wait", metavar="SECONDS", help=WAIT)
    add("--durability", metavar="HOW", help="full, normal or off: how often the journal is synced")
    _tools(parser)
    _trust_project(parser)
    # Said in one line to be fork's, rather than to be unknown.
    for name in ("--plan", "--criteria", "--requirements", "--judge-votes"):
        add(name, help=argparse.SUPPRESS)
    add("--allow", action="append", help=argparse.SUPPRESS)
    add("--single-pass", action="store_true", default=None, help=argparse.SUPPRESS)
    _common(parser)


def _fork(parser: Parser) -> None:
    parser.epilog = "What is not said is as in the run that is forked; that one is left as it is."
    _headless(parser)
    add = parser.add_argument
    text = "start where this pass started, with all that was done before it"
    add("--pass", dest="pass_number", metavar="N", help=text)
    plan = parser.add_mutually_exclusive_group()
    plan.add_argument("--plan", metavar="FILE", help="the plan to start with, JSON or YAML, in place of that pass's")
    plan.add_argument("--edit", action="store_true", help="edit that pass's plan first, in $VISUAL or $EDITOR")
    _options(parser)


def _headless(parser: Parser) -> None:
    """Add RUN, and where what is done with it is shown."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    text = "without the app, as where there is no terminal: progress on stderr, result on stdout"
    parser.add_argument("--headless", action="store_true", help=text)
    _json(parser, "without the app: the RunResult as JSON, alone on stdout")


def _watch(parser: Parser) -> None:
    text = f"{RUN}; it need not be there yet (default: the newest that is running, else the newest)"
    parser.add_argument("run", nargs="?", metavar="RUN", help=text)
    parser.add_argument("--headless", action="store_true", help="without the app: progress on stderr, result on stdout")
    _json(parser, "with --headless: the RunResult as JSON, alone on stdout")
    _common(parser)


def _decide(parser: Parser) -> None:
    parser.epilog = (
        "A plan and a call take approve, edit, reject and abort, a pass also replay (run it once more) and accept (end "
        "with the result as it is). Exit code: 0 once the run has taken the decision, 1 where it was decided elsewhere "
        "first or its process has ended, 2 where it waits for nothing or for something else."
    )
    add = parser.add_argument
    add("run", metavar="RUN", help=RUN)
    answers = ("approve", "edit", "reject", "replay", "accept", "abort")
    add("decision", metavar="DECISION", choices=answers, help=", ".join(answers))
    add("--feedback", metavar="TEXT", help="with reject: why, for the plan to be refined by")
    text = "with edit: the plan, or the arguments of the call, as JSON or YAML; '-' reads standard input"
    add("--edited", metavar="FILE", help=text)
    _json(parser, "what was decided as JSON, alone on stdout")
    _common(parser)


def _workflow(parser: Parser) -> None:
    parser.epilog = (
        "Without the app: python -m system2. Exit code: 0 all gates approved, 1 aborted or a fatal error, 2 bad "
        "arguments, 3 no usable model or refused credentials, 4 the cost ceiling was reached and not lifted."
    )
    add = parser.add_argument
    add("task", nargs="?", metavar="TASK", help="what is to be done; '-' reads standard input (default: the app asks)")
    add("--resume", metavar="RUN", help="go on with a workflow: its transcript, its id, or 'last'")
    add("--model", metavar="PROVIDER:NAME", help="another model than that of Bedrock, such as simulated:default")
    add("--base-url", metavar="URL", help="another server that speaks the provider's protocol")
    add("--unsafe-bash", action="store_true", help="run commands without asking, but for blocklisted ones")
    add("--auto-approve", action="store_true", help="approve every gate without asking")
    _trust_project(parser)
    text = "the project (default: the git root, else the working directory)"
    add("--project-root", metavar="DIR", default=None, help=text)
    add("--config", metavar="FILE", default=None, help="the settings (default: .system2/config.yml of the project)")
    add("--runs-dir", metavar="DIR", default=argparse.SUPPRESS, help="where runs live, for the app's list")
    add("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks and diagnostics")


def _trust(parser: Parser) -> None:
    parser.epilog = (
        "Consent is to exactly what is shown: where the project's configuration or a file that it would execute "
        "changes, it is asked for again, with the difference. The worktrees of a repository share it. Exit code: 0 "
        "where nothing is left to ask, 1 where the project is not trusted."
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--show", action="store_true", help="show what the project asks for, and ask nothing")
    form.add_argument("--revoke", action="store_true", help="forget every consent to this project")
    form.add_argument("--yes", action="store_true", help="consent to what is shown without being asked")
    _json(parser, "what the project asks for as JSON, alone on stdout; goes with --show")
    _common(parser)


def _list_tools(parser: Parser) -> None:
    _json(parser, "as JSON, as a model gets them")
    _tools(parser)
    _common(parser)


def _schema(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an entity, or a type of journal record")
    _common(parser)


def _lint(parser: Parser) -> None:
    add = parser.add_argument
    add("plan_file", metavar="PLAN", help="a plan, JSON or YAML")
    _json(parser, "the SemanticValidationReport as JSON")
    text = "exit 1 from this severity on (default: high)"
    add("--fail-on", choices=("low", "medium", "high"), default="high", help=text)
    add("--judge", action="store_true", help="ask a model too; what it finds is added to what the rules found")
    _model(parser)
    add("--budget", metavar="USD", help="what --judge may cost; no call is made that might cost more")
    _tools(parser)
    _common(parser)


def _calibrate(parser: Parser) -> None:
    parser.epilog = (
        "LABELS.jsonl has a labelled outcome a line, at least "
        '{"id", "label": "good" or "bad", "goal", "answer"}; without it, those that ship with Aeon are judged, in '
        "several languages. Exit code: 5 where less than --least agrees, 3 no usable model, 4 the budget is reached, "
        "1 interrupted; what was judged by then is printed."
    )
    add = parser.add_argument
    add("labels", nargs="?", metavar="LABELS.jsonl", help="labelled outcomes of your own")
    add("--history", action="store_true", help="compare the judge with your own labels instead; no model is called")
    _model(parser)
    _judge_model(parser)
    add("--judge-votes", metavar="1|3", help="verdicts of which the majority counts (default: 1)")
    add("--limit", metavar="N", help="judge N of the outcomes, taken evenly from all of them")
    add("--least", metavar="X", help="exit 5 where the share that agrees, 0 to 1, is below this")
    add("--budget", metavar="USD", help="what it may cost; no call is made that might cost more")
    _json(parser, "the figures and the disagreements as JSON, alone on stdout")
    _common(parser)


def _label(parser: Parser) -> None:
    parser.epilog = (
        "The last label of a result counts. `aeon-tui calibrate --history` shows how often the judge said the same."
    )
    add = parser.add_argument
    add("run", metavar="RUN", help=RUN)
    add("verdict", metavar="good|bad", choices=("good", "bad"), help="what you think of the result")
    add("--why", metavar="TEXT", help="the reason, kept with the label")
    _common(parser)


def _serve(parser: Parser) -> None:
    parser.epilog = "Each tab is an app of its own. Ctrl-C ends them all; runs that are going on are aborted."
    add = parser.add_argument
    add("--host", metavar="ADDRESS", help="where it is served (default: 127.0.0.1, this machine alone)")
    add("--port", metavar="N", help="the port (default: 8000)")
    add("--expose", action="store_true", help="serve on an address that other machines can reach; nothing guards it")
    _common(parser)


def _doctor(parser: Parser) -> None:
    _model(parser)
    _common(parser)


_COMMANDS = {
    "run": ("run", "run a task: live in the app, or with --headless", _run),
    "demo": ("run", "a guided run on the built-in simulated model: no key, no network", _demo),
    "batch": ("batch", "run many tasks, over processes or a Dask cluster", _batch),
    "watch": ("watch", "follow a run that another process is writing, or will be", _watch),
    "decide": ("decide", "answer what a run is waiting for, from another terminal", _decide),
    "runs": ("runs", "list past and live runs", _runs),
    "show": ("show", "show one run's execution history", _show),
    "replay": ("replay", "re-run from the journal; no model is called", _replay),
    "resume": ("resume", "go on after a crash or an abort, or with more cycles or a larger budget", _resume),
    "fork": ("fork", "a new run that starts where a pass of another one started", _fork),
    "workflow": ("workflow", "thirteen agents, gates between them; headless: python -m system2", _workflow),
    "trust": ("trust", "allow this project's files to run code, redirect or widen access", _trust),
    "tools": ("tools", "list the registered tools and their schemas", _list_tools),
    "schema": ("schema", "print the JSON Schema of a public entity; without NAME, the list of names", _schema),
    "lint": ("lint", "check a plan file by rules, with --judge by a model too", _lint),
    "calibrate": ("calibrate", "measure how far the judge agrees with labels, or with yours", _calibrate),
    "label": ("label", "record your own verdict on a result", _label),
    "serve": ("serve", "the app in a browser, on this machine", _serve),
    "doctor": ("doctor", "show what is configured, what is missing, and which model would be used", _doctor),
}

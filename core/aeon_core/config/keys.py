"""The configuration keys: what each means and expects, and its option on the command line.

The build reads this for the man page, using only the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from aeon_core.suggest import did_you_mean, shown
from aeon_core.tools import TOOL_SETS


class CommandOption(NamedTuple):
    """A command-line option. Its name is that of the key, unless `name` is set."""

    help: str
    metavar: str | None = None
    """None for an option without a value."""
    repeatable: bool = False
    name: str = ""
    short: str = ""
    """Its one-letter form."""


class ConfigKey(NamedTuple):
    """A configuration key: the words for it in the command line, messages, settings screen and documentation."""

    meaning: str
    """What it is for, in a sentence or two."""
    expected: str
    """What a value must be, after "must be" and "expected"."""
    option: CommandOption | None = None
    is_path: bool = False
    is_mapping: bool = False
    """Whether only files and Python can set it."""
    is_list: bool = False
    """Whether its text is a list separated by commas."""
    is_whole: bool = False
    """Whether its text is a whole number."""
    is_of_app: bool = False
    """Whether it is a setting of the app, which runs and journals do not have."""


_SETS = ", ".join(TOOL_SETS)

CONFIG_KEYS: Mapping[str, ConfigKey] = {
    "model": ConfigKey(
        "The model that plans, acts and judges. In a list, each model is the fallback for the one before.",
        "PROVIDER:NAME, or a list of these",
        CommandOption("model to use (default: AEON_MODEL, then the config)", "PROVIDER:NAME", short="m"),
    ),
    "base_url": ConfigKey(
        "Address to use instead of the provider's own, such as a local server or gateway.",
        "the address of a server, http://HOST:PORT/v1 or https://…",
        CommandOption("URL of another server with the provider's protocol", "URL"),
    ),
    "ttl": ConfigKey(
        "Maximum number of cycles in a run. A cycle is one processed model reply.",
        "a whole number of cycles, 0 or more",
        CommandOption("maximum number of cycles (default: 50)", "N"),
        is_whole=True,
    ),
    "single_pass": ConfigKey(
        "Run a single pass, without evaluation or refinement.",
        "true or false",
        CommandOption("run a single pass, without evaluation or refinement"),
    ),
    "criteria": ConfigKey(
        "File that defines when a result counts as converged.",
        "the path of a file with convergence criteria",
        CommandOption("convergence criteria (YAML): completeness, coherence, consistency, additional", "FILE"),
        is_path=True,
    ),
    "requirements": ConfigKey(
        "File with requirements for the answer, one per line, instead of inferring them.",
        "the path of a file with one requirement per line",
        CommandOption("requirements for the answer, one per line, instead of inferring them", "FILE"),
        is_path=True,
    ),
    "judge_model": ConfigKey(
        "Model that judges results and reviews plans, if not the run's own.",
        "PROVIDER:NAME",
        CommandOption("model that judges results and reviews plans (default: the run's model)", "PROVIDER:NAME"),
    ),
    "judge_votes": ConfigKey(
        "With 3, an unclear verdict is checked by two more; the majority counts.",
        "1 or 3",
        CommandOption("number of verdicts per result; the majority counts (default: 1)", "1|3"),
        is_whole=True,
    ),
    "tools": ConfigKey(
        "What a run may use: built-in tools, MCP servers, your own Python.",
        f"a list of {_SETS} or module:attribute",
        CommandOption(
            f"add tools: {_SETS}, or MODULE:ATTRIBUTE from the project root; repeatable, or with commas",
            "SPEC[,SPEC]",
            repeatable=True,
        ),
        is_list=True,
    ),
    "project_root": ConfigKey("Folder that files and commands are confined to.", "the path of a folder", is_path=True),
    "approve": ConfigKey(
        "What to ask you about: the plan before it runs, a pass when it ends, tool calls. Unless you set it, a "
        "headless run asks nothing.",
        "one or more of plan, pass and tool, or none",
        CommandOption(
            "what to ask you about: plan (before it runs), pass (after it ends), tool (calls that need approval), or "
            "none (default: none; in the app: pass,tool)",
            "WHAT[,WHAT]",
        ),
        is_list=True,
    ),
    "wait": ConfigKey(
        "How long a headless run waits for a decision from another terminal.",
        "a number of seconds, 0 or more",
        CommandOption(
            "headless, with no terminal to answer: seconds to wait for `aeon-tui decide` or `watch` at each point that "
            "--approve names (default: 0)",
            "SECONDS",
        ),
    ),
    "on_unknown": ConfigKey(
        "What to do with an interrupted tool call whose outcome is unknown.",
        "one of fail, retry, ask",
        CommandOption("what to do with an unsafe tool call that a crash interrupted (default: fail)", "fail|retry|ask"),
    ),
    "durability": ConfigKey(
        "When to sync the journal: full survives a power cut, normal a crash, off neither.",
        "one of full, normal, off",
        CommandOption("how often to sync the journal to disk (default: normal)", "full|normal|off"),
    ),
    "runs_dir": ConfigKey("Folder for run journals.", "the path of a folder", is_path=True),
    "max_tokens": ConfigKey(
        "Maximum length of a reply, thinking included; a judge may always use 4096.",
        "a whole number of tokens, 1 or more",
        is_whole=True,
    ),
    "timeout": ConfigKey("How long to wait for a silent model.", "a number of seconds above 0"),
    "prompts_dir": ConfigKey(
        "Folder with your own prompts, <purpose>.md, to replace the built-in ones.",
        "the path of a folder",
        is_path=True,
    ),
    "budget": ConfigKey(
        "Maximum cost of a run. The worst case of each call is reserved before it is made.",
        "an amount in US dollars, 0 or more",
        CommandOption("maximum cost of the run; it stops before a call that could exceed it", "USD"),
    ),
    "budget_warning": ConfigKey(
        "Warn at this cost; 80 % of the budget if not set.", "an amount in US dollars, 0 or more"
    ),
    "prices": ConfigKey(
        "Prices for models without a known price, or whose prices differ for you.",
        "models with their prices, MODEL: {input: …, output: …}, US dollars per million tokens",
        is_mapping=True,
    ),
    "context_window": ConfigKey(
        "Tokens for request and reply together, if the model's limit is unknown.",
        "a whole number of tokens, 1 or more",
        is_whole=True,
    ),
    "policy": ConfigKey(
        "Which tool calls are allowed, asked about or denied.",
        "lists of rules, TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB), under allow, ask and deny",
        CommandOption(
            "allow calls without asking: TOOL or TOOL(GLOB), such as 'Bash(git status*)'; repeatable",
            "RULE",
            repeatable=True,
            name="allow",
        ),
        is_mapping=True,
    ),
    "shell": ConfigKey(
        "How strict the Bash tool is, how long a command may take, and what it may reach.",
        "settings of the Bash tool: safety_mode, blocklist, timeout, network, env, readable",
        is_mapping=True,
    ),
    "mcp_servers": ConfigKey(
        "MCP servers that provide tools, each a command (isolated with `sandbox: true`) or a URL.",
        "server names with their settings, each with a command or a url",
        is_mapping=True,
    ),
    "bedrock": ConfigKey(
        "Region and identity for Amazon Bedrock.",
        "any of region, profile and role_arn, each as text",
        is_mapping=True,
    ),
    "otel": ConfigKey("Send traces and metrics to OpenTelemetry.", "true or false"),
    "otel_content": ConfigKey("Include requests and replies in the traces.", "true or false"),
    "theme": ConfigKey(
        "Colours of the app. To try them and choose, press ctrl+p, then Theme.",
        "the name of a theme, such as aeon-light",
        is_of_app=True,
    ),
    "keys": ConfigKey(
        "Your own keys for actions. Press K to change them.",
        "actions with their keys, such as {run.zoom: Z, browser.delete: 'ctrl+d,delete'}",
        is_of_app=True,
    ),
}
"""The keys of a configuration file: the fields of RunConfig, in order, then the app's settings."""
APP_KEYS = tuple(key for key, each in CONFIG_KEYS.items() if each.is_of_app)
KEYS = tuple(key for key in CONFIG_KEYS if key not in APP_KEYS)
OPTIONS = tuple(key for key, each in CONFIG_KEYS.items() if each.option is not None)
"""The keys that are options of the command line."""
MAPPINGS = frozenset(key for key, each in CONFIG_KEYS.items() if each.is_mapping)
PATH_KEYS = frozenset(key for key, each in CONFIG_KEYS.items() if each.is_path)


def listed(value: Any) -> Any:
    """Split a text at commas; return any other value as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def wrong(key: str, where: str, value: Any, error: Exception) -> str:
    """Return the message for an invalid value, which names the part that is wrong if there is one."""
    from pydantic import ValidationError

    part = ""
    first = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    if first is not None and key in MAPPINGS and isinstance(value, Mapping):
        place = [str(name) for name in first["loc"] if name not in (key, "[key]")]
        known = {"extra_forbidden": "is unknown", "missing": "is missing"}
        what = known.get(first["type"]) or f"is {shown(first['input'])}"
        part = f", {'.'.join(place)!r} {what}" if place else ""
    elif first is not None and first["type"] == "literal_error" and isinstance(first["input"], str):
        value = first["input"]
        part = did_you_mean(value, re.findall("'(.*?)'", first["ctx"]["expected"]))
    elif value and isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    return f"{where} must be {CONFIG_KEYS[key].expected}; got {shown(value)}{part}"


THEME_VARIABLE = "AEON_THEME"


class AppSettings(NamedTuple):
    """The app's settings from all layers, which runs and journals do not have."""

    theme: str | None = None
    """The theme that the app opens with; None if not set."""
    keys: Mapping[str, str] = {}
    """Keys by the id of their action, separated by commas if there are several."""
    sources: Mapping[str, str] = {}
    """The source of each setting."""

"""`aeon-tui doctor`: what is configured, what is missing, which model would be used. No key is ever printed."""

from __future__ import annotations

import os
import platform
from argparse import Namespace
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from aeon_core.config import RunConfig, runs_directory
from aeon_core.config_files import LoadedConfig, user_config_file
from aeon_core.errors import AeonError, UsageError
from aeon_core.versions import versions
from aeon_tui.cli import _settings
from aeon_tui.cli._output import Output, stdout

PROVIDERS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")}
"""Each provider's package, and the variables that may hold its key."""


@dataclass(frozen=True)
class Finding:
    """One line of the report. `step` is what would make it usable, None where it is; `code` what that is to a run."""

    name: str
    text: str
    step: str | None = None
    code: int = 0


def execute(args: Namespace) -> int:
    """Print what was found; return what a run would end with for it: 2 for a configuration that cannot be used, a
    place where no run can be kept or a model of an unknown provider, 3 for a model that cannot be used, else 0.
    """
    out = stdout()
    findings = [Finding("aeon", versions()["aeon"]), Finding("python", platform.python_version())]
    try:
        loaded = _settings.load(args)
        broken = None
    except UsageError as error:
        loaded, broken = LoadedConfig(RunConfig()), error
    findings += [_config(loaded, broken), _model(loaded)]
    findings += [_provider(name, variables, loaded.config.base_url) for name, variables in PROVIDERS.items()]
    findings += [_simulated(), _runs(loaded)]
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        _print(out, finding, width)
    codes = {finding.code for finding in findings}
    return 2 if 2 in codes else max(codes)


def _print(out: Output, finding: Finding, width: int) -> None:
    mark = ("ok  ", "green") if finding.step is None else ("--  ", "yellow")
    out.line(mark, (f"{finding.name:<{width}}  ", "bold"), finding.text)
    if finding.step is not None:
        out.line(" " * (width + 6), ("→ ", "dim"), finding.step)


def _config(loaded: LoadedConfig, broken: UsageError | None) -> Finding:
    if broken is not None:
        return Finding("config", "cannot be used", broken.message, broken.exit_code)
    if not loaded.files:
        return Finding("config", f"no file; {str(user_config_file(os.environ))!r} would be read")
    return Finding("config", ", ".join(str(path) for path in loaded.files))


def _model(loaded: LoadedConfig) -> Finding:
    if loaded.config.model is None:
        step = "name one: --model PROVIDER:NAME, AEON_MODEL or `model:` in a config file"
        return Finding("model", "none is configured", step)
    url = loaded.config.base_url
    at = f" at {_without_credentials(url)}" if url else ""
    text = f"{loaded.config.model}{at}, from {loaded.sources['model']}"
    try:
        _settings.model(loaded.config).close()
    except AeonError as error:
        return Finding("model", text, error.message, error.exit_code)
    return Finding("model", text)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _provider(name: str, variables: tuple[str, ...], base_url: str | None) -> Finding:
    if find_spec(name) is None:
        return Finding(name, "its package is missing", "install aeon-tui again with its dependencies")
    if found := next((variable for variable in variables if os.environ.get(variable)), None):
        return Finding(name, f"usable: {found} is set")
    if name == "openai" and (base_url or os.environ.get("OPENAI_BASE_URL")):
        return Finding(name, "usable: a base URL is set, where a local server needs no key")
    local = ", or --base-url for a local server" if name == "openai" else ""
    return Finding(name, "no key", f"set {variables[0]}{local}")


def _simulated() -> Finding:
    from aeon_core.llm.simulated import SIMULATED_MODELS

    return Finding("simulated", f"usable: built in, no key, no network ({', '.join(SIMULATED_MODELS)})")


def _runs(loaded: LoadedConfig) -> Finding:
    directory = runs_directory(loaded.config)
    if problem := _settings.why_not_writable(directory):
        return Finding("runs", f"{directory}: {problem}", "name another folder: --runs-dir or AEON_RUNS_DIR", 2)
    return Finding("runs", f"{directory}{'' if directory.exists() else ' (will be made)'}")

"""`aeon-tui doctor`: what is configured, what is missing, and which model would be used. Never prints a key."""

from __future__ import annotations

import os
import platform
from argparse import Namespace
from urllib.parse import urlsplit

from aeon_core.config.keys import PATH_KEYS, AppSettings
from aeon_core.config.loading import LoadedConfig, user_config_file
from aeon_core.config.schema import RunConfig, runs_directory
from aeon_core.errors import AeonError, UsageError
from aeon_core.installation import versions
from aeon_core.llm.catalogue import price_date, price_of
from aeon_core.paths import why_not_writable
from aeon_core.runs.factory import connect_model
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, stdout
from aeon_tui.health import HealthCheck, optional, providers


def execute(args: Namespace) -> int:
    """Print the findings; return the exit code that a run would have: 2 for an unusable configuration, a
    runs directory that cannot be written, or a model of an unknown provider or without the price for a budget; 3 for a
    model that cannot be used, or tools or traces without their package; else 0.
    """
    out = stdout()
    findings = [HealthCheck("aeon", versions()["aeon"]), HealthCheck("python", platform.python_version())]
    try:
        loaded = options.load(args)
        broken = None
    except UsageError as error:
        loaded, broken = LoadedConfig(RunConfig()), error
    findings += [_config(loaded, broken), *_trust(loaded, broken), *_models(loaded), *_values(loaded)]
    findings += [*providers(loaded.config), *optional(loaded.config), _runs(loaded)]
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        _print(out, finding, width)
    codes = {finding.code for finding in findings}
    return 2 if 2 in codes else max(codes)


def _print(out: OutputStream, finding: HealthCheck, width: int) -> None:
    mark = ("ok  ", "green") if finding.step is None else ("--  ", "yellow")
    out.line(mark, (f"{finding.name:<{width}}  ", "bold"), finding.text)
    if finding.step is not None:
        out.line(" " * (width + 6), ("→ ", "dim"), finding.step)


def _config(loaded: LoadedConfig, broken: UsageError | None) -> HealthCheck:
    if broken is not None:
        return HealthCheck("config", "cannot be used", broken.message, broken.exit_code)
    if not loaded.files:
        return HealthCheck("config", f"none; {str(user_config_file(os.environ))!r} would be read")
    return HealthCheck("config", ", ".join(str(path) for path in loaded.files))


def _trust(loaded: LoadedConfig, broken: UsageError | None) -> list[HealthCheck]:
    """Return for each thing that the project asks for whether it is trusted; a redirection is named even if it is."""
    root = loaded.config.project_root
    if broken is not None or root is None:
        return []
    from system2.trust import assess_workflow

    found = []
    for trust, name in ((loaded.trust, "trust"), (assess_workflow(root), "workflow")):
        if not trust.items:
            continue
        if trust.allowed:
            found.append(
                HealthCheck(name, f"the project is trusted to {'; to '.join(item.text for item in trust.items)}")
            )
        else:
            state = "has changed since it was trusted" if trust.state == "changed" else "is not trusted"
            step = f"it asks to {'; to '.join(item.text for item in trust.items)}; decide with `aeon-tui trust`"
            found.append(HealthCheck(name, f"the project {state}, so what it asks for is ignored", step))
    if not found:
        found.append(HealthCheck("trust", "the project asks for nothing that needs your trust"))
    source = loaded.sources.get("base_url")
    if source is not None and source == loaded.project_source:
        url = _without_credentials(str(loaded.config.base_url))
        found.append(
            HealthCheck("base_url", f"every request, with your key, goes to {url}", f"set by the project: {source}")
        )
    return found


def _values(loaded: LoadedConfig) -> list[HealthCheck]:
    """Return each effective value that is not a default, with its source; only the source if it may hold a key."""
    sources = {key: " and ".join(loaded.sources_of(key)) for key in (*loaded.sources, *loaded.app.sources)}
    width = max((len(key) for key in sources), default=0)
    return [
        HealthCheck("setting", f"{key:<{width}}  {_shown(key, loaded)}from {source}", _refused(key, loaded.app))
        for key, source in sorted(sources.items())
    ]


def _refused(key: str, settings: AppSettings) -> str | None:
    """Return why the app does not use a value, None if it does."""
    if key == "keys":
        from aeon_tui.keymap import checked_keys

        return next(iter(checked_keys(settings.keys).problems), None)
    if key == "theme" and settings.theme is not None:
        from aeon_tui.settings import why_no_theme

        return why_no_theme(settings.theme)
    return None


def _shown(key: str, loaded: LoadedConfig) -> str:
    value = getattr(loaded.config, key, None)
    if isinstance(value, bool | int | float) or key in ("approve", "tools", "durability", "on_unknown"):
        return f"{', '.join(value) if isinstance(value, list) else value}, "
    return f"{value}, " if key in PATH_KEYS else ""


def _models(loaded: LoadedConfig) -> list[HealthCheck]:
    config = loaded.config
    if not config.models:
        step = "set one with --model PROVIDER:NAME, AEON_MODEL or `model:` in a config file"
        return [HealthCheck("model", "none configured", step)]
    found = []
    for number, model in enumerate(config.models):
        address, remedy, code = config.base_url, None, 0
        try:
            adapter = connect_model(config.model_copy(update={"model": model}))
        except AeonError as error:
            remedy, code = error.message, error.exit_code
        else:
            address = address or adapter.base_url  # which the environment may name
            adapter.close()
        at = f" at {_without_credentials(address)}" if address else ""
        text = f"{model}{at}, {_price(model, config)}, from {loaded.sources['model']}"
        name = "fallback" if number else "model"
        found.append(HealthCheck(name, text, remedy, code))
    return found


def _price(model: str, config: RunConfig) -> str:
    price = price_of(model, config.prices)
    if price is None:
        return f"price unknown ({price_date()}; to use a budget, set it under `prices:`)"
    if not price.input and not price.output:
        return "free"
    source = price_date() if price.source == "genai-prices" else price.source
    return f"${price.input:g} in and ${price.output:g} out per million tokens ({source})"


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _runs(loaded: LoadedConfig) -> HealthCheck:
    directory = runs_directory(loaded.config)
    if problem := why_not_writable(directory):
        return HealthCheck(
            "runs", f"{directory}: {problem}", "choose another folder with --runs-dir or AEON_RUNS_DIR", 2
        )
    return HealthCheck("runs", f"{directory}{'' if directory.exists() else ' (will be created)'}")

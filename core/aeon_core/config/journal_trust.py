"""What a journal asks for needs the same consent as a project's files, since anyone may have written it (Decision 6).

A run that is resumed or forked takes its model, server, tools and rules from a journal. They are used only if the
user's own configuration, the command line or a trusted project says the same today, or if this user started exactly
that run, in which case its first record was remembered beside the consents. What a person decided about a call, and the
rules that they allowed with it, are used if the decision has the seal of this user. Nothing here executes anything.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.keys import KEYS
from aeon_core.config.schema import RunConfig, recorded_config
from aeon_core.config.trust import (
    TrustItem,
    clean_text,
    first_of,
    is_harmless,
    is_inside,
    items_of,
    load_entry,
    own_ids,
    plain_value,
    split_values,
    update_entry,
)
from aeon_core.errors import AeonError, UnconfirmedCall, UsageError
from aeon_core.journal.values import dict_of, strs_of
from aeon_core.policy import PolicyRules
from aeon_core.redaction import user_key, user_key_file
from aeon_core.tools import TOOL_SETS
from aeon_core.tools.imports import file_digest, sha256_of

if TYPE_CHECKING:
    from aeon_core.journal.writer import LineListener

logger: logging.Logger = logging.getLogger("aeon")

MAX_RUNS = 500
"""The number of runs that are remembered per project."""
_NOT_FROM_JOURNAL = frozenset(
    {"mcp_servers", "bedrock", "prices", "wait", "approve", "runs_dir", "criteria", "durability"}
)
"""Options that have today's values, that concern only the journal, or, like the criteria, are in it in full."""
REACHING = ("mcp_servers", "bedrock")
"""Those of them that need consent where nobody gave today's: in Python."""
_DEFAULTS = RunConfig()
_ADVICE = "set it with options, or allow it with --trust-project"


def remember_run(started: Mapping[str, Any], config: RunConfig | None = None) -> None:
    """Remember that this user started the run of a `run_started` record, or continued it with these options.

    If that cannot be saved, the run continues, but a later resume will ask.
    """
    try:
        config = config if config is not None else recorded_config(started)
        remember(config.root, _description(started, config))
    except AeonError as error:
        logger.warning("cannot record that this run is yours: %s", error.message)


def remember(root: Path, what: object) -> None:
    """Remember something that was started in a project, as plain data. Raises UsageError if it cannot be saved."""
    digest = _digest(what)

    def add(entry: dict[str, Any]) -> None:
        known = [each for each in _known(entry) if each != digest]
        entry["runs"] = [*known[1 - MAX_RUNS :], digest]

    if not remembers(root, what):
        update_entry(root, os.environ, add, "runs")


def remembers(root: Path, what: object) -> bool:
    """Return whether this user started exactly that in the project."""
    return _digest(what) in _known(load_entry(root, os.environ, "runs"))


def remembers_run() -> LineListener:
    """Return a listener that remembers a run once its first record is written."""

    def listen(line: bytes) -> None:
        if b'"run_started"' in line[:200] and (record := json.loads(line)).get("type") == "run_started":
            remember_run(record)

    return listen


def seal(run_id: str, asked_at: int, decided: Mapping[str, Any]) -> str:
    """Return the proof that this user made a decision about a call of a run, from the fields of its record.

    `asked_at` is the seq of the question: it counts for no other call, not even for the same one later in the run. The
    seal is made with the user's key (`user_key`), so no other user can make or check it.
    """
    said = ["approval", run_id, asked_at, *map(decided.get, ("digest", "decision", "edited", "allow"))]
    return hmac.new(user_key(), json.dumps(said, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def is_sealed(run_id: str, asked_at: Any, decided: Mapping[str, Any], root: Path) -> bool:
    """Return whether this user made the decision that a record of a run in this project holds, about that question.

    A key that the project or another user may know proves nothing.
    """
    found = decided.get("seal")
    if not isinstance(found, str) or not hmac.compare_digest(found.encode(), seal(run_id, asked_at, decided).encode()):
        return False
    return not _key_problem(root)


def _key_problem(root: Path) -> str:
    """Return, to end a clause, why the user's key proves nothing in this project, and what to do; empty if it does."""
    try:
        key = user_key_file()
        state = key.stat()
    except (OSError, RuntimeError):
        return ""  # the key is of this process alone
    if is_inside(key, root):
        problem = "lies in the project; set XDG_STATE_HOME to a folder outside it"
    elif state.st_uid not in own_ids(os.environ):
        problem = "belongs to another user; change its owner with chown"
    elif state.st_mode & 0o077:
        problem = "is open to other users; close it with chmod 600"
    else:
        return ""
    return f" (no decision counts as yours, since your key file {str(key)!r} {problem})"


def foreign_rules(records: Iterable[Mapping[str, Any]], root: Path) -> list[str]:
    """Return the rules that somebody allowed during a run in this project, and that this user did not."""
    found: dict[str, None] = {}
    own: set[str] = set()
    asked_at: Any = None
    for record in records:
        if record.get("type") == "approval" and record.get("state") == "asked":
            asked_at = record.get("seq")
        elif record.get("type") == "approval" and record.get("decision") == "approve":
            rules = strs_of([(dict_of(record.get("allow")) or {}).get("rule")])
            if rules and is_sealed(str(record.get("run")), asked_at, record, root):
                own.update(rules)
            found |= dict.fromkeys(rules)
        else:  # a pass holds the state after it, the first record of a fork the state before it
            state = dict_of(record.get("standing") or record.get("start")) or {}
            found |= dict.fromkeys(strs_of(state.get("allowed")))
    return [rule for rule in found if rule not in own]


def check_journal(
    started: Mapping[str, Any],
    config: RunConfig,
    today: RunConfig,
    overrides: Iterable[str] = (),
    *,
    rules: Iterable[str] = (),
    trusts_project: bool = False,
    advice: str = _ADVICE,
) -> RunConfig:
    """Return the options of a run that is continued from a journal, ready for use.

    `config` combines the journal and today's options; the user sets the keys in `overrides`; `rules` are
    those that somebody else allowed during the run (`foreign_rules`). Raises UsageError for what comes neither from
    today's options nor from a run that this user started, unless the user `trusts_project` for this call; it ends with
    the `advice`.
    """
    root, overrides = config.root, {*overrides}
    new = tuple(rule for rule in rules if rule not in today.policy.allow)
    items = _items(config, today, overrides)
    if not items and not new:
        return config.with_verified(today.verified)
    if trusts_project:
        return config
    if own := not items or remembers(root, _description(started, _without(config, started, overrides))):
        items = []
    if own and not new:
        return config.with_verified(_file_digests(config))
    raise _refusal(started, [*items, *_rule_items(new)], advice, _key_problem(root) if new else "")


def check_rules(started: Mapping[str, Any], rules: Iterable[str], today: PolicyRules, root: Path) -> None:
    """Raise UsageError if `rules` of a workflow continued in this project (`foreign_rules`) are not among today's."""
    if new := tuple(rule for rule in rules if rule not in today.allow):
        raise _refusal(started, _rule_items(new), f'{_ADVICE}, in Python with trust="apply"', _key_problem(root))


def _rule_items(rules: tuple[str, ...]) -> list[TrustItem]:
    # They may not be valid.
    return items_of("policy", PolicyRules.model_construct(allow=rules), Path()) if rules else []


def _refusal(started: Mapping[str, Any], items: Sequence[TrustItem], advice: str, key: str) -> UsageError:
    return UsageError(
        f"the journal of {str(started.get('run'))!r} asks to {first_of(items)}, which comes neither from your "
        f"configuration nor from a run that you started here{key}; {advice}"
    )


def unconfirmed(run_id: str, tool_name: str, arguments: Mapping[str, Any], root: Path) -> UnconfirmedCall:
    """Return the error for a call that only the journal of a run in this project allows."""
    call = clean_text(f"{tool_name!r} with {json.dumps(arguments, ensure_ascii=False)}")
    return UnconfirmedCall(
        f"the journal of {run_id!r} asks to call {call}, which no rule of the run and no decision that you made "
        f"here allows{_key_problem(root)}; allow it with --trust-project, or in Python with trusts_project=True, for a "
        'workflow trust="apply"'
    )


def _without(config: RunConfig, started: Mapping[str, Any], overrides: Iterable[str]) -> RunConfig:
    """Return the options without the `overrides`: as they were when the run was started."""
    recorded = recorded_config(started)
    return config.model_copy(update={key: getattr(recorded, key) for key in overrides if key in KEYS})


def _items(config: RunConfig, today: RunConfig, overrides: set[str]) -> list[TrustItem]:
    """Return what a journal's options ask for, except for harmless ones, today's, and the `overrides`."""
    root, own = config.root, _options_of(today)
    asked: dict[str, Any] = {}
    for key, value in _options_of(config, REACHING).items():
        now = getattr(today, key)
        if key == "policy":
            allowed = {*now.allow}
            new = tuple(rule for rule in value.allow if rule not in allowed)
            asked |= {key: value.model_copy(update={"allow": new})} if new else {}
        elif not (key in overrides or value == now or _is_harmless(key, value, own, root)):
            asked[key] = [spec for spec in value if spec not in now] if key == "tools" else value
    return [item for key, value in asked.items() for item in items_of(key, value, root)]


def _is_harmless(key: str, value: Any, own: Mapping[str, Any], root: Path) -> bool:
    # A simulated model too: in a continued run, it does not replace the user's model.
    given = [own, {}] if key in ("model", "judge_model") else [own]
    return any(is_harmless(key, value, each, root) for each in given)


def needs_consent(config: RunConfig) -> bool:
    """Return whether a journal with these options asks for something that needs consent, apart from today's options."""
    _, gated = split_values(_options_of(config), {}, config.root)
    return bool(gated)


def _options_of(config: RunConfig, more: Collection[str] = ()) -> dict[str, Any]:
    """Return the options of a run that come from its journal, and `more`, if they differ from the defaults."""
    values = {key: getattr(config, key) for key in KEYS if key in more or key not in _NOT_FROM_JOURNAL}
    return {key: value for key, value in values.items() if value is not None and value != getattr(_DEFAULTS, key)}


def _digest(what: object) -> str:
    return sha256_of(json.dumps(what, sort_keys=True, default=str).encode())


def _description(started: Mapping[str, Any], config: RunConfig) -> list[Any]:
    root = config.root
    _, gated = split_values(_options_of(config), {}, root)
    return [
        [started.get("run"), started.get("ts"), started.get("task")],
        {key: plain_value(value, root) for key, value in gated.items()},
        _file_digests(config),
    ]


def _file_digests(config: RunConfig) -> dict[str, str]:
    """Return the digests of the project's files that the options would execute or read, by path."""
    root = config.root
    modules = [spec for spec in config.tools if spec not in TOOL_SETS]
    items = items_of("tools", modules, root)
    if config.prompts_dir is not None:
        items += items_of("prompts_dir", config.prompts_dir, root)
    return {str(file): file_digest(file) for item in items for file in item.files}


def _known(entry: Mapping[str, Any]) -> list[str]:
    return strs_of(entry.get("runs"))

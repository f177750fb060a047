"""Trust on first use: what a project's own files may do without consent, and what needs it.

A project's `.aeon/config.yml` applies by itself only if it restricts or decorates (`split_values`). Everything in it
that executes, redirects, widens or reads elsewhere needs consent, bound to a digest of exactly that configuration and
the project's files that it would execute (Decision 6). Nothing here executes anything of the project.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER, program_outside, user_state_folder
from aeon_core.regular_file import closing_fd, replace_file
from aeon_core.tools import TOOL_SETS
from aeon_core.tools.imports import file_bytes, file_digest, module_files, sha256_of
from aeon_core.tools.protected_paths import git_folders
from aeon_core.units import count, money

TrustMode = Literal["require", "apply", "ignore", "never"]
"""What happens to a project's keys that need consent: `require` raises an error if it is missing, `apply` applies them
for this invocation (--trust-project), `ignore` leaves them out if it is missing, and `never` in any case."""
TrustState = Literal["nothing_asked", "trusted", "untrusted", "changed"]

JOINED_KEYS = frozenset({"policy", "prices", "mcp_servers"})
"""Keys whose layers add up, so that setting them again does not override the project's values."""
MAX_CONSENTS = 8
"""The consents kept per project, so that going back to another branch does not ask again."""
_MAX_SNAPSHOT = 400_000
_MAX_CHANGES = 400
_WAYS_OUT = 'review it with `aeon-tui trust`, or allow it once with --trust-project, in Python with trust="apply"'


class TrustItem(Struct, frozen=True):
    """One thing that a project asks for and that needs consent."""

    key: str
    """The configuration key, such as `tools`, `policy.allow` or `mcp_servers.NAME`; or a file."""
    text: str
    """What it would be allowed to do, one sentence without a full stop, safe to print."""
    files: tuple[Path, ...] = ()
    """The project's files that it would execute or read."""

    def is_asked(self, overrides: Iterable[str]) -> bool:
        """Return whether it is still asked for if later layers set the keys in `overrides`."""
        key = self.key.partition(".")[0]
        return key in JOINED_KEYS or key not in overrides


class ProjectTrust(Struct, frozen=True):
    """What a project asks for, and whether a person has consented to exactly that."""

    root: Path
    items: tuple[TrustItem, ...] = ()
    digest: str = ""
    """The digest of the configuration and of the project's files that it would execute; empty if nothing is asked."""
    state: TrustState = "nothing_asked"
    changes: tuple[str, ...] = ()
    """In the state `changed`: lines of a unified diff since the last consent, without secrets."""
    part: str = "run"
    """`run` for `.aeon/config.yml`, `workflow` for what system2 reads. Each needs its own consent."""
    digests: Mapping[str, str] = {}
    """SHA-256 of each of the files, by path."""
    snapshot: Mapping[str, str] = {}
    """The base of a later diff: texts by name, without secrets."""

    @property
    def allowed(self) -> bool:
        """Whether nothing is left to ask."""
        return self.state in ("nothing_asked", "trusted")

    def digests_of(self, items: Iterable[TrustItem]) -> dict[str, str]:
        """Return the digests of these items' files, by path."""
        return {str(file): self.digests[str(file)] for item in items for file in item.files}


Values = Mapping[str, Any]
"""Settings by key."""


def assess_values(
    root: Path, values: Values, own: Values, environ: Mapping[str, str]
) -> tuple[ProjectTrust, dict[str, Any], dict[str, Any]]:
    """Return what the values of a project's configuration file ask for, and the two results of `split_values`.

    `own` are the values of the user's own configuration file and environment.
    """
    config = root / PROJECT_FOLDER / "config.yml"
    runs = root / PROJECT_FOLDER / "runs"
    if "runs_dir" not in {*values, *own} and os.path.lexists(runs) and not is_inside(runs, root):
        values = {**values, "runs_dir": runs}
    elsewhere = bool(values) and not is_inside(config, root)
    harmless, gated = ({}, dict(values)) if elsewhere else split_values(values, own, root)
    items = [item for key, value in gated.items() for item in items_of(key, value, root)]
    if elsewhere:
        items.insert(0, TrustItem(str(config), clean_text(f"take its settings from {os.path.realpath(config)!r}")))
    borrowed = project_modules(own.get("tools", ()), root)
    if borrowed:
        files = _module_files(borrowed, root)
        text = f"run the project's {_named(files, root)} for the tools {', '.join(borrowed)} in your own settings"
        items.append(TrustItem("tools", clean_text(text), files))
    # The digest includes what the user's own settings make harmless today: changing them does not change the project.
    asked = {**split_values(values, {}, root)[1], **gated, **({"your own tools": borrowed} if borrowed else {})}
    return assess_items("run", root, items, asked, environ), harmless, gated


def assess_items(
    part: str, root: Path, items: Sequence[TrustItem], asked: Values, environ: Mapping[str, str], **unseen: Any
) -> ProjectTrust:
    """Return what a part of a project asks for, and whether a person has consented to that.

    The digest covers the values `asked`, plain data that is `unseen` in the diff of a later change, and the files.
    """
    if not items:
        return ProjectTrust(root, part=part)
    digests = {str(file): file_digest(file) for item in items for file in item.files}
    named = {place_in(Path(path), root): digest for path, digest in digests.items()}
    plain = {key: plain_value(value, root) for key, value in asked.items()}
    described = json.dumps([part, {**plain, **unseen}, named], sort_keys=True, ensure_ascii=True, default=str)
    digest = sha256_of(described.encode())
    snapshot = _snapshot(asked, digests, root)
    consents = _consents(load_entry(root, environ), part)
    state: TrustState = "untrusted"
    changes: tuple[str, ...] = ()
    if any(each.get("digest") == digest for each in consents):
        state = "trusted"
    elif consents:
        state, changes = "changed", _changes(consents[-1].get("snapshot"), snapshot)
    return ProjectTrust(root, tuple(items), digest, state, changes, part, digests, snapshot)


def grant_trust(trust: ProjectTrust, environ: Mapping[str, str] = os.environ) -> None:
    """Save the consent to exactly what was assessed. Raises UsageError if it cannot be saved."""
    if not trust.items:
        return

    def add(entry: dict[str, Any]) -> None:
        consent = {
            "part": trust.part,
            "digest": trust.digest,
            "granted": datetime.now(UTC).isoformat(timespec="seconds"),
            "snapshot": dict(trust.snapshot),
        }
        others = [each for each in _consents(entry, None) if each.get("part") != trust.part]
        before = [each for each in _consents(entry, trust.part) if each.get("digest") != trust.digest]
        entry["consents"] = [*others, *before[1 - MAX_CONSENTS :], consent]

    update_entry(trust.root, environ, add)


class TrustRequired(UsageError):
    """A command lacks consent to what a project asks for, which is in `trust`."""

    def __init__(self, message: str, trust: ProjectTrust) -> None:
        super().__init__(message)
        self.trust = trust


def refusal(trust: ProjectTrust, overrides: Iterable[str] = ()) -> TrustRequired | None:
    """Return the error for a command that lacks consent, None if it has what it needs.

    The keys in `overrides`, which later layers set, need no consent.
    """
    asked = [] if trust.allowed else [item for item in trust.items if item.is_asked(overrides)]
    if not asked:
        return None
    changed = " has changed since you trusted it and" if trust.state == "changed" else ""
    return TrustRequired(f"the project {str(trust.root)!r}{changed} asks to {first_of(asked)}; {_WAYS_OUT}", trust)


def first_of(items: Sequence[TrustItem]) -> str:
    """Return the first three things asked for and the number of the others, for one line."""
    return "; to ".join(item.text for item in items[:3]) + (f"; and {len(items) - 3} more" if len(items) > 3 else "")


def check_unchanged(digests: Mapping[str, str]) -> None:
    """Raise UsageError if a file is no longer the one that was consented to."""
    for path, digest in digests.items():
        if file_digest(Path(path)) != digest:
            raise UsageError(f"{path!r} has changed since you trusted it; see the difference with `aeon-tui trust`")


def is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is in the project, symbolic links followed."""
    try:
        return Path(os.path.realpath(path.expanduser())).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError, RuntimeError):
        return False


Test = Callable[[Any, Values, Path], bool]
Rules = Mapping[str, tuple[Test, str]]
"""For each key, a test whether a value applies by itself, given the user's own layers, and what any other value would
be allowed to do. Keys that are missing need consent."""


def _never(*_: Any) -> bool:
    return False


def _at_most(key: str, default: float | None) -> Test:
    """Return a test for a value that is at most the user's own, or else the default; None means no limit."""

    def test(value: Any, own: Values, _root: Path) -> bool:
        limit = own.get(key, default)
        return limit is None or bool(value <= limit)

    return test


def _file_in_project(value: Any, _own: Values, root: Path) -> bool:
    return is_inside(Path(value), root) and (os.path.isfile(value) or not os.path.lexists(value))  # noqa: PTH113


def _same_model(value: Any, own: Values, _root: Path) -> bool:
    """Return whether it is the user's own model, or a simulated one, which sends nothing, if the user has set none."""
    if "model" in own:
        return bool(value == own["model"])
    return all(model.startswith("simulated:") for model in ([value] if isinstance(value, str) else value))


def _same_judge(value: Any, own: Values, _root: Path) -> bool:
    """Return whether it is the user's own judge or model; even a simulated one could approve a bad result."""
    return bool(value == own.get("judge_model", own.get("model")))


def _warns_before(value: Any, own: Values, _root: Path) -> bool:
    limit = own.get("budget_warning", 0.8 * own["budget"] if own.get("budget") is not None else None)
    return limit is None or bool(value <= limit)


ASKED_IN_APP: Final = ("pass", "tool")
"""The approval points in the app, unless others are configured."""
_DURABILITIES = ("off", "normal", "full")
_RULES: Rules = {
    **dict.fromkeys(("ttl", "single_pass", "judge_votes", "theme"), (lambda *_: True, "")),
    # Swapped keys of answers would turn a person's no into a yes.
    "keys": (lambda value, own, _: value == own.get("keys"), "give actions other keys: {json}"),
    # `items_of` describes what they would do.
    **dict.fromkeys(("tools", "mcp_servers"), (_never, "")),
    "model": (_same_model, "use another model: {value}"),
    "base_url": (_never, "send every request to a model, with your key, to {value}"),
    "criteria": (_file_in_project, "read the convergence criteria from {value!r}{away}"),
    "requirements": (_file_in_project, "read the requirements for the answer from {value!r}{away}"),
    "judge_model": (_same_judge, "use another model as judge: {value}"),
    "project_root": (_never, "work in the folder {value!r}"),
    "approve": (
        lambda value, own, _: "none" not in value and {*own.get("approve", ASKED_IN_APP)} - {"none"} <= {*value},
        "ask you about fewer things: {value}",
    ),
    "wait": (_at_most("wait", 0.0), "wait {value} s for a decision from another terminal"),
    "on_unknown": (lambda value, *_: value != "retry", "repeat an unsafe tool call whose outcome is unknown"),
    "durability": (
        lambda value, own, _: _DURABILITIES.index(value) >= _DURABILITIES.index(own.get("durability", "normal")),
        "sync the journal less often: {value}",
    ),
    "runs_dir": (lambda value, _, root: is_inside(Path(value), root), "store its runs in {value!r}{away}"),
    "max_tokens": (_at_most("max_tokens", 4096), "allow replies of up to {value} tokens"),
    "timeout": (_at_most("timeout", 120.0), "wait {value} s for a silent model"),
    "prompts_dir": (_never, "replace the prompts with those in {value!r}{away}"),
    "budget": (_at_most("budget", None), "spend up to {money}"),
    "budget_warning": (_warns_before, "warn you about the cost later, at {money}"),
    "prices": (_never, "set the prices for costs and the budget"),
    "context_window": (_never, "set the size of the model's context window to {value} tokens"),
    "shell": (_never, "change how commands are run: {json}"),
    "bedrock": (_never, "use Bedrock as {json}"),
    "otel": (lambda value, *_: value is False, "send traces and metrics to OpenTelemetry"),
    "otel_content": (lambda value, *_: value is False, "send requests and replies to OpenTelemetry"),
}
"""All keys of a run's configuration except for `policy`, whose `allow` needs consent and whose other parts apply."""


def is_harmless(key: str, value: Any, own: Values, root: Path, rules: Rules = _RULES) -> bool:
    """Return whether a value of any key other than `policy` applies by itself, given the user's own layers."""
    return key in rules and bool(rules[key][0](value, own, root))


def split_values(values: Values, own: Values, root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a project's configuration that apply by themselves, and those that need consent."""
    harmless: dict[str, Any] = {}
    gated: dict[str, Any] = {}
    for key, value in values.items():
        if key == "policy":
            if value.ask or value.deny:
                harmless[key] = value.model_copy(update={"allow": ()})
            if value.allow:
                gated[key] = value.model_copy(update={"ask": (), "deny": ()})
        else:
            (harmless if is_harmless(key, value, own, root) else gated)[key] = value
    return harmless, gated


def items_of(key: str, value: Any, root: Path) -> list[TrustItem]:
    """Return what a value of a key that needs consent would be allowed to do, with the project's files for it."""
    if key == "tools":
        return _tool_items(value, root)
    if key == "mcp_servers":
        return [_server_item(name, server, root) for name, server in value.items()]
    if key == "policy":
        return [TrustItem("policy.allow", clean_text(f"allow calls without asking: {', '.join(value.allow)}"))]
    files: list[Path] = []
    if key == "prompts_dir":
        with contextlib.suppress(OSError):
            files = sorted(path for path in Path(value).glob("*.md") if os.path.isfile(path))  # noqa: PTH113
    elif key in ("criteria", "requirements"):
        files = [Path(value)]
    return [TrustItem(key, sentence_of(key, value, root), tuple(files))]


def sentence_of(key: str, value: Any, root: Path, rules: Rules = _RULES) -> str:
    """Return what a value would be allowed to do, as worded in its rule."""
    words = rules[key][1] if key in rules else ""
    is_number = type(value) in (int, float) and math.isfinite(value)
    shown = f"{value:.15g}" if type(value) is float else str(value)
    if key == "base_url":
        shown = _shown_address(shown)
    text = (words or "set `{key}` to {value}").format(
        key=key,
        value=", ".join(map(str, value)) if isinstance(value, list | tuple) else shown,
        money=money(value) if is_number else shown,
        away=", outside the project" if isinstance(value, Path) and not is_inside(value, root) else "",
        json=json.dumps(shown_value(value), ensure_ascii=False),
    )
    return clean_text(text)


def _tool_items(specs: Iterable[str], root: Path) -> list[TrustItem]:
    items = []
    for spec in dict.fromkeys(specs):
        if spec in TOOL_SETS:
            items.append(TrustItem("tools", TOOL_SETS[spec].consent))
            continue
        files = _module_files([spec], root)
        what = f"run the project's {_named(files, root)}" if files else "run code of an installed package"
        items.append(TrustItem("tools", clean_text(f"{what} for the tools {spec}"), files))
    return items


def _shown_address(address: str) -> str:
    """Return an address in ASCII: letters of other scripts look like those of a well-known host."""
    return address.encode("ascii", "backslashreplace").decode()


def _server_item(name: str, server: Any, root: Path) -> TrustItem:
    borrowed = sorted({value for value in [*server.env.values(), *server.headers.values()] if "${" in value})
    own = f", passing it {', '.join(borrowed)} from your environment" if borrowed else ""
    if server.url is not None:
        return TrustItem(
            f"mcp_servers.{name}", clean_text(f"call the MCP server {name!r} at {_shown_address(server.url)}{own}")
        )
    files = _program_files([server.command, *server.args], root / (server.cwd or ""), root)
    command = " ".join([server.command, *server.args])
    if server.env:
        # A variable such as PATH decides what the command runs.
        own = f", setting {', '.join(sorted(server.env))}{own}"
    if server.trust_annotations:
        own += ", trusting what it says about its tools"
    return TrustItem(f"mcp_servers.{name}", clean_text(f"start the program `{command}`{own}"), files)


def _program_files(words: list[str], folder: Path, root: Path) -> tuple[Path, ...]:
    """Return the project's files that a command line names, and those that its Python files import."""
    files: set[Path] = set()
    for place, word in enumerate(words):
        if place and words[place - 1] == "-m":
            files |= module_files([word], folder)
            continue
        # `--script=server.py` and `sh -c 'exec ./server.py'` name a file too.
        for candidate in {word, *re.split(r"[\s=;&|'\"()]+", word)} - {""}:
            if (
                os.path.isfile(file := folder / candidate)  # noqa: PTH113  # that of a Path may raise
                and (_lies_in(file, root) or is_inside(file, root))
            ):
                files |= module_files([], file.parent, [file]) if file.suffix == ".py" else {file}
    return tuple(sorted(files))


def _lies_in(path: Path, root: Path) -> bool:
    """Return whether a path is in the project, without following links."""
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(root))


def project_modules(specs: Iterable[str], root: Path) -> list[str]:
    """Return the tools whose import would execute code of the project, whose folder comes first on the path."""
    return [spec for spec in specs if spec not in TOOL_SETS and _module_files([spec], root)]


def _module_files(specs: Iterable[str], root: Path) -> tuple[Path, ...]:
    return tuple(sorted(module_files((spec.partition(":")[0] for spec in specs), root)))


def _named(files: tuple[Path, ...], root: Path) -> str:
    names = [place_in(file, root) for file in files[:3]]
    return ", ".join([*names, *([count(len(files) - 3, "more file")] if len(files) > 3 else [])])


def clean_text(text: str) -> str:
    """Return a project's text, safe to print: with visible control characters, without secrets, clipped."""
    from aeon_core.escape import escape_blanks, escape_controls
    from aeon_core.redaction import redact_text

    text = redact_text(escape_controls(escape_blanks(text)))
    return text if len(text) <= 400 else f"{text[:400]}…"


def place_in(path: Path, root: Path) -> str:
    """Return a file's name for digests and screens: its path in the project, which is the same in all worktrees."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def plain_value(value: Any, root: Path) -> Any:
    """Return a value as complete plain data, with paths relative to the project."""
    if isinstance(value, Path):
        return place_in(value, root)
    if isinstance(value, Mapping):
        return {str(key): plain_value(item, root) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item, root) for item in value]
    if fields := getattr(type(value), "model_fields", None):
        return {name: plain_value(getattr(value, name), root) for name in fields}
    return value


def shown_value(value: Any) -> Any:
    """Return a value as plain data for a screen, without secrets and defaults."""
    from aeon_core.redaction import redact

    if isinstance(value, Mapping):
        return {str(key): shown_value(item) for key, item in value.items()}
    if hasattr(value, "model_dump"):
        return redact(value.model_dump(mode="json", exclude_defaults=True))
    if isinstance(value, list | tuple):
        return [shown_value(item) for item in value]
    return redact(str(value) if isinstance(value, Path) else value)


# What is remembered of a consent, and how the project differs from it now.


def _consents(entry: Mapping[str, Any], part: str | None) -> list[dict[str, Any]]:
    found = entry.get("consents")
    known = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [each for each in known if part is None or each.get("part") == part]


def _snapshot(asked: Values, digests: Mapping[str, str], root: Path) -> dict[str, str]:
    from aeon_core.redaction import redact_text

    shown = {key: json.dumps(shown_value(value), ensure_ascii=False, indent=2) for key, value in asked.items()}
    lines = [f"{key}: {text}" for key, text in sorted(shown.items())]
    texts = {"configuration": "\n".join(lines)}
    left = _MAX_SNAPSHOT
    for path, digest in sorted(digests.items()):
        data = file_bytes(Path(path), left + 1) or b""
        text = f"sha256 {digest}"
        if len(data) <= left and b"\0" not in data:
            left -= len(data)
            text = redact_text(data.decode("utf-8", "replace"))
        texts[place_in(Path(path), root)] = text
    return texts


def _changes(before: Any, now: Mapping[str, str]) -> tuple[str, ...]:
    import difflib

    from aeon_core.escape import escape_controls

    known = {str(key): str(text) for key, text in before.items()} if isinstance(before, dict) else {}
    lines: list[str] = []
    for name in sorted({*known, *now}):
        old, new = known.get(name, "").splitlines(), now.get(name, "").splitlines()
        lines += difflib.unified_diff(old, new, f"trusted/{name}", f"now/{name}", lineterm="")
    if not lines:
        lines = ["a value that is not shown has changed, such as a key or a long file"]
    if len(lines) > _MAX_CHANGES:
        lines = [*lines[:_MAX_CHANGES], f"… and {count(len(lines) - _MAX_CHANGES, 'more line')}"]
    return tuple(escape_controls(line, keep="\t") for line in lines)


# Consents are kept in one file per project in the user's state directory, never in the project itself.

FOLDERS = (".aeon", ".system2", ".git")
_GIT_SECONDS = 5


def refuse_foreign_folders(root: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError if the project's `.aeon`, `.system2` or `.git` belongs to another user.

    As in git, root under sudo also accepts folders of the calling user. A project that `safe.directory` in the user's
    git configuration names is accepted too.
    """
    mine = own_ids(environ)
    for name in FOLDERS:
        folder = root / name
        try:
            owners = {folder.lstat().st_uid, folder.stat().st_uid}
        except (OSError, RuntimeError):
            continue
        if owners <= mine or _is_safe_for_git(root):
            continue
        raise UsageError(
            f"{str(folder)!r} belongs to another user (uid {max(owners - mine)}), so nothing in it is used; "
            f"change its owner with chown, or trust it: git config --global --add safe.directory {str(root)!r}"
        )


def own_ids(environ: Mapping[str, str]) -> set[int]:
    """Return the user ids that are this user's: root under sudo has the calling user's too."""
    own = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    return {own, int(caller)} if own == 0 and caller.isascii() and caller.isdecimal() else {own}


def _is_safe_for_git(root: Path) -> bool:
    """Return whether the user's or system's git configuration trusts the folder; the project's own is not read."""
    import subprocess

    if (git := program_outside(root, "git")) is None:
        return False
    for scope in ("--global", "--system"):
        command = [git, "config", scope, "--get-all", "safe.directory"]
        try:
            listed = subprocess.run(command, capture_output=True, cwd="/", timeout=_GIT_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            continue
        named = {line.rstrip("/") for line in os.fsdecode(listed.stdout).splitlines()}
        if named & {"*", str(root), os.path.realpath(root)}:
            return True
    return False


MAX_BYTES = 16_000_000
Kind = Literal["consents", "runs"]
"""What is stored: the consents to a project, or the runs in it that the user started."""


def load_entry(root: Path, environ: Mapping[str, str], kind: Kind = "consents") -> dict[str, Any]:
    """Return what is stored for the project; an empty entry if there is nothing or the file is not the user's own."""
    file = _file(root, environ, kind)
    return _read(file) if file is not None else {}


def revoke_trust(root: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Forget all consents to the project, and its runs; return whether there was a consent. Raises UsageError."""
    had = bool(load_entry(root, environ))
    for kind in get_args(Kind):
        if (file := _file(root, environ, kind)) is not None:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(f"cannot delete the trust record {str(file)!r}: {error.strerror}") from None
    return had


def update_entry(
    root: Path, environ: Mapping[str, str], change: Callable[[dict[str, Any]], None], kind: Kind = "consents"
) -> None:
    """Change what is stored for the project, atomically. Raises UsageError if it cannot be stored."""
    if (file := _file(root, environ, kind)) is None:
        raise UsageError(
            f"your state directory {str(_folder(environ))!r} is inside the project {str(root)!r}, so trust cannot be "
            "stored there; use --trust-project, or set XDG_STATE_HOME"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.parent.chmod(0o700)
        with _locked(file.parent):
            entry = _read(file)
            entry["project"] = str(root)
            change(entry)
            replace_file(file, json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise UsageError(f"cannot store trust in {str(file.parent)!r}: {error.strerror}") from None


def project_key(root: Path) -> str:
    """Return the key of a project: its repository's common git folder and the path in it, else its own real path.

    A worktree names its own repository, so that counts only if the repository lists the worktree.
    """
    real = Path(os.path.realpath(root))
    for folder in (real, *real.parents):
        git = folder / ".git"
        if os.path.lexists(git):
            known = [] if git.is_symlink() else git_folders(git)
            if known and (known[-1] / "HEAD").is_file():
                return json.dumps([str(known[-1]), str(real.relative_to(folder))])
            break
    return json.dumps([str(real)])


def _folder(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_STATE_HOME", "")
    if Path(home).is_absolute():
        return Path(home) / "aeon" / "trust"
    return user_state_folder() / "trust"


def _file(root: Path, environ: Mapping[str, str], kind: Kind) -> Path | None:
    try:
        folder = _folder(environ)
    except UsageError:
        return None
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        return None
    return folder / f"{sha256_of(project_key(root).encode())[:40]}.{kind}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(descriptor, "rb") as opened:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
            return {}
        try:
            entry = json.loads(opened.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
    return entry if isinstance(entry, dict) else {}


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with closing_fd(os.open(folder / ".lock", flags, 0o600)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield

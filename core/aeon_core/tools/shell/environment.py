"""What commands get of the user's environment: its variables and git settings, without secrets."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from aeon_core.redaction import holds_secret
from aeon_core.tools.shell.commands import HOOKS
from aeon_core.tools.shell.secret_paths import words

_KEPT = words(
    """
    user.name user.email author.name author.email committer.name committer.email init.defaultbranch
    core.autocrlf core.eol core.excludesfile core.attributesfile core.quotepath core.whitespace pull.rebase
    pull.ff push.default merge.ff merge.conflictstyle diff.algorithm diff.renames rebase.autosquash
    rebase.autostash fetch.prune branch.autosetuprebase safe.directory
    """
)
"""Without keys and program names: no credential helper, alias, or `url.insteadOf`, which may hold a password."""
_SECONDS = 5


def git_settings(git: str, environ: Mapping[str, str], root: Path, home: Path) -> str:
    """Return the user's harmless settings for the repository at `root`, in the form of git's own file.

    It is empty if git gives none. The project's settings are not among them: git finds those by itself. `home` is a
    folder outside every repository, for a project that git cannot read.
    """
    scoped = _git_list(git, environ, home, "-C", str(root), "config", "--list", "--show-scope")
    entries = [entry for scope, entry in zip(scoped[::2], scoped[1::2], strict=False) if scope == "global"]
    lines = []
    for entry in entries or _git_list(git, environ, home, "config", "--global", "--includes", "--list"):
        key, has_value, value = entry.partition("\n")
        if key in _KEPT and has_value:
            section, _, name = key.partition(".")
            lines.append(f"[{section}]\n\t{name} = {_quoted(value)}\n")
    return "".join(lines)


def _git_list(git: str, environ: Mapping[str, str], folder: Path, *words: str) -> list[str]:
    """Return what git lists; nothing if it fails."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(  # noqa: S603  # git, with words of our own
            [git, *words, "-z"],
            cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace").split("\0")
    return []


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


_FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
}
"""No prompts, pagers or editors, which nobody could use, no colours, and no work of git in the background: ended with
the command, it leaves a lock that stops such work for ever.
"""

_NEEDED = frozenset({"PATH", "HOME"})
"""Variables that are kept whatever their value looks like."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|ACCESS_?KEYS?|PRIVATE_?KEYS?|KEY|TOKENS?|PAT|PASS|AUTH|DSN|JWT|WEBHOOK|CREDENTIALS?|COOKIES?)(?:_|$)"
    r"|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|TOKEN$|_PWD$|CONNECTION_?STRING|WEBHOOK_URL$"
    r"|^(?:AWS|AZURE|OPENAI|ANTHROPIC|AEON)_",
    re.IGNORECASE,
)
_PEM = "PRIVATE KEY-----"

_WAY_OUT = words(
    """
    SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY
    XAUTHORITY KRB5CCNAME KUBECONFIG DOCKER_HOST
    """
)
"""Variables that lead to the user's session: agents that sign, daemons that run things outside."""


def child_environment(environ: Mapping[str, str], allowed: Collection[str] = (), temp: str = "/tmp") -> dict[str, str]:  # noqa: S108  # the sandbox's own
    """Return the environment for a command: `environ` without secrets, session sockets and hooks (REQ-115).

    A variable is a secret by its name (`*_API_KEY`, `AWS_*`, …) or by its value, if that looks like a key. Those
    named in `allowed` are passed as they are. `temp` is the folder for temporary files and caches.
    """
    kept = {name: value for name, value in environ.items() if name in allowed or not _is_withheld(name, value)}
    # tox passes the latter on to pip, and not the former.
    caches = {"XDG_CACHE_HOME": f"{temp}/cache", "PIP_CACHE_DIR": f"{temp}/cache/pip"}
    ours = _FIXED | {"TMPDIR": temp, **caches}
    return kept | {name: value for name, value in ours.items() if name not in allowed or name not in environ}


def _is_withheld(name: str, value: str) -> bool:
    if name in _NEEDED:
        return False
    if name in _WAY_OUT or HOOKS.fullmatch(name) or _SECRET_NAME.search(name):
        return True
    return _PEM in value or holds_secret(value)

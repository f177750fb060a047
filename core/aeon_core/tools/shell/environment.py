"""The environment that a command gets: the caller's, without secrets, and without what would run code of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from aeon_core.redaction import holds_secret
from aeon_core.tools.shell.secret_paths import words

_KEPT = words(
    """
    user.name user.email author.name author.email committer.name committer.email init.defaultbranch
    core.autocrlf core.eol core.excludesfile core.attributesfile core.quotepath core.whitespace pull.rebase
    pull.ff push.default merge.ff merge.conflictstyle diff.algorithm diff.renames rebase.autosquash
    rebase.autostash fetch.prune branch.autosetuprebase safe.directory
    """
)
"""Neither keys nor names of programs: no credential helper, no alias, no `url.insteadOf`, which may hold a password."""
_SECONDS = 5


def git_settings(git: str, environ: Mapping[str, str], home: Path) -> str:
    """Return the harmless settings of the user, in the form of git's own file; empty if git gives none.

    The project's settings are not read: git finds those by itself. `home` is a folder outside every repository.
    """
    try:
        listed = subprocess.run(  # noqa: S603  # git, with words of our own
            [git, "config", "--global", "--includes", "--list", "-z"],
            cwd=home, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        ).stdout.decode("utf-8", "replace")  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    lines = []
    for entry in listed.split("\0"):
        key, has_value, value = entry.partition("\n")
        if key in _KEPT and has_value:
            section, _, name = key.partition(".")
            lines.append(f"[{section}]\n\t{name} = {_quoted(value)}\n")
    return "".join(lines)


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
}
"""Nobody can answer a prompt, page or edit, and colours are noise."""

_NEEDED = frozenset({"PATH", "HOME"})
"""Kept whatever their value looks like."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|ACCESS_?KEYS?|PRIVATE_?KEYS?|KEY|TOKENS?|PAT|PASS|AUTH|DSN|JWT|WEBHOOK|CREDENTIALS?|COOKIES?)(?:_|$)"
    r"|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|TOKEN$|_PWD$|CONNECTION_?STRING|WEBHOOK_URL$"
    r"|^(?:AWS|AZURE|OPENAI|ANTHROPIC|AEON)_",
    re.IGNORECASE,
)
_PEM = "PRIVATE KEY-----"

_WAY_OUT = frozenset(
    {
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "KRB5CCNAME",
        "KUBECONFIG",
        "DOCKER_HOST",
    }
)
"""Sockets and credentials of the user's session: agents that sign, daemons that run things outside."""

_HOOK = re.compile(
    r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS[0-4]|IFS|CDPATH|GLOBIGNORE|INPUTRC"
    r"|BASH_XTRACEFD|PYTHONSTARTUP|PYTHONINSPECT|PYTHONBREAKPOINT|PYTHONHOME|PERL5OPT|PERL5DB|RUBYOPT|NODE_OPTIONS"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|LESSOPEN|LESSCLOSE|BROWSER|SUDO_ASKPASS|SSH_ASKPASS|GIT_ASKPASS"
    r"|GIT_SSH(?:_COMMAND)?|GIT_EXTERNAL_DIFF|GIT_SEQUENCE_EDITOR|GIT_PROXY_COMMAND|GIT_CONFIG_.*|GIT_EXEC_PATH"
)
"""Variables through which something runs, or acts otherwise, before or beside the command itself."""


def child_environment(environ: Mapping[str, str], allowed: Collection[str] = (), temp: str = "/tmp") -> dict[str, str]:  # noqa: S108  # the sandbox's own
    """Return the environment for a command: `environ` without secrets, session sockets and hooks (REQ-115).

    A variable is a secret by its name (`*_API_KEY`, `AWS_*`, …) or by its value, where that looks like a key. Those
    named in `allowed` are passed as they are. `temp` is the folder for temporary files and caches.
    """
    kept = {name: value for name, value in environ.items() if name in allowed or not _is_withheld(name, value)}
    ours = _FIXED | {"TMPDIR": temp, "XDG_CACHE_HOME": f"{temp}/cache"}
    return kept | {name: value for name, value in ours.items() if name not in allowed or name not in environ}


def _is_withheld(name: str, value: str) -> bool:
    if name in _NEEDED:
        return False
    if name in _WAY_OUT or _HOOK.fullmatch(name) or _SECRET_NAME.search(name):
        return True
    return _PEM in value or holds_secret(value)

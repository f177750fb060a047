"""The places where people keep keys: a command gets to see none of them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_AT_HOME = (
    ".anthropic",
    ".aws",
    ".azure",
    ".bash_history",
    ".bundle/config",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".composer/auth.json",
    ".config",
    ".databrickscfg",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".huggingface",
    ".cache/huggingface/token",
    ".kaggle",
    ".kube",
    ".local/share/fish",
    ".local/share/keyrings",
    ".local/state/aeon",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".mysql_history",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".oci",
    ".openai",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pulumi",
    ".pypirc",
    ".python_history",
    ".s3cfg",
    ".sqlite_history",
    ".ssh",
    ".terraform.d",
    ".terraformrc",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
)
_ELSEWHERE = ("/etc/shadow", "/etc/gshadow", "/var/run/secrets", "/run/secrets")
_NAMED_BY = ("XDG_CONFIG_HOME", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG")


def hidden_places(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the files and folders with keys that exist, resolved, without the project root itself.

    A folder around the project root is among them: whatever hides it must let the root through.
    """
    return sorted({place.resolve() for place in _candidates(environ) if _is_there(place)} - {root})


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    for home in _homes(environ):
        yield from (home / name for name in _AT_HOME)
    yield from map(Path, _ELSEWHERE)
    yield from (Path(environ[name]) for name in _NAMED_BY if environ.get(name))


def _homes(environ: Mapping[str, str]) -> set[Path]:
    homes = {Path(environ["HOME"])} if environ.get("HOME") else set()
    with suppress(KeyError):
        homes.add(Path(pwd.getpwuid(os.getuid()).pw_dir))
    return {home for home in homes if home.is_absolute() and home != Path("/")}


def _is_there(place: Path) -> bool:
    try:
        place.stat()
    except OSError:
        return False  # nor can the command, which is the same user, get there
    return True

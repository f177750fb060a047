"""`aeon-tui trust`: what this project asks for beyond harmless settings, and consent to exactly that."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from aeon_core.config.loading import assess_project
from aeon_core.config.trust import ProjectTrust, TrustRequired, grant_trust, place_in, revoke_trust
from aeon_core.errors import UsageError
from aeon_core.paths import named_project_root
from aeon_core.process import can_answer
from aeon_tui.cli.output import OutputStream, has_screen, stderr, stdout


def execute(args: Namespace) -> int:
    """Show what the project asks for, and record consent after a yes; return 0 if nothing is left to ask, else 1.

    Raises UsageError if nobody can be asked, the project cannot be read, or the consent cannot be saved.
    """
    root = named_project_root(args.project_root)
    if args.json and not args.show:
        raise UsageError("--json needs --show")
    if args.revoke:
        return _revoke(root)
    from system2.trust import assess_workflow

    parts = [assess_project(root), assess_workflow(root)]
    asked = [each for each in parts if each.items]
    if args.json:
        stdout().json(_as_json(root, parts))
        return _code(asked)
    out = stdout() if args.show else stderr()
    for each in asked:
        show_trust(out, each)
    if not asked:
        out.line(f"{root}: {STATES['nothing_asked']}")
    open_parts = [each for each in asked if not each.allowed]
    if args.show or not open_parts:
        return _code(asked)
    if not args.yes:
        if not can_answer():
            raise UsageError("there is no terminal to ask on; use --yes, or --trust-project for a single command")
        if not out.confirms(_QUESTION):
            return 1
    for each in open_parts:
        grant_trust(each)
    out.line(("trusted", "green"), "; undo it with `aeon-tui trust --revoke`")
    return 0


def _revoke(root: Path) -> int:
    had = revoke_trust(root)
    stderr().line(f"{root} is {'no longer trusted' if had else 'not trusted: there is nothing to revoke'}")
    return 0


def _code(asked: list[ProjectTrust]) -> int:
    return int(any(not each.allowed for each in asked))


def _as_json(root: Path, parts: list[ProjectTrust]) -> dict[str, Any]:
    def described(trust: ProjectTrust) -> dict[str, Any]:
        items = [
            {"key": item.key, "text": item.text, "files": [str(file) for file in item.files]} for item in trust.items
        ]
        return {"state": trust.state, "digest": trust.digest, "items": items, "changes": list(trust.changes)}

    return {"project_root": str(root), **{trust.part: described(trust) for trust in parts}}


STATES = {
    "nothing_asked": "it asks for nothing that needs your trust",
    "trusted": "trusted",
    "untrusted": "not trusted",
    "changed": "no longer trusted: it has changed",
}
_QUESTION = "Trust this project to do exactly this?"
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def ask_for(args: Namespace, error: TrustRequired) -> None:
    """Ask for the consent that a command in the app lacks; raise the error if nobody can be asked or the answer is no.

    A headless command never asks, even at a terminal: it would hang a script.
    """
    if getattr(args, "headless", False) or getattr(args, "json", False) or not (has_screen() and can_answer()):
        raise error
    out = stderr()
    show_trust(out, error.trust)
    if not out.confirms(_QUESTION):
        raise error
    grant_trust(error.trust)


def show_trust(out: OutputStream, trust: ProjectTrust) -> None:
    """Print what a project asks for, whether it is trusted, and what has changed since it was."""
    what = "A workflow in" if trust.part == "workflow" else "A run in"
    out.line((f"{what} {trust.root} would be allowed to", "bold"))
    for item in trust.items:
        out.line(f"  - {item.text}")
        for file in item.files:
            out.line((f"      {place_in(file, trust.root)}", "dim"))
    for line in trust.changes:
        out.line("  ", (line, _STYLES.get(line[:1], "")))
    out.line(f"{STATES[trust.state]} ", (f"({trust.digest[:12]})", "dim"))

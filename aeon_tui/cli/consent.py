"""Consent to what a project asks for, in words at the terminal, before the app opens."""

from __future__ import annotations

import sys
from argparse import Namespace

from aeon_core.config.trust import ProjectTrust, TrustRequired, grant_trust
from aeon_core.stdio import can_answer
from aeon_tui.cli.output import Output, has_screen, stderr

STATES = {
    "nothing_asked": "it asks for nothing that needs your trust",
    "trusted": "trusted",
    "untrusted": "not trusted",
    "changed": "no longer trusted: it has changed",
}
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def ask_for(args: Namespace, error: TrustRequired) -> None:
    """Ask for what a command that opens the app lacks; raise the error where nobody can be asked, or the answer is no.

    Nobody is asked by a headless command, even at a terminal: it would hang a script there.
    """
    if getattr(args, "headless", False) or getattr(args, "json", False) or not (has_screen() and can_answer()):
        raise error
    out = stderr()
    show_trust(out, error.trust)
    if not says_yes(out):
        raise error
    grant_trust(error.trust)


def show_trust(out: Output, trust: ProjectTrust) -> None:
    """Print what a project asks for, whether it is trusted, and what has changed since it was."""
    what = "A workflow in" if trust.part == "workflow" else "A run in"
    out.line((f"{what} {trust.root} would be allowed to", "bold"))
    for item in trust.items:
        out.line(f"  - {item.text}")
        for file in item.files:
            out.line((f"      {file.relative_to(trust.root) if file.is_relative_to(trust.root) else file}", "dim"))
    for line in trust.changes:
        out.line("  ", (line, _STYLES.get(line[:1], "")))
    out.line(f"{STATES[trust.state]} ", (f"({trust.digest[:12]})", "dim"))


def says_yes(out: Output) -> bool:
    """Ask the person at the terminal, and return whether the answer was yes."""
    out.line("Trust this project to do exactly this? [y/N]")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")

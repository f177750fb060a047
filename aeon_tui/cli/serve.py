"""`aeon-tui serve`: the app in a browser."""

from __future__ import annotations

import ipaddress
import shlex
import socket
import sys
from argparse import Namespace

from aeon_core.errors import UsageError, reason_of
from aeon_core.installation import missing_extra
from aeon_tui.cli import options
from aeon_tui.cli.output import stderr

HOST, PORT = "127.0.0.1", 8000
EXPOSED = "anyone who can reach this address can start runs and tools as you: there is no password and no encryption"


def execute(args: Namespace) -> int:
    """Serve the app until it is interrupted, and return 0.

    Raises UsageError for an unusable address, or one beyond this machine without `--expose`;
    MissingExtraError.
    """
    host, port = args.host or HOST, options.whole_number(args.port, "--port", 65535) or PORT
    exposed = not _is_loopback(host)
    if exposed and not args.expose:
        raise UsageError(f"--host {host!r} is not local to this machine, and {EXPOSED}; to allow that, add --expose")
    options.runs_dir(args)
    _check_free(host, port)
    try:
        from aeon_tui.platform.web_server import AppServer
    except ModuleNotFoundError:
        raise missing_extra("`aeon-tui serve`", "serve") from None
    if exposed:
        stderr().warning(EXPOSED)
    AppServer(command(args), host, port).serve(debug=bool(args.debug))
    return 0


def command(args: Namespace) -> str:
    """Return the shell command that starts the app of one tab, with the options that also apply to it."""
    debug = ["--debug"] if args.debug else []
    return shlex.join([sys.executable, "-P", "-m", "aeon_tui", *options.file_options(args), *debug])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def _check_free(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"cannot serve the app on {host!r}, port {port}: {reason_of(error)}; choose another with --host and --port"
        ) from None

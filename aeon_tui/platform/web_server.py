"""The server of `aeon-tui serve`: textual-serve's, limited to this machine's browser, with a prompt shutdown."""

from __future__ import annotations

import asyncio
import copy
import ipaddress
import logging
import re
import socket
import sys
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

ENDING_SECONDS = 3.0
"""How long apps may take to end with the server. Then they are disconnected, which aborts their runs."""
_FOREIGN_FONT = re.compile(r'<link[^>]*"https://fonts\.[^>]*>')
_HEAD = """<title>aeon-tui</title>
<link rel="icon" href="data:," />
<script>
  // Keys go to the app at once, not after a click into it.
  addEventListener("load", function focus() {
    const input = document.querySelector(".xterm-helper-textarea");
    if (input) input.focus();
    else requestAnimationFrame(focus);
  });
</script>
</head>"""
_HEADERS = {
    "Content-Security-Policy": "style-src 'self' 'unsafe-inline'; font-src 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class AppServer(Server):
    """Serves the app that `command` starts, one process per tab. Pages of other sites cannot reach it.

    A browser lets any page open a websocket to this machine, so only the page served here is accepted; every browser
    says which page opens one. The page is not served under a foreign name either, which could be made to resolve to
    this machine.
    """

    def __init__(self, command: str, host: str, port: int) -> None:
        super().__init__(command, host, port, title="aeon-tui")
        self._names = {host.casefold(), "localhost", socket.gethostname().casefold()}
        self._sessions: set[asyncio.Task[object]] = set()

    def initialize_logging(self) -> None:
        """Log textual-serve's errors to standard error; with `debug`, everything."""
        logging.basicConfig(level="DEBUG" if self.debug else "ERROR", format="aeon-tui: %(message)s")

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002  # textual-serve's signature
        """Print the app's address."""
        sys.stderr.write(f"aeon-tui: the app is at {self.public_url} · press Ctrl-C to stop\n")
        sys.stderr.flush()

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """End the apps of all tabs, and then the connection to one that does not react: aiohttp would wait a minute."""
        for _ in ("quit", "disconnect"):
            for session in self._sessions:
                session.cancel()
            if self._sessions:
                await asyncio.wait(self._sessions, timeout=ENDING_SECONDS)

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Return the page, with the addresses that the browser requested."""
        self._check(request)
        asked = copy.copy(self)
        asked.public_url = f"{request.scheme}://{request.host}"
        response = await Server.handle_index(asked, request)
        assert isinstance(response, web.Response)  # a rendered template
        response.text = _FOREIGN_FONT.sub("", response.text or "").replace("</head>", _HEAD, 1)
        response.headers.update(_HEADERS)
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app while its tab is open."""
        self._check(request)
        if "Origin" not in request.headers:
            raise web.HTTPForbidden(text="Only a page served here can use this app; open the address in a browser.")
        session = asyncio.current_task()
        assert session is not None  # a handler is a task
        self._sessions.add(session)
        try:
            return await super().handle_websocket(request)
        finally:
            self._sessions.discard(session)

    def _check(self, request: web.Request) -> None:
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.casefold() != request.host.casefold():
            raise web.HTTPForbidden(text="A page from another site cannot use this app.")
        if not self._is_ours(urlsplit(f"//{request.host}").hostname or ""):
            raise web.HTTPForbidden(text="The app is not served under this name; use the address printed at startup.")

    def _is_ours(self, name: str) -> bool:
        """Return whether a host name is safe: nobody else can have made it resolve to this machine."""
        if name.casefold() in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

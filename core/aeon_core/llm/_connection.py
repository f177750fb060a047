"""An SDK's HTTP client that can be cut: closing a client alone leaves a blocked read waiting for its time-out."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

Watch = Callable[[Any], None]
"""A hook for the HTTP client's requests, so that the connection learns of its sockets."""


class Connection:
    """The client, made when it is first needed and again after `close()`, and the sockets below it."""

    def __init__(self, make: Callable[[Watch], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._client: Any = None
        self._sockets: list[socket.socket] = []
        self.closings = 0
        """How often `close()` was called: a call that sees it grow was cut."""

    def client(self) -> Any:
        """Return the client. Raises what the SDK raises when it cannot be made, and where it was closed meanwhile.

        Making it may import an SDK, which takes a second: `close()` does not wait for that.
        """
        with self._making:
            with self._lock:
                if self._client is not None:
                    return self._client
                closings = self.closings
            made = self._make(self._watch)
            with self._lock:
                if closings == self.closings:
                    self._client = made
                    return made
        made.close()
        raise ConnectionAbortedError("the adapter was closed while it connected")

    def close(self) -> None:
        """Cut what is in flight and release the client; from any thread, any number of times."""
        with self._lock:
            self.closings += 1
            client, self._client = self._client, None
            sockets, self._sockets = self._sockets, []
        for opened in sockets:
            # The plain socket's method: the TLS one would wait for, or spoil, the read that is to be woken.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(opened, socket.SHUT_RDWR)
        if client is not None:
            client.close()

    def _watch(self, request: Any) -> None:
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, info: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            opened = info["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                with self._lock:
                    self._sockets = [known for known in self._sockets if known.fileno() >= 0]
                    self._sockets.append(opened)

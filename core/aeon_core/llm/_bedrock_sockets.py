"""The sockets below a boto3 client, so that it can be cut: closing it leaves a blocked read waiting."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import weakref
from typing import Any

logger = logging.getLogger("aeon")


class Sockets:
    """What the watched clients have opened. Once cut, whatever they open later is cut at once too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._cut = False

    def watch(self, client: Any) -> Any:
        """Return the boto3 client, whose connections from now on are known here."""
        try:
            pools = client._endpoint.http_session._pool_classes_by_scheme
            pools.update({scheme: self._watched(pool) for scheme, pool in pools.items()})
        except AttributeError as error:
            # The pools are botocore's own business: without them calls work, and end by their time-out alone.
            logger.warning("bedrock: a call in flight cannot be cut with this botocore: %s", error)
        return client

    def cut(self) -> None:
        """Shut every connection; from any thread."""
        with self._lock:
            self._cut = True
            known = list(self._open)
        for opened in known:
            _shut(opened)

    def _watched(self, pool: Any) -> Any:
        base = pool.ConnectionCls

        def connect(connection: Any) -> None:
            base.connect(connection)
            # Under TLS within TLS, as behind some proxies, the socket is wrapped once more.
            self._opened(getattr(connection.sock, "socket", connection.sock))

        watched = type(base.__name__, (base,), {"connect": connect})
        return type(pool.__name__, (pool,), {"ConnectionCls": watched})

    def _opened(self, opened: Any) -> None:
        if not isinstance(opened, socket.socket):
            return
        with self._lock:
            self._open.add(opened)
            too_late = self._cut
        if too_late:
            _shut(opened)


def _shut(opened: socket.socket) -> None:
    # The plain socket's method: the TLS one would wait for, or spoil, the read that is to be woken.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)

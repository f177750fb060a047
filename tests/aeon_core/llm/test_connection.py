"""The client below an adapter: made once, released at once, also while it is being made."""

from __future__ import annotations

import os
import socket
import threading
import warnings
from typing import Any

import pytest

from aeon_core.errors import ModelUnavailableError
from aeon_core.llm.http import ClientConnection, Sockets
from tests.waiting import PATIENCE


class Client:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_client_is_made_once_and_remade_after_closing() -> None:
    connection = ClientConnection(lambda _: Client())
    first = connection.connect()
    assert connection.connect() is first
    connection.close()
    assert first.closed == 1
    assert connection.connect() is not first


def test_closing_does_not_wait_for_a_client_being_created() -> None:
    begun, go = threading.Event(), threading.Event()
    made = Client()
    failed: list[BaseException] = []

    def make(_: Any) -> Client:
        begun.set()
        assert go.wait(PATIENCE)
        return made

    connection = ClientConnection(make)

    def connect() -> None:
        with pytest.raises(ModelUnavailableError) as caught:
            connection.connect()
        failed.append(caught.value)

    thread = threading.Thread(target=connect)
    thread.start()
    assert begun.wait(PATIENCE)
    connection.close()  # would wait for ever, since the maker waits for what comes after it
    go.set()
    thread.join(PATIENCE)
    assert len(failed) == 1
    assert made.closed == 1


def test_a_forked_process_makes_its_own_client_and_leaves_the_connections_to_its_parent() -> None:
    left, right = socket.socketpair()

    def make(sockets: Sockets) -> Client:
        sockets.add(left)
        return Client()

    with left, right, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some other thread of the tests may be running
        connection = ClientConnection(make)
        first = connection.connect()
        child = os.fork()
        if child == 0:
            try:
                connection.close()
                os._exit(0 if connection.connect() is not first and first.closed == 0 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert connection.connect() is first
        left.sendall(b"x")
        assert right.recv(1) == b"x"


def test_connections_opened_after_closing_are_closed_too() -> None:
    sockets = Sockets()
    sockets.cut()
    left, right = socket.socketpair()
    with left, right:
        sockets.add(left)
        right.settimeout(5.0)
        assert right.recv(1) == b""

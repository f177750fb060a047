"""The client below an adapter: made once, released at once, also while it is being made."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aeon_core.llm.http import Connection
from tests.waiting import PATIENCE


class Client:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_client_is_made_once_and_remade_after_closing() -> None:
    connection = Connection(lambda _: Client())
    first = connection.client()
    assert connection.client() is first
    connection.close()
    assert first.closed == 1
    assert connection.client() is not first


def test_closing_does_not_wait_for_a_client_in_the_making_and_nothing_is_sent_with_it() -> None:
    begun, go = threading.Event(), threading.Event()
    made = Client()
    failed: list[BaseException] = []

    def make(_: Any) -> Client:
        begun.set()
        assert go.wait(PATIENCE)
        return made

    connection = Connection(make)

    def connect() -> None:
        with pytest.raises(ConnectionAbortedError) as caught:
            connection.client()
        failed.append(caught.value)

    thread = threading.Thread(target=connect)
    thread.start()
    assert begun.wait(PATIENCE)
    connection.close()  # would wait for ever, since the maker waits for what comes after it
    go.set()
    thread.join(PATIENCE)
    assert len(failed) == 1
    assert made.closed == 1

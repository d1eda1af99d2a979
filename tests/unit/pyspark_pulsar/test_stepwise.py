from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from pyspark_pulsar.stepwise import StepwiseReader

WAIT_S = 10.0


class Client:
    """Calls its listener in a thread, and says which message the listener has not returned from."""

    def __init__(self, messages: list[object]) -> None:
        self.messages = messages
        self.returned: list[object] = []
        self.changed = threading.Condition()
        self.is_closed = False

    def open(self, listener: Callable[[Any, Any], None]) -> Client:
        def run() -> None:
            for message in self.messages:
                listener(self, message)
                with self.changed:
                    self.returned.append(message)
                    self.changed.notify()

        self.thread = threading.Thread(target=run)
        self.thread.start()
        return self

    def wait_until_returned(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.returned) >= count, WAIT_S)

    def has_message_available(self) -> bool:
        return len(self.returned) < len(self.messages)

    def close(self) -> None:
        self.is_closed = True


class Wrapper:
    """The client's Python message."""

    def __init__(self, inner: object) -> None:
        self._message = inner


def test_the_client_goes_on_when_the_next_message_is_read() -> None:
    client = Client([Wrapper("a"), Wrapper("b"), "c"])
    reader = StepwiseReader(client.open)
    assert reader.read_next(10_000) == "a"
    assert client.returned == []
    assert reader.has_message_available()
    assert reader.read_next(10_000) == "b"
    assert len(client.returned) == 1
    assert reader.read_next(10_000) == "c"
    with pytest.raises(pulsar.Timeout):
        reader.read_next(1)
    client.wait_until_returned(3)
    assert not reader.has_message_available()
    reader.close()
    client.thread.join(WAIT_S)
    assert client.is_closed


def test_a_closed_reader_lets_the_client_go() -> None:
    client = Client(["a", "b", "c"])
    reader = StepwiseReader(client.open)
    assert reader.read_next(10_000) == "a"
    reader.close()
    client.thread.join(WAIT_S)
    assert not client.thread.is_alive()
    assert client.returned == ["a", "b", "c"]

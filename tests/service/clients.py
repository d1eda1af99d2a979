"""What the tests with real clients share: quiet clients, their messages, free ports."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pulsar

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
SHARED, FAILOVER = pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover
EARLIEST = pulsar.InitialPosition.Earliest

RECEIVE_MS = 15_000
"""How long a message may take that has to come."""

SILENCE_MS = 300
"""How long is listened for a message that must not come."""

Id = tuple[int, int, int, int]


def full(name: str) -> str:
    """The topic's full name."""
    return f"persistent://public/default/{name}"


@contextmanager
def client_of(url: str, **more: Any) -> Iterator[pulsar.Client]:
    """A client that is closed at the end."""
    client = pulsar.Client(url, logger=QUIET, **more)
    try:
        yield client
    finally:
        client.close()


def id_of(message_id: pulsar.MessageId) -> Id:
    """A message id that compares and counts as equal by what it says."""
    return (
        message_id.partition(),
        message_id.ledger_id(),
        message_id.entry_id(),
        message_id.batch_index(),
    )


def send_all(producer: pulsar.Producer, count: int, text: str = "m{}") -> list[pulsar.MessageId]:
    """Send ``m0``, ``m1``, …; returns their ids."""
    found: dict[int, pulsar.MessageId] = {}

    def stored(number: int) -> Callable[[pulsar.Result, pulsar.MessageId], None]:
        def told(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            assert result == pulsar.Result.Ok
            found[number] = message_id

        return told

    for number in range(count):
        producer.send_async(text.format(number).encode(), stored(number))
    producer.flush()
    wait_until(lambda: len(found) == count)
    return [found[number] for number in range(count)]


def texts(count: int, begin: int = 0, text: str = "m{}") -> list[str]:
    """What :func:`send_all` sends."""
    return [text.format(number) for number in range(begin, count)]


def receive(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """The next messages, which have to come."""
    return [consumer.receive(RECEIVE_MS) for _ in range(count)]


def data(messages: list[pulsar.Message]) -> list[str]:
    """Their payloads as text."""
    return [message.data().decode() for message in messages]


def is_silent(consumer: pulsar.Consumer) -> bool:
    """Whether nothing comes for a while."""
    try:
        consumer.receive(SILENCE_MS)
    except pulsar.Timeout:
        return True
    return False


def wait_until(
    condition: Callable[[], bool], timeout_s: float = 20.0, each_s: float = 0.01
) -> None:
    """Return when ``condition`` holds, which it must within the time."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(each_s)


PORTS: Final = range(10_000, 32_000)
"""Below those that systems hand out for port 0 and for outgoing connections."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses, for a broker that comes back at the same address.

    The system gives none of them to other processes while the broker is away.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            break
    return found

"""A disk that does not do what it should: one clear sentence, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pulsar
import pytest

from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full, wait_until
from tests.service.measuring import topic_path
from tests.service.process import BrokerProcess, StartFailedError

Make = Callable[..., BrokerProcess]

SEGMENT_BYTES = 64 * 1024 * 1024
"""A file of the log. With a limit just below it none can be made: a disk without room for it."""

PAYLOAD = b"x" * (4 * 1024 * 1024)


def sentence(broker: BrokerProcess) -> str:
    """The one sentence of a start that fails."""
    with pytest.raises(StartFailedError) as caught:
        broker.start()
    assert caught.value.status == 1
    lines = caught.value.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    return lines[0]


def test_a_directory_that_nobody_may_write_to(make_broker: Make) -> None:
    broker = make_broker()
    broker.data_path = Path("/proc/headgate")
    text = sentence(broker)
    assert text.startswith("Error: data directory /proc/headgate cannot be used: ")


def test_a_file_in_the_way(make_broker: Make) -> None:
    broker = make_broker()
    broker.data_path.mkdir()
    (broker.data_path / "lock").mkdir()
    text = sentence(broker)
    assert text == f"Error: data directory {broker.data_path} cannot be used: Is a directory"


def test_a_disk_that_takes_nearly_nothing(make_broker: Make) -> None:
    broker = make_broker()
    broker.wrapper = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh"]
    text = sentence(broker)
    assert text.startswith(f"Error: metadata file {broker.data_path}/metadata.sqlite3: ")
    broker.wrapper = []
    assert broker.start().get("/admin/v2/brokers/health") == (200, b"ok")


@contextmanager
def no_room_for_files(pid: int, size_bytes: int) -> Iterator[None]:
    """Files of a running process may not grow beyond this."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def number_of(message: pulsar.Message) -> int:
    return int(message.data().partition(b" ")[0])


def test_a_disk_that_fills_up_and_gets_room_again(make_broker: Make) -> None:
    """The client repeats what is refused, so what met the full disk is stored in the end."""
    broker = make_broker().start()
    topic = full("fills")
    stored: list[int] = []
    enough = threading.Event()

    def publish(producer: pulsar.Producer) -> None:
        while not enough.is_set():
            producer.send(str(len(stored)).encode() + b" " + PAYLOAD)
            stored.append(len(stored))

    with (
        client_of(broker.service_url) as reading,
        client_of(broker.service_url) as writing,
        ThreadPoolExecutor(1) as pool,
        ExitStack() as at_end,
    ):
        at_end.callback(enough.set)  # also if a check fails: the pool waits for the publisher
        consumer = reading.subscribe(topic, "s", initial_position=EARLIEST, receiver_queue_size=2)
        publishing = pool.submit(publish, writing.create_producer(topic))
        # The next file is made while the first one is filled.
        wait_until(lambda: len(list(broker.data_path.glob("log/*.log"))) > 1)
        with no_room_for_files(broker.pid, SEGMENT_BYTES - 1):
            wait_until(lambda: is_full(broker), 60)
            wait_until(lambda: len(stored) > 5)
            assert "the disk is full" in broker.log()
            # What is stored is delivered, and acknowledgements are taken.
            for number in range(5):
                message = consumer.receive(RECEIVE_MS)
                assert number_of(message) == number
                consumer.acknowledge(message)
            # The receipt of the last commit may still be on its way.
            wait_until(lambda: backlog(broker, topic) == len(stored) - 5)
            count = len(stored)
        # The broker looks for room once a second.
        wait_until(lambda: not is_full(broker))
        wait_until(lambda: len(stored) > count)
        enough.set()
        publishing.result(30)

    assert broker.kill() == -9
    broker.start()
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s")
        found = [number_of(consumer.receive(RECEIVE_MS)) for _ in stored[5:]]
    assert found == stored[5:]
    assert os.path.getsize(broker.log_path) < 100_000


def is_full(broker: BrokerProcess) -> bool:
    return broker.get("/admin/v2/brokers/health")[0] == 503


def backlog(broker: BrokerProcess, topic: str) -> int:
    stats = json.loads(broker.get(f"{topic_path(topic)}/stats")[1])
    return int(stats["subscriptions"]["s"]["msgBacklog"])

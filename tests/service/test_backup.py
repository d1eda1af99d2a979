"""Backups of a real broker under load, restored and started; and ``kill -9`` in the middle of each.

The load publishes with receipts, acknowledges, and creates and deletes topics. What is restored has
every message whose receipt came before the backup began, none that was sent after it ended, and in
between the beginning of what was sent.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
import pytest

from tests.service.clients import client_of, data, full, receive, send_all, wait_until
from tests.service.process import BrokerProcess, StartFailedError

MakeBroker = Callable[..., BrokerProcess]
LARGE_BYTES = 1_000_000
LARGE_COUNT = 150
SLOW = "25M"
"""A rate at which a backup of the large messages takes seconds."""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "headgate.cli", *words]


def run(*words: str) -> dict[str, object]:
    """Run a command that must succeed; its JSON."""
    done = subprocess.run(command(*words, "--json"), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout)
    return found


def killed_in_the_middle(is_far_enough: Callable[[], bool], *words: str) -> None:
    """Run a command and end it without giving it a chance once it is far enough."""
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE)
    try:
        wait_until(is_far_enough, 60)
        assert process.poll() is None, "it ended too soon"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fill(broker: BrokerProcess) -> None:
    """Several segments of messages that nobody acknowledges."""
    with client_of(broker.service_url) as client:
        client.subscribe(full("large"), "keeps").close()
        producer = client.create_producer(
            full("large"), max_pending_messages=20, block_if_queue_full=True
        )
        for at in range(LARGE_COUNT):
            producer.send_async(at.to_bytes(4, "big") * (LARGE_BYTES // 4), lambda *_: None)
        producer.flush()


class Load:
    """Publishes numbers, acknowledges the first ones, and makes and deletes topics."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.sent = self.receipts = 0
        self.ledgers: set[int] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._publish, self._change)]

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            wait_until(lambda: self.receipts > 50, 30)
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def _publish(self) -> None:
        with client_of(self.broker.service_url) as client:
            producer = client.create_producer(full("numbers"), batching_enabled=False)
            while not self._over.is_set():
                self.sent += 1
                found = producer.send(str(self.sent - 1).encode())
                self.receipts += 1
                self.ledgers.add(found.ledger_id())

    def _change(self) -> None:
        at = 0
        while not self._over.is_set():
            at += 1
            path = f"/admin/v2/persistent/public/default/short-{at}"
            self.broker.request("PUT", path)
            with client_of(self.broker.service_url) as client:
                client.create_producer(full(f"short-{at}")).send(b"x" * 10_000)
            if at % 2:
                self.broker.request("DELETE", f"{path}?force=true")


def numbers(client: pulsar.Client, subscription: str, silence_ms: int = 1_500) -> list[int]:
    """What a subscription delivers until it is silent."""
    consumer = client.subscribe(full("numbers"), subscription)
    found = []
    try:
        while True:
            message = consumer.receive(silence_ms)
            found.append(int(message.data()))
            consumer.acknowledge(message)
    except pulsar.Timeout:
        return found


def acknowledge_a_part(client: pulsar.Client) -> None:
    """Two messages of a batch of five."""
    consumer = client.subscribe(full("parts"), "s", batch_index_ack_enabled=True)
    producer = client.create_producer(
        full("parts"), batching_enabled=True, batching_max_publish_delay_ms=5_000
    )
    send_all(producer, 5)
    messages = receive(consumer, 5)
    consumer.acknowledge(messages[1])
    consumer.acknowledge(messages[3])
    consumer.close()


def test_a_backup_under_load_comes_back_as_it_was(make_broker: MakeBroker, tmp_path: Path) -> None:
    broker = make_broker().start()
    fill(broker)
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full("numbers"), "s")
        client.subscribe(full("numbers"), "all").close()
        acknowledge_a_part(client)
        folder = str(tmp_path / "backup")
        load = Load(broker)
        with load.running():
            for message in receive(consumer, 20):
                consumer.acknowledge(message)
            time.sleep(1)  # acknowledgements are stored within 50 ms, clients gather for 100 ms
            consumer.close()
            before = load.receipts
            row = run("backup", "--to", folder, "--admin-url", broker.admin_url, "--rate", SLOW)
            after = load.sent
            wait_until(lambda: load.sent > after + 20, 30)
            again = run("backup", "--to", folder, "--admin-url", broker.admin_url)
    assert row["running"] is True
    assert int(str(row["copiedBytes"])) > 100e6
    assert int(str(again["copiedBytes"])) < 70e6
    ledgers = load.ledgers
    assert broker.terminate() == 0
    new = make_broker("restored")
    run("restore", "--from", folder, "--generation", "1", "--data-dir", str(new.data_path))
    assert run("ledger", "verify", "--data-dir", str(new.data_path))["isSound"]
    new.start()
    with client_of(new.service_url) as client:
        found = numbers(client, "all")
        assert found == list(range(len(found)))
        assert before <= len(found) <= after
        assert numbers(client, "s") == found[20:]
        parts = client.subscribe(full("parts"), "s")
        assert data(receive(parts, 3)) == ["m0", "m2", "m4"]
        large = client.subscribe(full("large"), "keeps")
        for at in range(LARGE_COUNT):
            assert large.receive(10_000).data()[:4] == at.to_bytes(4, "big")
        producer = client.create_producer(full("numbers"))
        assert producer.send(b"7").ledger_id() > max(ledgers)


def test_kills_in_the_middle_of_a_backup_and_a_restore(
    make_broker: MakeBroker, tmp_path: Path
) -> None:
    broker = make_broker().start()
    fill(broker)
    folder = tmp_path / "backup"
    to = ("--to", str(folder))
    online = ("--admin-url", broker.admin_url)

    killed_in_the_middle(
        lambda: stored_bytes(folder) > 80e6, "backup", *to, *online, "--rate", SLOW
    )
    assert run("backup", *to, *online)["generation"] == 1  # it waits for the lease to end
    with client_of(broker.service_url) as client:
        client.create_producer(full("later")).send(b"later")

    # The broker is killed while it holds its files.
    process = subprocess.Popen(
        command("backup", *to, *online, "--rate", "2M"), stderr=subprocess.PIPE
    )
    wait_until((folder / "files" / "incoming.tmp").exists, 30)
    broker.kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"the broker went away during the backup" in errors
    listed = subprocess.run(
        command("restore", "--from", str(folder), "--list", "--json"),
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert [row["generation"] for row in json.loads(listed.stdout)] == [1]

    broker.start()
    assert not list((broker.data_path / "backup-source").iterdir())
    assert broker.terminate() == 0
    row = run("backup", *to, "--data-dir", str(broker.data_path))
    assert (row["generation"], row["running"]) == (2, False)

    new = make_broker("restored")
    source = ("--from", str(folder), "--data-dir", str(new.data_path))
    killed_in_the_middle(
        lambda: stored_bytes(new.data_path) > 50e6, "restore", *source, "--rate", SLOW
    )
    with pytest.raises(StartFailedError, match="run headgate restore again"):
        new.start()
    refused = subprocess.run(
        command("ledger", "repair", "--data-dir", str(new.data_path)),
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (refused.returncode, b"unfinished restore" in refused.stderr) == (2, True)
    run("restore", *source)
    assert run("ledger", "verify", "--data-dir", str(new.data_path))["isSound"]
    new.start()
    with client_of(new.service_url) as client:
        consumer = client.subscribe(
            full("later"), "s", initial_position=pulsar.InitialPosition.Earliest
        )
        assert consumer.receive(10_000).data() == b"later"

"""Metadata and log of a real broker, one lost or from yesterday: refused, and all is kept."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full, wait_until
from tests.service.process import BrokerProcess, StartFailedError

Make = Callable[..., BrokerProcess]
METADATA = ("metadata.sqlite3", "metadata.sqlite3-wal", "metadata.sqlite3-shm")


def publish(broker: BrokerProcess, topic: str, *texts: str) -> None:
    with client_of(broker.service_url) as client:
        producer = client.create_producer(full(topic))
        for text in texts:
            producer.send(text.encode())


def texts_of(broker: BrokerProcess, topic: str, count: int) -> list[str]:
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full(topic), "reads", initial_position=EARLIEST)
        return [consumer.receive(RECEIVE_MS).data().decode() for _ in range(count)]


def end(broker: BrokerProcess, how: str) -> None:
    if how == "kill -9":
        assert broker.kill() == -9
    else:
        assert broker.terminate() == 0


def copy_metadata(source: Path, target: Path) -> None:
    """Put metadata in place of what is there, as an operator does with a backup."""
    target.mkdir(exist_ok=True)
    for name in METADATA:
        (target / name).unlink(missing_ok=True)
        if (source / name).exists():
            shutil.copy(source / name, target / name)


def contents(path: Path) -> dict[str, str]:
    """Every file of a folder and what it holds; the lock is nobody's."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "lock"
    }


def refused(broker: BrokerProcess) -> str:
    """The sentence of a start that is refused, twice, with every file of the log as it was."""
    before = contents(broker.data_path / "log")
    for _ in range(2):
        with pytest.raises(StartFailedError) as caught:
            broker.start()
        assert caught.value.status == 1
        (line,) = caught.value.stderr.splitlines()
        assert contents(broker.data_path / "log") == before
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ").replace(str(broker.data_path), "DIR")


@pytest.mark.parametrize("how", ["cleanly", "kill -9"])
def test_metadata_that_are_gone(how: str, make_broker: Make, tmp_path: Path) -> None:
    broker = make_broker().start()
    publish(broker, "a", "one", "two")
    end(broker, how)
    copy_metadata(broker.data_path, tmp_path / "safe")
    copy_metadata(tmp_path / "nothing", broker.data_path)
    text = refused(broker)
    there = "DIR/log and DIR/telemetry-log"
    assert text.startswith(f"DIR/metadata.sqlite3 is missing, but {there} are there: ")
    assert f"move {there} away" in text
    copy_metadata(tmp_path / "safe", broker.data_path)
    assert texts_of(broker.start(), "a", 2) == ["one", "two"]


@pytest.mark.parametrize(
    ("made_since", "how"), [(True, "cleanly"), (False, "cleanly"), (True, "kill -9")]
)
def test_metadata_of_yesterday(
    made_since: bool, how: str, make_broker: Make, tmp_path: Path
) -> None:
    broker = make_broker().start()
    publish(broker, "a", "one", "two")
    end(broker, "cleanly")
    copy_metadata(broker.data_path, tmp_path / "yesterday")
    broker.start()
    if made_since:
        publish(broker, "b", "three")
    end(broker, how)
    copy_metadata(broker.data_path, tmp_path / "today")
    copy_metadata(tmp_path / "yesterday", broker.data_path)
    text = refused(broker)
    # A change is noted in each log's directory within a second: a kill may come between the two.
    assert re.match(r"DIR/metadata\.sqlite3 is older than DIR/(telemetry-)?log, or ", text)
    assert "headgate accept-loss metadata --data-dir DIR" in text
    copy_metadata(tmp_path / "today", broker.data_path)
    broker.start()
    if made_since:
        assert texts_of(broker, "b", 1) == ["three"]
    assert texts_of(broker, "a", 2) == ["one", "two"]


def test_metadata_of_another_broker(make_broker: Make) -> None:
    broker, other = make_broker().start(), make_broker("other").start()
    publish(broker, "a", "one")
    for each in (broker, other):
        end(each, "cleanly")
    copy_metadata(other.data_path, broker.data_path)
    assert refused(broker).startswith("DIR/metadata.sqlite3 does not belong to DIR/log: its id is ")


def test_metadata_without_the_last_changes(make_broker: Make) -> None:
    """Their write-ahead log is removed by hand after a crash."""
    broker = make_broker().start()
    publish(broker, "a", "one")
    end(broker, "kill -9")
    (broker.data_path / "metadata.sqlite3-wal").unlink()
    text = refused(broker)
    assert re.search(r"(older than|does not belong to) DIR/(telemetry-)?log", text)


def test_one_flipped_byte_in_the_wal_of_the_metadata(make_broker: Make) -> None:
    broker = make_broker().start()
    for name in "abcdefgh":
        publish(broker, name, "one")
    end(broker, "kill -9")
    path = broker.data_path / "metadata.sqlite3-wal"
    sound = path.read_bytes()
    at = len(sound) // 2
    path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
    assert "metadata file DIR/metadata.sqlite3-wal is damaged at offset" in refused(broker)
    path.unlink()  # the way out that it names
    text = refused(broker)
    assert "DIR/metadata.sqlite3 is older than DIR/" in text
    assert "headgate accept-loss metadata --data-dir DIR" in text
    path.write_bytes(sound)
    broker.start()
    assert [texts_of(broker, name, 1) for name in "abcdefgh"] == [["one"]] * 8


def test_a_log_that_is_gone_and_given_up(make_broker: Make, tmp_path: Path) -> None:
    broker = make_broker().start()
    publish(broker, "a", "one", "two")
    end(broker, "cleanly")
    (broker.data_path / "log").rename(tmp_path / "gone")
    text = refused(broker)
    assert text.startswith("DIR/log is missing or empty, but DIR/metadata.sqlite3 says that it had")
    accepted = subprocess.run(
        [sys.executable, "-m", "headgate.cli", "accept-loss", "log",
         "--data-dir", str(broker.data_path)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert accepted.stdout.endswith("Noted: the next start accepts this loss.\n")
    broker.start()
    assert "lacks: that loss was accepted" in broker.log()
    publish(broker, "a", "new")
    assert texts_of(broker, "a", 1) == ["new"]


def test_a_topic_deleted_before_a_crash_is_named_before_its_segments_go(make_broker: Make) -> None:
    broker = make_broker().start()
    publish(broker, "a", *["x" * 100_000] * 10)
    path = "/admin/v2/persistent/public/default/a"
    assert broker.request("DELETE", f"{path}?force=true", b"")[0] == 204
    end(broker, "kill -9")
    broker.start()
    wait_until(lambda: "it holds 10 entries with 100" in broker.log())

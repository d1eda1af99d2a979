"""``headgate standalone`` as a user meets it: its start, its errors, its end."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate import __version__
from tests.service.process import BrokerProcess, StartFailedError

Make = Callable[..., BrokerProcess]


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 0), timeout=10)


def _failure(broker: BrokerProcess, status: int = 1) -> str:
    """The one sentence of a start that fails; status 2 where what was said is wrong."""
    with pytest.raises(StartFailedError) as caught:
        broker.start()
    assert caught.value.status == status
    assert "Traceback" not in caught.value.stderr
    lines = [line for line in caught.value.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    return lines[0]


def test_the_ready_line_is_true(broker: BrokerProcess) -> None:
    assert broker.ready_line.startswith(f"Headgate {__version__} ready")
    assert str(broker.data_path) in broker.ready_line
    assert broker.get("/admin/v2/brokers/health") == (200, b"ok")
    status, body = broker.get("/admin/v2/clusters")
    assert (status, json.loads(body)) == (200, ["standalone"])
    _connect(broker.service_url).close()


def test_metrics_are_mounted(broker: BrokerProcess) -> None:
    for path in ("/metrics", "/metrics/"):
        status, body = broker.get(path)
        assert status == 200
        assert b"# TYPE pulsar_version_info gauge" in body
    assert broker.request("POST", "/metrics")[0] == 405


def test_a_client_that_talks_garbage_harms_nobody(broker: BrokerProcess) -> None:
    for url in (broker.service_url, broker.admin_url):
        with _connect(url) as client:
            client.sendall(b"\xff" * 4_096)
            while client.recv(4_096):
                pass
    assert broker.get("/admin/v2/brokers/health") == (200, b"ok")


def test_messages_survive_a_restart(make_broker: Make) -> None:
    broker = make_broker().start()
    topic = "persistent://public/default/kept"
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for number in range(3):
        producer.send(f"m{number}".encode())
    consumer.acknowledge(consumer.receive(10_000))
    consumer.close()
    client.close()

    broker.restart()
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    consumer = client.subscribe(topic, "s")
    got = [consumer.receive(10_000).data() for _ in range(2)]
    client.close()
    assert got == [b"m1", b"m2"]


def test_an_administrator_shuts_it_down(make_broker: Make) -> None:
    broker = make_broker().start()
    assert broker.request("POST", "/admin/v2/brokers/shutdown") == (204, b"")
    assert broker.wait() == 0
    assert "an administrator asked for it: closing" in broker.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(make_broker: Make, number: signal.Signals) -> None:
    broker = make_broker().start()
    idle_binary, idle_web = _connect(broker.service_url), _connect(broker.admin_url)
    begun_s = time.monotonic()
    assert broker.terminate(number) == 0
    with idle_binary, idle_web:
        assert idle_binary.recv(1) == idle_web.recv(1) == b""
    # Not a measurement: it must not wait for an idle client, whose connection lives for minutes.
    assert time.monotonic() - begun_s < 20
    assert "closed; everything is on disk" in broker.log()


def test_after_a_kill_it_starts_again(make_broker: Make) -> None:
    broker = make_broker().start()
    assert broker.kill() == -signal.SIGKILL
    broker.start()
    assert broker.get("/admin/v2/brokers/health") == (200, b"ok")


def test_the_log_goes_to_a_file_as_well(make_broker: Make, tmp_path: Path) -> None:
    path, moved = tmp_path / "kept.log", tmp_path / "kept.log.1"
    broker = make_broker(words=["--log-file", str(path), "--log-level", "debug"])
    assert broker.start().restart().terminate() == 0
    assert path.read_text() == broker.log()
    broker.start()
    path.rename(moved)
    assert broker.terminate() == 0
    assert path.read_text().endswith("closed; everything is on disk\n")
    assert moved.read_text() + path.read_text() == broker.log()


@pytest.mark.parametrize(
    ("name", "problem"), [("", "Is a directory"), ("none/a.log", "No such file or directory")]
)
def test_a_log_file_that_cannot_be_written_to(
    make_broker: Make, tmp_path: Path, name: str, problem: str
) -> None:
    path = tmp_path / name
    broker = make_broker(words=["--log-file", str(path)])
    text = _failure(broker, status=2)
    assert text == f"Error: --log-file {path} cannot be written to: {problem}"
    assert not broker.data_path.exists()


@pytest.mark.parametrize(
    ("word", "key"), [("--broker-port", "brokerServicePort"), ("--web-port", "webServicePort")]
)
def test_a_busy_port(make_broker: Make, word: str, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = _failure(make_broker(words=[word, str(port)]))
    assert text.startswith(f"Error: {key}={port}: the port is in use on 127.0.0.1")


def test_an_address_of_another_machine(make_broker: Make) -> None:
    broker = make_broker(words=["--set", "bindAddress=192.0.2.1", "--insecure-listen"])
    assert _failure(broker) == "Error: bindAddress='192.0.2.1' is not an address of this machine"
    assert "every client that reaches" not in broker.log()  # nobody can: it is not bound


def test_a_foreign_directory(make_broker: Make) -> None:
    broker = make_broker()
    broker.data_path.mkdir()
    (broker.data_path / "thesis.txt").write_text("mine")
    assert "holds 'thesis.txt' but no file 'format'" in _failure(broker)
    assert sorted(path.name for path in broker.data_path.iterdir()) == ["lock", "thesis.txt"]


def test_a_later_format_of_each_part(make_broker: Make) -> None:
    broker = make_broker().start()
    assert broker.terminate() == 0
    log_format = broker.data_path / "log" / "format"
    kept = log_format.read_text()
    log_format.write_text("headgate-log 99\n")
    assert "has format 'headgate-log 99'" in _failure(broker)
    log_format.write_text(kept)
    with sqlite3.connect(broker.data_path / "metadata.sqlite3") as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    assert "metadata.sqlite3 has format 99" in _failure(broker)


def test_a_directory_that_cannot_be_made(make_broker: Make) -> None:
    broker = make_broker()
    broker.data_path.write_text("a file")
    assert f"data directory {broker.data_path} cannot be used: " in _failure(broker)


def test_bad_settings(make_broker: Make, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("webServicePort=0\nmaxMessageSize=huge\n")
    text = _failure(make_broker(words=["--config", str(path)]), status=2)
    assert text.startswith(
        "Error: broker.conf:2: maxMessageSize='huge' is not allowed; use an integer"
    )


def test_another_cluster_name_on_old_data(make_broker: Make) -> None:
    broker = make_broker().start()
    assert broker.terminate() == 0
    broker.words = ["--set", "clusterName=east"]
    assert "the data directory belongs to cluster 'standalone'" in _failure(broker, status=2)


def test_warnings_of_a_start(make_broker: Make, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("bindAddress=0.0.0.0\nadvertisedAddress=127.0.0.1\nnumIOThreads=8\n")
    assert "bindAddress='0.0.0.0' is not allowed without authentication" in _failure(
        make_broker(words=["--config", str(path)]), status=2
    )
    broker = make_broker(words=["--config", str(path), "--insecure-listen"]).start()
    warnings = [line for line in broker.log().splitlines() if " WARNING " in line]
    assert len(warnings) == 3
    assert warnings[1].endswith("one key is not supported and has no effect: numIOThreads")
    assert "bindAddress=0.0.0.0: --insecure-listen is given" in warnings[2]
    assert broker.service_url.startswith("pulsar://127.0.0.1:")


def test_http_connections_are_kept_for_the_next_request(broker: BrokerProcess) -> None:
    parts = urlsplit(broker.admin_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    for _ in range(2):
        connection.request("GET", "/admin/v2/brokers/ready")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"ok")
    connection.close()


def test_telemetry_is_published_and_read_by_any_client(make_broker: Make) -> None:
    broker = make_broker(words=["--set", "headgateTelemetryIntervalMs=1000"]).start()
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    reader = client.create_reader(
        "persistent://headgate/telemetry/samples", pulsar.MessageId.earliest
    )
    messages = [reader.read_next(20_000) for _ in range(2)]
    client.close()
    assert [message.properties()["seq"] for message in messages] == ["0", "1"]
    assert broker.terminate() == 0
    assert " ERROR " not in broker.log()
    assert " WARNING " not in broker.log()

"""``headgateTelemetryNames=hash`` on a real broker: its key, its restart, what a client reads."""

from __future__ import annotations

import hashlib
import hmac
import stat
from collections.abc import Callable
from pathlib import Path

import pulsar
import pytest

from headgate.record.codec import decode
from headgate.record.fields import Kind
from tests.service.clients import client_of
from tests.service.process import BrokerProcess, StartFailedError

Make = Callable[..., BrokerProcess]

HASHING = ["--set", "headgateTelemetryIntervalMs=1000", "--set", "headgateTelemetryNames=hash"]
TOPIC = "persistent://public/default/salaries"
TELEMETRY = "persistent://headgate/telemetry/samples"


def expected_name(key: str) -> str:
    parts = [
        hmac.new(key.encode(), part.encode(), hashlib.sha256).hexdigest()[:16]
        for part in ("public", "default", "salaries")
    ]
    return "persistent://" + "/".join(parts)


def topics_told(broker: BrokerProcess) -> tuple[set[str], bytes]:
    """What the next records with rows of topics call them, and all bytes that were read."""
    data = b""
    with client_of(broker.service_url) as client:
        reader = client.create_reader(TELEMETRY, pulsar.MessageId.earliest)
        client.create_producer(TOPIC).send(b"x")
        while True:
            message = reader.read_next(20_000)
            data += message.data()
            rows = decode(message.data()).columns.get(Kind.TOPIC)
            if rows:
                return {str(name) for name in rows["topic"]}, data


def test_names_are_hashed_by_a_key_that_stays(make_broker: Make) -> None:
    broker = make_broker(words=HASHING).start()
    made = broker.data_path / "telemetry-names.key"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    key = made.read_text().strip()
    told, data = topics_told(broker)
    assert told == {expected_name(key)}
    assert b"salaries" not in data
    assert broker.terminate() == 0
    broker.start()
    assert made.read_text().strip() == key
    told, _ = topics_told(broker)
    assert told == {expected_name(key)}
    assert broker.terminate() == 0
    assert " WARNING " not in broker.log()


def test_brokers_may_share_a_key(make_broker: Make, tmp_path: Path) -> None:
    key_file = tmp_path / "names.key"
    words = [*HASHING, "--set", f"headgateTelemetryNamesKeyFile={key_file}"]
    broker = make_broker(words=words)
    with pytest.raises(StartFailedError) as caught:
        broker.start()
    assert caught.value.stderr == (
        f"Error: headgateTelemetryNamesKeyFile={key_file} cannot be used: "
        "No such file or directory\n"
    )
    key_file.write_text("the same for all of us\n")
    key_file.chmod(0o600)
    broker.start()
    assert topics_told(broker)[0] == {expected_name("the same for all of us")}
    assert not (broker.data_path / "telemetry-names.key").exists()

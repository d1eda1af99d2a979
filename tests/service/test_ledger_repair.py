"""A real broker's directory is damaged, checked, repaired and started.

What the tools say is lost is lost, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.service.clients import (
    EARLIEST,
    RECEIVE_MS,
    Id,
    client_of,
    full,
    id_of,
    send_all,
    wait_until,
)
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.test_metadata_and_log import METADATA, end

Make = Callable[..., BrokerProcess]
COUNT = 20
ACKED = 5


def ledger(broker: BrokerProcess, *words: str) -> dict[str, Any]:
    """The answer of ``headgate ledger`` on the broker's directory."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli", "ledger", *words, "--json",
         "--data-dir", str(broker.data_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["isSound"] is (done.returncode == 0)
    return found


def fill(broker: BrokerProcess, topic: str = "orders") -> list[Id]:
    """Messages of which the first ones are acknowledged; returns the ids of all."""
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full(topic), "billing", initial_position=EARLIEST)
        producer = client.create_producer(full(topic), batching_enabled=False)
        ids = [id_of(found) for found in send_all(producer, COUNT, "message {0} " * 10)]
        for _ in range(ACKED):
            consumer.acknowledge(consumer.receive(RECEIVE_MS))
    return ids


def read(broker: BrokerProcess, count: int, topic: str = "orders") -> list[Id]:
    """The ids of the next messages of the subscription."""
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full(topic), "billing")
        return [id_of(consumer.receive(RECEIVE_MS).message_id()) for _ in range(count)]


def put(broker: BrokerProcess, path: str, value: object) -> None:
    status, body = broker.request("PUT", f"/admin/v2/{path}", json.dumps(value).encode())
    assert status in (200, 204), body


def got(broker: BrokerProcess, path: str) -> Any:
    status, body = broker.get(f"/admin/v2/{path}")
    assert status == 200, body
    return json.loads(body)


def flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        ("deleted", "cleanly"),
        ("deleted", "kill -9"),
        ("a page", "cleanly"),
        ("cut short", "cleanly"),
        ("the write-ahead log", "kill -9"),
    ],
)
def test_metadata_come_back_with_names_policies_ids_and_positions(
    damage: str, how: str, make_broker: Make
) -> None:
    broker = make_broker().start()
    put(broker, "namespaces/public/own", {})
    put(broker, "persistent/public/own/parts/partitions", 3)
    limits = {"dispatchThrottlingRateInMsg": 7, "dispatchThrottlingRateInByte": -1,
              "relativeToPublishRate": False, "ratePeriodInSecond": 1}  # fmt: skip
    status, _ = broker.request(
        "POST", "/admin/v2/namespaces/public/own/dispatchRate", json.dumps(limits).encode()
    )
    assert status == 204
    ids = fill(broker)
    copy = broker.data_path / "log" / "metadata.copy"
    wait_until(lambda: copy.exists() and b"orders" in copy.read_bytes())
    end(broker, how)
    metadata, wal = (broker.data_path / name for name in METADATA[:2])
    if damage == "deleted":
        for name in METADATA:
            (broker.data_path / name).unlink(missing_ok=True)
    elif damage == "the write-ahead log":
        flip(wal, wal.stat().st_size // 2)
    elif damage == "a page":
        flip(metadata, metadata.stat().st_size // 2)
        wal.unlink(missing_ok=True)
    else:
        metadata.write_bytes(metadata.read_bytes()[:3000])
        wal.unlink(missing_ok=True)
    with pytest.raises(StartFailedError) as caught:
        broker.start()
    assert f"headgate ledger repair --dry-run --data-dir {broker.data_path}" in caught.value.stderr
    assert ledger(broker, "verify")["metadataRepair"]["isComplete"]
    assert not ledger(broker, "repair", "--dry-run")["isSound"]
    assert ledger(broker, "repair")["isSound"]
    broker.start()
    assert read(broker, COUNT - ACKED) == ids[ACKED:]
    assert got(broker, "namespaces/public/own/dispatchRate") == limits
    assert got(broker, "persistent/public/own/parts/partitions")["partitions"] == 3
    broker.restart()
    assert fill(broker, "another")


def test_a_flipped_byte_costs_the_message_that_verify_names(make_broker: Make) -> None:
    broker = make_broker().start()
    ids = fill(broker)
    end(broker, "cleanly")
    victim = b"message 12 " * 10
    file = next(p for p in (broker.data_path / "log").glob("*.log") if victim in p.read_bytes())
    flip(file, file.read_bytes().index(victim) + 5)
    costs = [c for log in ledger(broker, "verify")["logs"] for f in log["findings"]
             for c in f["costs"]]  # fmt: skip
    (cost,) = costs
    lost = ids[12]
    assert (cost["kind"], cost["topic"], cost["entries"]) == ("lost", full("orders"), 1)
    assert cost["firstMessageId"] == cost["lastMessageId"] == f"{lost[1]}:{lost[2]}"
    assert ledger(broker, "repair")["repairs"] == []
    broker.start()
    assert read(broker, 12 - ACKED) == ids[ACKED:12]  # it stops before the damage
    subprocess.run(
        [sys.executable, "-m", "headgate.cli", "admin", "--admin-url", broker.admin_url,
         "topics", "accept-damage", full("orders")],
        timeout=60, check=True,
    )  # fmt: skip
    assert read(broker, COUNT - ACKED - 1) == [i for i in ids[ACKED:] if i != lost]


def test_checkpoints_come_back_from_their_copies_or_from_a_whole_log(make_broker: Make) -> None:
    broker = make_broker().start()
    ids = fill(broker)
    end(broker, "cleanly")
    flip(next((broker.data_path / "log").glob("*.checkpoint")), 60)
    (repair,) = ledger(broker, "repair")["repairs"]
    assert repair["change"] == "write it as the sound copy"
    broker.start()
    assert read(broker, 3) == ids[ACKED : ACKED + 3]
    end(broker, "cleanly")
    for file in (broker.data_path / "log").glob("*.checkpoint*"):
        flip(file, 60)
    costs = [f["costs"] for log in ledger(broker, "repair")["logs"] for f in log["findings"]]
    assert costs
    assert not any(costs)  # the log has its first segment
    broker.start()
    assert broker.get("/admin/v2/brokers/health")[0] == 200
    assert read(broker, COUNT - ACKED) == ids[ACKED:]

"""F1: ``kill -9`` under load while topics are deleted, a cursor is moved, a quota evicts, and the
segments in which a slow topic lies beside what is gone are rewritten.

``./dev soak broker`` plays twenty rounds on one directory. Each kill comes while a rewritten
segment is in the making: its file is there.
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pulsar
import pytest

from headgate.base.units import MIB
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import EVICT, RETAINED, words
from tests.service.test_kill_nine import (
    QUIET,
    SILENT,
    TOPIC,
    Id,
    Load,
    Round,
    check_ids,
    check_log,
    id_of,
    read_everything,
)

ROUNDS = 2
EVICTED = "persistent://public/evicting/evicted"
SEEKER = "seeker"
SEND_MS = 5_000
LIMIT_BYTES = 300_000
BODY_BYTES = 4_000
EVICTING = "/admin/v2/namespaces/public/evicting"
QUOTAS = f"{EVICTING}/backlogQuota?backlogQuotaType=destination_storage"
NOT_RETAINED = b'{"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}'
TOPICS = "/admin/v2/persistent/public/default"
SLOW_REWRITING = {"headgateRewriteBytesPerSecond": 400_000}
"""So that a rewriting is under way most of the time."""
REWRITING_S_MAX = 120.0

Make = Callable[..., BrokerProcess]
Entry = tuple[int, int]
"""The ids of a ledger and of an entry in it."""


@dataclass
class Told:
    """What the broker answered to those who change things."""

    filled: set[str] = field(default_factory=set)
    """Topics with a receipt."""
    deleting: set[str] = field(default_factory=set)
    """Topics whose deletion was asked for."""
    deleted: set[str] = field(default_factory=set)
    seeks: list[Entry] = field(default_factory=list)
    """Where the cursor may stand: the last answered seek, then the one asked for."""
    seeks_answered: int = 0
    """In this round. Before the first, the cursor may stand where it was."""
    evicted_receipts: list[str] = field(default_factory=list)
    """In order, what was published against the quota."""


class Changes:
    """What goes on beside the load until the broker is killed."""

    def __init__(self, broker: BrokerProcess, number: int, told: Told, load: Round) -> None:
        self._broker, self._number, self._told, self._load = broker, number, told, load
        self._stop = threading.Event()
        self._clients: list[pulsar.Client] = []
        self._threads = [
            threading.Thread(target=self._until_killed, args=(work,), daemon=True)
            for work in (self._delete, self._seek, self._fill)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """The broker is dead."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        for client in self._clients:
            client.shutdown()

    def _until_killed(self, work: Callable[[pulsar.Client], None]) -> None:
        client = pulsar.Client(self._broker.service_url, operation_timeout_seconds=5, logger=SILENT)
        self._clients.append(client)
        try:
            work(client)
        except (pulsar.PulsarException, OSError):
            assert self._stop.wait(60), "a request failed before the broker was killed"

    def _delete(self, client: pulsar.Client) -> None:
        told = self._told
        for at in itertools.count():
            if self._stop.is_set():
                return
            name = f"short-{self._number}-{at}"
            producer = client.create_producer(
                f"persistent://public/default/{name}", send_timeout_millis=SEND_MS
            )
            for _ in range(10):
                producer.send(bytes(BODY_BYTES))
            producer.close()
            told.filled.add(name)
            if at % 3:
                told.deleting.add(name)
                assert self._broker.request("DELETE", f"{TOPICS}/{name}?force=true")[0] == 204
                told.deleted.add(name)

    def _seek(self, client: pulsar.Client) -> None:
        while len(self._load.receipts) < 50 and not self._stop.wait(0.01):
            pass
        client.subscribe(TOPIC, SEEKER).close()
        path = f"{TOPICS}/killed/subscription/{SEEKER}/resetcursor"
        while not self._stop.is_set():
            ids = [found for found in [*self._load.receipts.values()] if found[2] < 0]
            target = ids[len(self._told.seeks) * 7919 % len(ids)]
            self._told.seeks.append(target[:2])
            body = f'{{"ledgerId": {target[0]}, "entryId": {target[1]}, "partitionIndex": -1}}'
            assert self._broker.request("POST", path, body.encode())[0] == 204
            self._told.seeks[:] = self._told.seeks[-1:]
            self._told.seeks_answered += 1

    def _fill(self, client: pulsar.Client) -> None:
        client.subscribe(EVICTED, "idle", initial_position=pulsar.InitialPosition.Earliest)
        producer = client.create_producer(EVICTED, send_timeout_millis=SEND_MS)
        for at in itertools.count():
            if self._stop.is_set():
                return
            payload = f"{self._number:04} {at:06}"
            producer.send(payload.encode().ljust(BODY_BYTES))
            self._told.evicted_receipts.append(payload)


def rewritten_bytes(broker: BrokerProcess) -> float:
    """What the broker has copied forward in its main log since its start."""
    page = broker.get("/metrics/")[1].decode()
    name = r'^headgate_storage_written_bytes_total{.*log="main".*content="rewritten".*} (\S+)$'
    found = re.search(name, page, re.MULTILINE)
    return float(found[1]) if found is not None else 0.0


def kill_while_rewriting(broker: BrokerProcess) -> float:
    """Kill the broker while a rewritten segment is in the making, after at least one was completed;
    returns the bytes that were copied before."""
    log_path = broker.data_path / "log"
    deadline_s = time.monotonic() + REWRITING_S_MAX
    names = set[str]()
    while len(names) < 2:
        assert time.monotonic() < deadline_s, f"nothing was rewritten: {names}"
        names |= {path.name for path in log_path.glob("*.log.tmp")}
        time.sleep(0.002)
    copied_bytes = rewritten_bytes(broker)
    while not any(log_path.glob("*.log.tmp")):
        assert time.monotonic() < deadline_s, "no further segment was rewritten"
        time.sleep(0.002)
    broker.kill()
    assert any(log_path.glob("*.log.tmp")), "the rewriting ended just before the kill"
    return copied_bytes


def check_topics(broker: BrokerProcess, told: Told) -> None:
    """What was deleted is gone, and what nobody deleted is there."""
    listed = broker.get(TOPICS)[1].decode()
    for name in told.deleted:
        assert f'/{name}"' not in listed
    for name in told.filled - told.deleting:
        assert f'/{name}"' in listed


def check_seek(client: pulsar.Client, told: Told, log: list[tuple[str, Id]]) -> None:
    """The cursor stands at its last answered seek, or at the one that was asked for."""
    if not told.seeks_answered:
        return
    consumer = client.subscribe(TOPIC, SEEKER)
    stands_at = id_of(consumer.receive(20_000).message_id())[:2]
    entries = list(dict.fromkeys(found[:2] for _, found in log))
    # A seek to a message begins behind it, unless the client includes it.
    behind = {entries[entries.index(seek) + 1] for seek in told.seeks if seek != entries[-1]}
    assert stands_at in {*told.seeks, *behind}
    consumer.close()


def check_evicted(client: pulsar.Client, told: Told, number: int, before: str) -> str:
    """The newest are there without a gap; what was evicted stays so; returns the first."""
    last = f"{number:04} last"  # behind all others of this round
    client.create_producer(EVICTED).send(last.encode().ljust(BODY_BYTES))
    consumer = client.subscribe(EVICTED, "idle")
    found: list[str] = []
    while not found or found[-1] != last:
        found.append(consumer.receive(20_000).data().decode().rstrip())
    consumer.close()
    first = found[0]
    assert first >= before
    assert found == sorted(set(found))
    promised = [payload for payload in told.evicted_receipts if payload >= first]
    assert [payload for payload in found if payload in set(promised)] == promised
    assert len(found) * BODY_BYTES < 2 * LIMIT_BYTES
    return first


def test_what_was_answered_survives_kills_while_all_of_it_changes(
    make_broker: Make, request: pytest.FixtureRequest
) -> None:
    broker = make_broker(words=words(**RETAINED, **SLOW_REWRITING))
    broker.module = "tests.service.small_segments"
    broker.start()
    copied_bytes = 0.0
    assert broker.request("PUT", EVICTING)[0] == 204
    assert broker.request("POST", f"{EVICTING}/retention", NOT_RETAINED)[0] == 204
    quota = f'{{"limitSize": {LIMIT_BYTES}, "policy": "{EVICT}"}}'.encode()
    assert broker.request("POST", QUOTAS, quota)[0] == 204
    told, rounds, first = Told(), list[Round](), ""
    for number in range(request.config.getoption("--rounds", default=ROUNDS)):
        told.seeks.clear()
        told.seeks_answered = 0
        load = Load(broker.service_url, number)
        load.begin()
        changes = Changes(broker, number, told, load.told)
        load.work()
        copied_bytes += kill_while_rewriting(broker)
        load.told.killed_at = time.monotonic()
        changes.end()
        load.end()
        rounds.append(load.told)

        broker.start()
        client = pulsar.Client(broker.service_url, logger=QUIET)
        check_topics(broker, told)
        client.create_producer(TOPIC).send(f"last-{number}".encode())
        log = read_everything(client)
        check_seek(client, told, log)
        first = check_evicted(client, told, number, first)
        check_log(log, rounds)
        check_ids(rounds)
        client.close()
    assert told.deleted
    sys.stdout.write(
        f"{len(rounds)} kills while a segment was rewritten, {copied_bytes / MIB:.1f} MiB copied "
        f"before; {sum(len(r.receipts) for r in rounds):,} receipts, {len(told.deleted)} topics "
        "deleted\n"
    )

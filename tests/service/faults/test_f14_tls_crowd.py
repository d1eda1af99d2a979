"""Crowds over TLS: all are served or refused, and a client that comes beside them is served soon.

``./dev soak tls`` plays 10,000.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.base.units import MIB
from headgate.broker.held_memory import CONNECTION_BYTES, TLS_UNITS
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from tests.service.clients import client_of, full, wait_until
from tests.service.neighbour import processor_times_s, resident_bytes
from tests.service.process import BrokerProcess
from tests.service.tls_crowd import Where, connected, crowd, next_command
from tests.trial_certificates import Trial

pytestmark = pytest.mark.alone

LOOKUP_P99_S = 1.0
LOOKUP_PAUSE_S = 0.05
BESIDE_BYTES = 48 * MIB
"""What a crowd may make the broker grow by besides its connections: topics, and what the allocator
keeps."""
IDLE_S = 2.0


class Newcomers:
    """New clients, one after the other, each with a look-up."""

    def __init__(self, broker: BrokerProcess, where: Where, trial: Trial) -> None:
        self._broker, self._where, self._context = broker, where, trial.context()
        self._is_over = threading.Event()
        self.took_s: list[float] = []
        self.resident_bytes = 0
        self.refused = 0

    @contextmanager
    def coming(self) -> Iterator[None]:
        before = processor_times_s(self._broker.pid)
        thread = threading.Thread(target=self._come)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
        after = processor_times_s(self._broker.pid)
        ran_s, waited_s = (b - a for a, b in zip(before, after, strict=True))
        # Where the broker gets a processor a part of the time only, all it does takes longer.
        self.slower = 1 + waited_s / max(ran_s, 0.01)

    def p99_s(self) -> float:
        return sorted(self.took_s)[int(0.99 * len(self.took_s))]

    def _come(self) -> None:
        while not self._is_over.wait(LOOKUP_PAUSE_S):
            began_s = time.monotonic()
            peer = connected(self._where, self._context)
            if peer is None:
                self.refused += 1
                continue
            with peer:
                peer.sendall(frames.lookup(1, full("newcomer")))
                assert next_command(peer).type == CommandType.LOOKUP_RESPONSE
            self.took_s.append(time.monotonic() - began_s)
            self.resident_bytes = max(self.resident_bytes, resident_bytes(self._broker.pid))


def test_a_crowd_over_tls_is_served_and_newcomers_too(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, clients: int
) -> None:
    trial = Trial(tmp_path / "certs")
    connections_bytes = clients * TLS_UNITS * CONNECTION_BYTES
    settings = trial.settings | {"headgateClientMemoryMB": str(2 * connections_bytes // MIB)}
    broker = make_broker(words=[w for k, v in settings.items() for w in ("--set", f"{k}={v}")])
    broker.start()
    where = Where(broker.service_url_tls, trial.ca)
    before = resident_bytes(broker.pid)
    newcomers = Newcomers(broker, where, trial)
    with newcomers.coming(), crowd(where, clients) as others:
        assert others.next_count() == clients
        assert _connections(broker) >= clients
        time.sleep(IDLE_S)
        assert others.publish() == clients
    grown = newcomers.resident_bytes - before
    sys.stdout.write(
        f"{clients:,} clients over TLS: grew {grown / MIB:.0f} MiB,"
        f" {grown / clients / 1024:.1f} KiB each, {len(newcomers.took_s)} newcomers,"
        f" p99 {newcomers.p99_s() * 1e3:.0f} ms, {newcomers.slower:.1f} times slower for want of a"
        " processor\n"
    )
    assert newcomers.refused == 0
    assert newcomers.p99_s() < LOOKUP_P99_S * newcomers.slower
    assert grown <= connections_bytes + BESIDE_BYTES
    wait_until(lambda: _connections(broker) == 0)
    with client_of(broker.service_url) as client:
        assert client.create_producer(full("later")).send(b"last")
    assert "Traceback" not in broker.log()


def _connections(broker: BrokerProcess) -> int:
    """Connections that are open."""
    page = broker.get("/metrics/")[1].decode()
    name = "pulsar_active_connections{"
    return round(
        sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name))
    )

"""F18: the process is stopped for seconds under load and goes on, or is asked to end under load.

Nothing with a receipt is lost or doubled, and a clean end takes at most ten seconds.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pulsar

from tests.service.process import BrokerProcess
from tests.service.test_kill_nine import QUIET, TOPIC, Load, check_log, read_everything

STOP_S = 5.0
END_S_MAX = 10.0


def test_a_stop_under_load_and_a_clean_end_under_load(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker().start()
    load = Load(broker.service_url, 0)
    load.begin()
    load.work()
    before = len(load.told.receipts)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        time.sleep(STOP_S)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    load.work()
    assert len(load.told.receipts) > before
    assert broker.get("/admin/v2/brokers/health")[0] == 200

    begun_s = time.monotonic()
    assert broker.terminate() == 0
    assert time.monotonic() - begun_s < END_S_MAX
    load.end()
    assert "closed; everything is on disk" in broker.log()

    broker.start()
    client = pulsar.Client(broker.service_url, logger=QUIET)
    try:
        client.create_producer(TOPIC).send(b"last")
        check_log(read_everything(client), [load.told])
    finally:
        client.close()

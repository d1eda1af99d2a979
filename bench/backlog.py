"""A process that reads a topic from its first entry again and again: somebody who catches up."""

from __future__ import annotations

import sys
import time

from bench.client import RECEIVER_QUEUE, Subscriber
from headgate.wire.codes import SubscriptionType

BEHIND_S_MAX = 0.2
"""A reader that is further behind its rate goes on from where it is."""


def read_forever(port: int, topic: str, count: int, rate: int) -> None:
    """Read the topic's ``count`` entries in rounds, ``rate`` a second (0: as fast as they come)."""
    rounds = 0
    while True:
        rounds += 1
        name = f"catches-up-{rounds}"
        reader = Subscriber(port, topic, name, SubscriptionType.EXCLUSIVE, durable=False)
        reader.open()
        began_s = time.perf_counter()
        got = 0
        while got < count:
            got += reader.receive()
            ahead_s = (got - RECEIVER_QUEUE) / rate if rate else 0.0
            pause_s = began_s + ahead_s - time.perf_counter()
            if pause_s > 0:
                time.sleep(pause_s)
            elif rate and pause_s < -BEHIND_S_MAX:
                # It was stopped: what it did not read meanwhile is not made up for.
                began_s -= pause_s
        reader.close()


def main() -> None:
    """Arguments: port, topic, number of its entries, entries a second."""
    port, topic, count, rate = sys.argv[1:]
    print(f"ready at port {port}", flush=True)
    read_forever(int(port), topic, int(count), int(rate))

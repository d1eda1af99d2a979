"""A process that asks a broker at a steady pace and prints how long the answers took."""

from __future__ import annotations

import select
import sys
import time

from bench.client import Client
from bench.report import quantile
from headgate.wire import client

PAUSE_S = 0.005


def main() -> None:
    """Argument: the port. Prints p99 and maximum in milliseconds when its stdin ends."""
    connection = Client(int(sys.argv[1]))
    print("ready", flush=True)
    ping, taken_ms = client.ping(), []
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        began_s = time.perf_counter()
        connection.socket.sendall(ping)
        connection.socket.recv(65_536)
        taken_ms.append(1_000 * (time.perf_counter() - began_s))
    print(quantile(taken_ms, 0.99), max(taken_ms), flush=True)


if __name__ == "__main__":
    main()

"""How long a subscription by a pattern takes that finds 10,000 topics.

The topics exist before. A client of plain sockets does what the official ones do: list the topics
by the pattern, open a watcher, and ask for each topic's partitions and broker before it subscribes,
100 requests at a time. Then the C++ client with Python's binding does all of it by itself: with
Headgate, and with the peer (``bench/peer.py``), which answers each request and keeps nothing.

    ./dev bench pattern_subscription
    ./dev bench pattern_subscription --topics 2000
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable

import pulsar

from bench.audience import ask_all
from bench.client import Client
from bench.report import Table
from bench.servers import Server, headgate, peer, scratch
from headgate.wire import client
from headgate.wire.codes import SubscriptionType

TOPICS = 10_000
BASE = "persistent://public/default/orders-"
PATTERN = f"{BASE}.*"
SECONDS_MAX = 2.0


class Measured:
    """Seconds on the wall, and the broker's CPU."""

    def __init__(self, server: Server, topics: int, table: Table) -> None:
        self.server = server
        self.topics = topics
        self.seconds = 0.0
        self.table = table

    def take(self, name: str, work: Callable[[], object]) -> float:
        """Measure one part; returns its seconds."""
        cpu_ns, began_s = self.server.cpu_ns(), time.perf_counter()
        work()
        took_s = time.perf_counter() - began_s
        each_us = (self.server.cpu_ns() - cpu_ns) / self.topics / 1_000
        self.table.add(name, f"{took_s:.2f} s  ({each_us:.1f} us of the broker's CPU a topic)")
        self.seconds += took_s
        return took_s


def measure(topics: int) -> Table:
    """All parts on one broker."""
    names = [f"{BASE}{number:05}" for number in range(topics)]
    with scratch() as folder:
        server = headgate(folder)
        try:
            maker = Client(server.port)
            ask_all(
                maker, [client.subscribe(n, n, topic, "first") for n, topic in enumerate(names)]
            )
            maker.close()
            return _parts(server, names)
        finally:
            server.close()


def _parts(server: Server, names: list[str]) -> Table:
    title = f"A subscription by a pattern that finds {len(names):,} topics"
    found = Measured(server, len(names), Table(title))
    connection = Client(server.port)
    list_ = client.get_topics_of_namespace(1, "public/default", pattern=PATTERN)
    watch = client.watch_topic_list(2, 1, "public/default", PATTERN)
    found.take("listing", lambda: connection.ask(list_))
    found.take("opening a watcher", lambda: connection.ask(watch))
    parts = {
        "partitions": [client.partitioned_metadata(n, topic) for n, topic in enumerate(names)],
        "lookups": [client.lookup(n, topic) for n, topic in enumerate(names)],
        "subscribing, new subscriptions": [
            client.subscribe(n, n, topic, "s", kind=SubscriptionType.SHARED)
            for n, topic in enumerate(names)
        ],
    }
    for name, requests in parts.items():
        found.take(name, lambda requests=requests: ask_all(connection, requests))  # type: ignore[misc]
    connection.close()
    found.table.check("all of that", found.seconds, "s", SECONDS_MAX)
    took_s = subscribe_officially(found, "the C++ client, new subscriptions", "official")
    found.table.aim("the C++ client", took_s, "s", SECONDS_MAX)
    subscribe_officially(found, "the C++ client, subscriptions that exist", "s")
    return found.table


def subscribe_officially(found: Measured, name: str, subscription: str) -> float:
    """Subscribe with the C++ client; returns the seconds that it took."""
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    official = pulsar.Client(f"pulsar://127.0.0.1:{found.server.port}", logger=quiet)
    own_ns = time.process_time_ns()
    took_s = found.take(
        name,
        lambda: official.subscribe(
            re.compile(PATTERN), subscription, pulsar.ConsumerType.Shared, receiver_queue_size=1
        ),
    )
    own_us = (time.process_time_ns() - own_ns) / found.topics / 1_000
    found.table.add("... and of the client's own CPU for a topic", f"{own_us:.1f} us")
    official.close()
    return took_s


def measure_peer(table: Table, topics: int) -> None:
    """The C++ client with the peer: what the client takes by itself."""
    with scratch() as folder:
        server = peer(folder)
        try:
            maker = Client(server.port)
            names = [f"{BASE}{number:05}" for number in range(topics)]
            ask_all(maker, [client.subscribe(n, n, topic, "f") for n, topic in enumerate(names)])
            maker.close()
            subscribe_officially(Measured(server, topics, table), "the C++ client, the peer", "x")
        finally:
            server.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=TOPICS)
    topics = parser.parse_args().topics
    table = measure(topics)
    measure_peer(table, topics)
    table.print()


if __name__ == "__main__":
    main()

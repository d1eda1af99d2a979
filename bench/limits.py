"""Ten thousand limited subscriptions, and a thousand limited topics, in a real broker.

First question: what it costs to hold 10,000 subscriptions at one message a second, above what the
same deliveries cost without a limit: 100 topics with 100 readers each, once with a backlog and the
limit, once without a limit and with one message a second published on each topic. That comes to
100 readers at once, which is cheaper than to each at its own instant; the difference counts
against the limits. Second: how
exactly 1,000 topics keep 1,000 messages a second each, in batches of 100, all at once.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from bench.audience import Audience, Feeder, hold, listen, wait_for
from bench.client import entry
from bench.report import Table, number
from bench.servers import Server, headgate, scratch

TOPIC = "persistent://public/default/bench-limits-{}"
CONNECTIONS = 4
SETTLE_S = 3.0
"""What came at once when a backlog began has left every window by then."""
SPARE_ENTRIES = 20
"""Of every backlog, so that it does not end before the measurement."""

READERS_TOPICS = 100
READERS_PER_TOPIC = 100
READER_PAYLOAD_BYTES = 100
READER_PERMITS = 10_000
HELD_CORE_PERCENT_AIM = 5.0

PACED_TOPICS = 1_000
PACED_PER_S = 1_000
PACED_BATCH = 100
PACED_PAYLOAD_BYTES = 4
PACED_ERROR_PERCENT_AIM = 2.0
CACHE_MIB = 256
"""All batches in memory: what is read from disk is another bench's question."""


@dataclass
class Spent:
    """One stretch of deliveries: entries, seconds, the server's CPU in them, and how long it stood
    in line for a CPU that others had."""

    entries: int
    seconds: float
    cpu_s: float
    waited_s: float = 0.0

    @property
    def core_percent(self) -> float:
        """CPU of the process, all threads, as a share of one core."""
        return 100 * self.cpu_s / self.seconds


class Hall:
    """A server with its topics and the readers of each, on a few connections."""

    def __init__(self, server: Server, topics: int, readers_per_topic: int) -> None:
        self.server = server
        self.topics = [TOPIC.format(number) for number in range(topics)]
        hold(server.port, self.topics)
        self._readers_per_topic = readers_per_topic
        self.audiences: list[Audience] = []

    def admit(self, permits: int) -> None:
        """Let the readers in, each with so many permits; deliveries begin."""
        places = self.topics * self._readers_per_topic
        port = self.server.port
        self.audiences = [Audience(port, places[i::CONNECTIONS]) for i in range(CONNECTIONS)]
        for audience in self.audiences:
            audience.open(permits)

    def received(self) -> list[int]:
        """Entries by reader."""
        return [count for audience in self.audiences for count in audience.entries]

    def watch(self, seconds: float, feeder: Feeder | None = None) -> Spent:
        """Receive for so long; ``feeder`` publishes once a second on each topic meanwhile."""
        server, entries_before = self.server, sum(self.received())
        cpu_before_ns, waited_before_ns = server.cpu_ns(), server.waited_for_cpu_ns()
        sent, topics = 0, len(self.topics)

        def feed(gone_s: float) -> None:
            nonlocal sent
            while feeder is not None and sent < gone_s * topics:
                feeder.send(sent % topics)
                sent += 1

        began_s = time.perf_counter()
        listen(self.audiences, seconds, feed)
        lasted_s = time.perf_counter() - began_s
        cpu_s = (server.cpu_ns() - cpu_before_ns) / 1e9
        waited_s = (server.waited_for_cpu_ns() - waited_before_ns) / 1e9
        if feeder is not None:
            feeder.receive(sent)
        return Spent(sum(self.received()) - entries_before, lasted_s, cpu_s, waited_s)

    def close(self) -> None:
        """End the readers and the server."""
        for audience in self.audiences:
            audience.close()
        self.server.close()


def deliveries_alone(folder: Path, seconds: float) -> Spent:
    """10,000 deliveries a second that only the publisher paces."""
    hall = Hall(headgate(folder, name="free"), READERS_TOPICS, READERS_PER_TOPIC)
    try:
        feeder = Feeder(hall.server.port, hall.topics, entry(READER_PAYLOAD_BYTES))
        hall.admit(READER_PERMITS)
        hall.watch(SETTLE_S, feeder)
        return hall.watch(seconds, feeder)
    finally:
        hall.close()


def deliveries_held(folder: Path, seconds: float) -> Spent:
    """10,000 deliveries a second, one for each subscription as its limit allows."""
    settings = ["dispatchThrottlingRatePerSubscriptionInMsg=1"]
    hall = Hall(headgate(folder, settings, name="held"), READERS_TOPICS, READERS_PER_TOPIC)
    try:
        feeder = Feeder(hall.server.port, hall.topics, entry(READER_PAYLOAD_BYTES))
        feeder.publish_everywhere(int(SETTLE_S + seconds) + SPARE_ENTRIES)
        feeder.close()
        hall.admit(READER_PERMITS)
        hall.watch(SETTLE_S)
        return hall.watch(seconds)
    finally:
        hall.close()


@dataclass
class Paces:
    """How evenly many topics were paced."""

    messages: list[int]
    """Of each topic."""
    spent: Spent

    def error_percent(self) -> float:
        """The largest distance of any topic from its limit."""
        due = PACED_PER_S * self.spent.seconds
        return 100 * max(abs(count - due) for count in self.messages) / due


def pace_topics(folder: Path, seconds: float) -> Paces:
    """Deliver batches on many limited topics at once."""
    settings = [
        f"dispatchThrottlingRatePerTopicInMsg={PACED_PER_S}",
        f"managedLedgerCacheSizeMB={CACHE_MIB}",
    ]
    hall = Hall(headgate(folder, settings, name="paced"), PACED_TOPICS, 1)
    try:
        body = entry(PACED_PAYLOAD_BYTES, PACED_BATCH)
        feeder = Feeder(hall.server.port, hall.topics, body, PACED_BATCH)
        entries_per_s = PACED_PER_S // PACED_BATCH
        feeder.publish_everywhere(int((seconds + SETTLE_S) * entries_per_s) + SPARE_ENTRIES)
        feeder.close()
        hall.admit(1_000 * PACED_PER_S)
        wait_for(hall.audiences, entries_per_s)
        hall.watch(SETTLE_S)
        before = hall.received()
        spent = hall.watch(seconds)
        counts = [
            (after - earlier) * PACED_BATCH
            for after, earlier in zip(hall.received(), before, strict=True)
        ]
    finally:
        hall.close()
    return Paces(counts, spent)


def tabulate_held(held: Spent, alone: Spent) -> Table:
    """The figures of the first question."""
    count = READERS_TOPICS * READERS_PER_TOPIC
    table = Table(f"CPU of a broker that holds {count:,} subscriptions at one message a second")
    for name, spent in (("deliveries alone", alone), ("under the limit", held)):
        rate = number(spent.entries / spent.seconds)
        percent = number(spent.core_percent)
        table.add(name, f"{percent} % of a core at {rate} deliveries/s")
    # For the same number of deliveries.
    above = 100 * count * (held.cpu_s / held.entries - alone.cpu_s / alone.entries)
    table.aim("the limits alone", above, "% of a core", HELD_CORE_PERCENT_AIM)
    return table


def tabulate_paces(paces: Paces) -> Table:
    """The figures of the second question."""
    spent = paces.spent
    due = PACED_PER_S * spent.seconds
    table = Table(
        f"{PACED_TOPICS:,} topics at {PACED_PER_S:,} messages/s each, in batches of {PACED_BATCH}"
    )
    total = number(sum(paces.messages) / spent.seconds)
    table.add("all topics together", f"{total} messages/s for {number(spent.seconds)} s")
    table.add("one batch, of what a topic is due", f"{number(100 * PACED_BATCH / due)} %")
    for name, count in (("least", min(paces.messages)), ("most", max(paces.messages))):
        table.add(f"the topic that got {name}, of what it is due", f"{100 * count / due:.1f} %")
    table.aim("largest error of any topic", paces.error_percent(), "%", PACED_ERROR_PERCENT_AIM)
    # A stall of more than 10 ms is not caught up (law 1.2), whoever has the CPU meanwhile.
    waited = number(100 * spent.waited_s / spent.seconds)
    table.add("the broker", f"{number(spent.core_percent)} % of a core, {waited} % waiting for one")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter")
    options = parser.parse_args()
    seconds = 6.0 if options.quick else 12.0
    with scratch() as folder:
        alone = deliveries_alone(folder, seconds)
        tabulate_held(deliveries_held(folder, seconds), alone).print()
        tabulate_paces(pace_topics(folder, seconds)).print()


if __name__ == "__main__":
    main()

"""CPU for each message, published and delivered, beside a peer without an engine: at most twice."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import Publisher, Subscriber, entry, publish
from bench.disk import RawDisk
from bench.report import Table, median, number
from bench.servers import Server, headgate, peer, scratch, splitter
from headgate.wire.codes import SubscriptionType

TIMES_PEER_MAX = 2.0
PUBLISH_US_AIM = 20.0
DELIVERY_US_AIM = 15.0
BATCH = 64
BATCHED_PAYLOAD_BYTES = 10
"""With its own metadata 16 bytes a message, so that the batch weighs what a single message does."""
BATCH_TIMES_MAX = 1.25
"""An entry is one cost, whatever it holds; the rest is for noise and the few bytes more."""
COMMIT_ENTRIES = (1, 500)
"""Sizes of a raw commit; under load a group commit of Headgate has some hundred entries."""
ROOMY_LIMITS = [
    f"dispatchThrottlingRate{level}In{dimension}={amount}"
    for level in ("", "PerTopic", "PerSubscription")
    for dimension, amount in (("Msg", 10_000_000), ("Byte", 10_000_000_000))
]
"""Limits at all three levels that are asked and charged, and never reached."""
TOPIC = "persistent://public/default/bench-{}"


@dataclass
class Cost:
    """What the rounds of one kind of work took of one server."""

    cpu_us: list[float] = field(default_factory=list)
    """Of each round, per entry."""
    rate: list[float] = field(default_factory=list)
    """Entries a second, by the wall clock."""

    def note(self, cpu_ns: int, seconds: float, count: int) -> None:
        """Account one round."""
        self.cpu_us.append(cpu_ns / count / 1_000)
        self.rate.append(count / seconds)


def publish_round(server: Server, cost: Cost, count: int, producers: int, batch: int = 0) -> None:
    """Publish ``count`` entries in all, on a topic that nobody has subscribed to."""
    topic = TOPIC.format(f"publish-{producers}")
    body = entry(BATCHED_PAYLOAD_BYTES, batch) if batch else entry()
    publishers = [Publisher(server.port, topic, body, max(batch, 1)) for _ in range(producers)]
    publish(publishers, 100)
    before_ns = server.cpu_ns()
    seconds = publish(publishers, count // producers)
    cost.note(server.cpu_ns() - before_ns, seconds, count)
    for publisher in publishers:
        publisher.close()


class Delivery:
    """A topic whose entries are in memory, read from its first entry in every round."""

    def __init__(self, server: Server, count: int) -> None:
        self._server = server
        self._count = count
        self._topic = TOPIC.format("delivery")
        self._rounds = 0
        # Holds the entries: a topic without a stored subscription keeps nothing.
        Subscriber(server.port, self._topic, "holds", SubscriptionType.EXCLUSIVE).close()
        publisher = Publisher(server.port, self._topic, entry())
        publish([publisher], count)
        publisher.close()

    def round(self, cost: Cost) -> None:
        """Deliver every entry to a new reader."""
        self._rounds += 1
        reader = Subscriber(
            self._server.port,
            self._topic,
            f"reader-{self._rounds}",
            SubscriptionType.EXCLUSIVE,
            durable=False,
        )
        before_ns = self._server.cpu_ns()
        seconds = reader.consume(self._count)
        cost.note(self._server.cpu_ns() - before_ns, seconds, self._count)
        reader.close()


@dataclass
class Costs:
    """All figures of one server."""

    publish: Cost = field(default_factory=Cost)
    publish_by_four: Cost = field(default_factory=Cost)
    batched: Cost = field(default_factory=Cost)
    delivery: Cost = field(default_factory=Cost)


@dataclass
class Figures:
    """Everything that one run measures."""

    ours: Costs = field(default_factory=Costs)
    theirs: Costs = field(default_factory=Costs)
    limited: Cost = field(default_factory=Cost)
    """Headgate's delivery where every level is limited."""
    bare: Cost = field(default_factory=Cost)
    """The splitter's."""
    commit_rate: dict[int, float] = field(default_factory=dict)
    """Raw commits a second, by the number of entries in each."""


def measure(folder: Path, rounds: int, count: int) -> Figures:
    """Let every server do every kind of work in turns, and then the disk alone."""
    figures = Figures()
    with ExitStack() as stack:
        sides = [(headgate(folder), figures.ours), (peer(folder), figures.theirs)]
        cutter, limited = splitter(folder), headgate(folder, ROOMY_LIMITS, name="limited")
        for server in (*(server for server, _ in sides), cutter, limited):
            stack.callback(server.close)
        deliveries = [(Delivery(server, count), costs.delivery) for server, costs in sides]
        deliveries.append((Delivery(limited, count), figures.limited))
        for _ in range(rounds):
            for server, costs in sides:
                publish_round(server, costs.publish, count, 1)
            publish_round(cutter, figures.bare, count, 1)
            for server, costs in sides:
                publish_round(server, costs.publish_by_four, count, 4)
            for server, costs in sides:
                publish_round(server, costs.batched, count // 2, 1, BATCH)
            for delivery, cost in deliveries:
                delivery.round(cost)
            sides.reverse()
            deliveries.reverse()
    disk = RawDisk(folder)
    for entries in COMMIT_ENTRIES:
        seconds = disk.commits(entry() * entries, 0.5)
        figures.commit_rate[entries] = len(seconds) / sum(seconds)
    disk.close()
    return figures


def tabulate(figures: Figures) -> Table:
    """The figures as people read them."""
    ours, theirs = figures.ours, figures.theirs
    table = Table("CPU of the server's process for each entry (1 KiB), and entries a second")
    table.add("frame splitter, publish", _cost(figures.bare))
    table.add("peer, publish", _cost(theirs.publish))
    table.add("Headgate, publish", _cost(ours.publish))
    _compare(table, "publish", ours.publish, theirs.publish)
    table.aim("Headgate, publish", median(ours.publish.cpu_us), "us", PUBLISH_US_AIM)
    table.add("peer, publish by 4 producers", _cost(theirs.publish_by_four))
    table.add("Headgate, publish by 4 producers", _cost(ours.publish_by_four))
    table.add(f"peer, publish of a batch of {BATCH}", _cost(theirs.batched))
    table.add(f"Headgate, publish of a batch of {BATCH}", _cost(ours.batched))
    table.check(
        "Headgate, a batch against a single message of its size",
        median(ours.batched.cpu_us) / median(ours.publish.cpu_us),
        "times",
        BATCH_TIMES_MAX,
    )
    table.add("peer, delivery from memory", _cost(theirs.delivery))
    table.add("Headgate, delivery from memory", _cost(ours.delivery))
    _compare(table, "delivery", ours.delivery, theirs.delivery)
    table.aim("Headgate, delivery", median(ours.delivery.cpu_us), "us", DELIVERY_US_AIM)
    table.add("Headgate, delivery under limits at three levels", _cost(figures.limited))
    for entries, rate in figures.commit_rate.items():
        name = f"raw disk, write and fdatasync of {entries} entr{'ies' if entries > 1 else 'y'}"
        table.add(name, f"{number(rate)} /s = {number(rate * entries)} entries/s")
    return table


def _cost(cost: Cost) -> str:
    return f"{number(median(cost.cpu_us))} us  {number(median(cost.rate))} /s"


def _compare(table: Table, name: str, ours: Cost, theirs: Cost) -> None:
    # Round against round: what disturbed one of a pair probably disturbed the other.
    times = [a / b for a, b in zip(ours.cpu_us, theirs.cpu_us, strict=True)]
    spread = f"rounds {number(min(times))} to {number(max(times))}"
    table.check(f"Headgate / peer, {name}", median(times), "times", TIMES_PEER_MAX, note=spread)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000, help="entries in each round")
    options = parser.parse_args()
    with scratch() as folder:
        rounds = options.rounds or (3 if options.quick else 7)
        tabulate(measure(folder, rounds, options.count)).print()


if __name__ == "__main__":
    main()

"""Consumers and producers that come and go are summed up by minute and subscription."""

from __future__ import annotations

from headgate.engine.consumer import Consumer
from headgate.engine.producer import Producer
from headgate.engine.types import SubscriptionType
from headgate.explain.change_log import NAME_MAX, NAMES_MAX, TOPIC_MAX
from headgate.observe.changes.client_changes import (
    ClientChange,
    ClientChanges,
    MergedClients,
)
from tests.unit.engine.harness import FakePort, Rig

SHARED = SubscriptionType.SHARED
MINUTE_MS = 60_000


class Watched(Rig):
    """A rig whose clients are watched."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = ClientChanges(lambda: self.engine.now_ms)
        self.engine.client_observer = self.changes
        self.billing = self.subscribe("billing")

    def join(self, *names: str, version: str = "3.0", subscription: str = "billing") -> None:
        for name in names:
            consumer = Consumer(1, name, FakePort(), client_version=version)
            self.topic.subscriptions[subscription].add_consumer(consumer, SHARED)

    def leave(self, *names: str) -> None:
        for consumer in list(self.billing.consumers):
            if consumer.name in names:
                self.billing.remove_consumer(consumer)

    def clauses(self) -> list[str]:
        found = self.changes.log.since(self.topic.name.full, 0)
        return [each.clause() for each in found if not each.is_empty]


def test_those_of_a_minute_are_one_change() -> None:
    rig = Watched()
    rig.join("a", "b")
    rig.advance(MINUTE_MS - 1)
    rig.join("c")
    rig.advance(1)
    rig.join("d")
    assert rig.clauses() == [
        "3 consumers of billing connected (a, b, c)", "another consumer of billing connected (d)",
    ]  # fmt: skip
    change = rig.changes.log.since(rig.topic.name.full, 0)[0]
    assert (change.kind, change.level, change.role) == ("consumers", "subscription", "")


def test_the_last_one_that_leaves() -> None:
    rig = Watched()
    rig.join("a", "b")
    rig.advance(MINUTE_MS)
    rig.leave("a")
    rig.advance(MINUTE_MS)
    rig.leave("b")
    assert rig.clauses()[1:] == [
        "1 of 2 consumers of billing left (a)", "the last consumer of billing left (b)",
    ]  # fmt: skip


def test_consumers_that_only_came_and_producers_that_only_left_relieve_a_backlog() -> None:
    rig = Watched()
    rig.join("a")
    rig.advance(MINUTE_MS)
    rig.join("b")
    rig.leave("a")
    rig.advance(MINUTE_MS)
    rig.leave("b")
    rig.join("b")
    found = rig.changes.log.since(rig.topic.name.full, 0)
    assert [each.relieves for each in found] == [True, False, False]
    producers = ClientChange(0, "", 1)
    producers.note_left("p", "3.0", 0)
    assert producers.relieves
    producers.note_came("q", "3.0", 1)
    assert not producers.relieves


def test_a_deployment_replaces_all_of_them() -> None:
    rig = Watched()
    rig.join("a", "b", "c")
    rig.advance(MINUTE_MS)
    for old, new in zip("abc", "def", strict=True):
        rig.leave(old)
        rig.advance(1_000)
        rig.join(new, version="3.1")
    assert rig.clauses()[1] == (
        "all 3 consumers of billing were replaced by d, e, f; client 3.1 instead of 3.0, as a"
        " deployment does"
    )


def test_who_comes_back_was_not_replaced() -> None:
    rig = Watched()
    rig.join("a", "b")
    rig.advance(MINUTE_MS)
    rig.leave("a", "b")
    rig.join("a", "b")
    assert rig.clauses()[1] == "2 consumers of billing lost the connection and came back"


def test_who_came_and_left_within_a_minute_is_no_change() -> None:
    rig = Watched()
    rig.join("a")
    rig.leave("a")
    assert rig.clauses() == []
    assert MergedClients().all() == []
    merged = MergedClients()
    merged.add(rig.changes.log.since(rig.topic.name.full, 0))
    assert merged.all() == []


def test_many_that_come_back_were_not_replaced_either() -> None:
    rig = Watched()
    names = [f"w{number}" for number in range(3 * NAMES_MAX)]
    rig.join(*names)
    rig.advance(MINUTE_MS)
    rig.leave(*names)
    rig.join(*names)
    assert rig.clauses()[1] == "24 consumers of billing lost the connection and came back"
    rig.advance(MINUTE_MS)
    rig.leave(*names)
    rig.join(*(f"new-{name}" for name in names), version="3.1")
    assert rig.clauses()[2] == (
        "all 24 consumers of billing were replaced by new-w0, new-w1, new-w2 and 21 more;"
        " client 3.1 instead of 3.0, as a deployment does"
    )


def test_many_that_come_and_leave_within_a_minute_are_no_change() -> None:
    rig = Watched()
    names = [f"w{number}" for number in range(3 * NAMES_MAX)]
    rig.join(*names)
    rig.leave(*names)
    assert rig.clauses() == []


def test_producers() -> None:
    rig = Watched()
    for number, name in enumerate("xyz"):
        rig.topic.add_producer(Producer(number, name, FakePort(), client_version="3.0"))
    rig.advance(MINUTE_MS)
    for name in "xyz":
        rig.topic.remove_producer(rig.topic.producers[name])
    rig.topic.remove_producer(rig.producer)
    assert rig.clauses() == [
        "3 producers connected (x, y, z)",
        "all 4 producers left (x, y, z and 1 more)",
    ]
    assert rig.changes.log.since(rig.topic.name.full, 0)[0].kind == "producers"


def test_an_unload_disconnects_all() -> None:
    rig = Watched()
    rig.join("a", "b")
    rig.advance(MINUTE_MS)
    rig.topic.fence()
    assert "all 2 consumers of billing left (a, b)" in rig.clauses()


def test_readers_and_the_brokers_own_topics_are_left_out() -> None:
    rig = Watched()
    rig.subscribe("reader-1", durable=False)
    rig.join("a", subscription="reader-1")
    rig.topic.is_system = True
    rig.join("b")
    rig.topic.add_producer(Producer(9, "x", FakePort()))
    rig.leave("b")
    rig.topic.remove_producer(rig.topic.producers["x"])
    assert rig.clauses() == []


def test_it_is_bounded() -> None:
    rig = Watched()
    rig.join(*(f"{number}-{'x' * 300}" for number in range(50)))
    (change,) = rig.changes.log.since(rig.topic.name.full, 0)
    assert change.came == 50
    assert len(change.came_names) == NAMES_MAX
    assert all(len(name) == NAME_MAX for name in change.came_names)
    for number in range(2 * TOPIC_MAX):
        rig.subscribe(f"s{number}")
        rig.join("a", subscription=f"s{number}")
    assert len(rig.changes.log) == TOPIC_MAX


def test_control_characters_of_names_are_not_shown() -> None:
    rig = Watched()
    rig.join("a\x1b[31m")
    assert rig.clauses() == ["a consumer of billing connected (a\N{REPLACEMENT CHARACTER}[31m)"]


def test_a_client_of_all_partitions_counts_once() -> None:
    merged = MergedClients()
    for partition in range(3):
        first, later = ClientChange(1_000 + partition, "s", 0), ClientChange(90_000, "s", 2)
        for name in "ab":
            first.note_came(name, "3.0", 1)
        if partition == 1:
            first.note_came("c", "3.0", 3)
        later.note_left("a", "3.0", 1)
        merged.add([first, later])
    first, later = merged.all()
    assert (first.came, later.left) == (3, 1)
    other = ClientChange(1_000, "", 0)
    other.note_came("p", "3.0", 1)
    merged.add([other])
    assert len(merged.all()) == 3

"""Duplicates: which messages they are, how they are answered and what they cost."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.sequence_table import ROW_BYTES, SequenceRow, SequenceTable
from headgate.engine.deduplication import NO_MESSAGE
from headgate.engine.producer import Producer
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import FakePort, Rig

OTHER = parse_topic("persistent://acme/namespace/other")


class Sender:
    """The producer ``p`` of a topic with deduplication."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.publishing = rig.topic.publishing

    def send(
        self, first: int, last: int | None = None, *, messages: int = 1, name: str = "p"
    ) -> bool:
        body = f"{name} {first} {first if last is None else last} text".encode()
        is_staged = self.publishing.publish(self.rig.producer, first, 0, messages, body)
        self.rig.flush()
        return is_staged

    @property
    def receipts(self) -> list[tuple[int, Position]]:
        return self.rig.port.receipts


@pytest.fixture
def rig() -> Rig:
    return Rig(deduplicates=True)


@pytest.fixture
def sender(rig: Rig) -> Sender:
    return Sender(rig)


def test_a_duplicate_is_not_stored_and_gets_a_receipt_without_a_message_id(
    rig: Rig, sender: Sender
) -> None:
    assert sender.send(0)
    assert sender.send(1)
    rig.commit()
    assert not sender.send(1)
    assert not sender.send(0)
    assert sender.send(2)
    rig.commit()
    assert rig.log.end == 3
    none = NO_MESSAGE
    assert sender.receipts == [
        (0, Position(7, 0)), (1, Position(7, 1)), (1, none), (0, none), (2, Position(7, 2)),
    ]  # fmt: skip
    assert rig.producer.duplicates_dropped == sender.publishing.duplicates_dropped == 2
    assert rig.engine.duplicates_dropped == 2


def test_receipts_of_duplicates_keep_their_place_between_others(rig: Rig, sender: Sender) -> None:
    sender.send(5)
    rig.commit()
    sender.send(6)
    sender.send(3)
    sender.send(7)
    sender.send(4)
    sender.send(2)
    assert len(sender.receipts) == 1  # all wait for the commit
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [5, 6, 3, 7, 4, 2]
    assert [p for _, p in sender.receipts].count(NO_MESSAGE) == 3
    assert rig.producer.pending_count == 0
    assert rig.log.end == 3


def test_while_it_is_not_known_the_producer_is_refused(rig: Rig, sender: Sender) -> None:
    sender.send(0)
    assert not sender.send(0)
    (refusal,) = rig.port.refusals
    assert refusal[0] == 0
    assert "Cannot determine whether the message is a duplicate" in refusal[1]
    rig.commit()
    assert not sender.send(0)
    assert sender.receipts[-1] == (0, NO_MESSAGE)


def test_of_a_batch_the_first_id_is_tested_and_the_highest_recorded(
    rig: Rig, sender: Sender
) -> None:
    sender.send(0, 4, messages=5)
    rig.commit()
    assert not sender.send(4)
    assert not sender.send(3, 7, messages=5)
    assert sender.publishing.duplicates_dropped == 6
    assert sender.send(5, 9, messages=5)
    rig.commit()
    assert rig.log.sequences is not None
    assert rig.log.sequences.last_id("p") == 9


def test_entries_without_ids_are_all_stored(rig: Rig) -> None:
    for _ in range(2):
        assert rig.topic.publishing.publish(rig.producer, 3, 0, 1, b"chunk")
    rig.commit()
    assert rig.log.end == 2
    assert len(rig.log.sequences or "") == 0


def test_an_entry_that_names_another_producer_is_refused(rig: Rig, sender: Sender) -> None:
    assert not sender.send(0, name="other")
    assert "names its producer 'other', not 'p'" in rig.port.refusals[0][1]
    assert rig.log.staged_end == 0


def test_ids_of_entries_that_were_not_stored_are_free(rig: Rig, sender: Sender) -> None:
    sender.send(0)
    sender.send(1)
    rig.log.bodies.clear()
    rig.log.counts.clear()
    rig.log.times.clear()
    sender.publishing.fail_pending(StorageError("no", retryable=True))
    assert [failure[0] for failure in rig.port.failures] == [0, 1]
    assert sender.send(0)
    rig.commit()
    assert rig.log.end == 1


def test_a_duplicate_that_waits_for_a_failed_commit_ends_its_producer(
    rig: Rig, sender: Sender
) -> None:
    sender.send(0)
    rig.commit()
    sender.send(1)
    sender.send(0)
    rig.log.bodies.pop()
    sender.publishing.fail_pending(StorageError("no", retryable=True))
    assert rig.port.refusals == [(0, "no")]
    assert [failure[0] for failure in rig.port.failures] == [1]


def test_what_was_staged_again_counts_under_its_ordinal(rig: Rig, sender: Sender) -> None:
    sender.send(0)
    rig.log.bodies.clear()
    rig.log.counts.clear()
    rig.log.times.clear()
    sender.publishing.restage_pending()
    rig.commit()
    assert not sender.send(0)
    assert sender.receipts == [(0, Position(7, 0)), (0, NO_MESSAGE)]


def test_what_a_full_disk_parked_is_stored_once() -> None:
    rig = Rig(deduplicates=True)
    sender = Sender(rig)
    sender.send(0)
    sender.send(1)
    del rig.log.bodies[:], rig.log.counts[:], rig.log.times[:]
    sender.publishing.park_pending()
    assert rig.port.unstaged_count == 2
    assert not sender.send(2)
    rig.engine.disk_full_hold.disk_changed(full=False)
    rig.flush()
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [0, 1, 2]
    assert not sender.send(2)
    assert rig.log.end == 3


def test_duplicates_behind_parked_messages_wait_and_are_not_charged() -> None:
    rig = Rig(deduplicates=True)
    sender = Sender(rig)
    sender.send(0)
    rig.commit()
    rig.publish_limit = RateLimit(messages=1, bytes=None)
    rig.engine.reload_publish_limit(rig.topic)
    sender.send(1)
    sender.send(2)
    sender.send(0)
    sender.send(3)
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [0, 1]
    rig.advance(1_000)
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [0, 1, 2]
    # The duplicate waits for its turn, and gives back what it was charged: 3 goes with it.
    rig.advance(1_000)
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [0, 1, 2, 0, 3]
    assert rig.log.end == 4
    assert rig.producer.pending_count == 0


def test_a_duplicate_passes_a_limit_that_others_wait_for() -> None:
    rig = Rig(deduplicates=True)
    sender = Sender(rig)
    sender.send(0)
    rig.commit()
    rig.publish_limit = RateLimit(messages=1, bytes=None)
    rig.engine.reload_publish_limit(rig.topic)
    sender.send(1)
    rig.commit()
    for _ in range(10):
        assert not sender.send(1)
    assert sender.receipts[-10:] == [(1, NO_MESSAGE)] * 10


def test_deduplication_begins_and_ends_while_the_topic_is_live() -> None:
    rig = Rig()
    sender = Sender(rig)
    sender.send(0)
    sender.send(0)
    rig.commit()
    assert rig.log.end == 2
    assert sender.publishing.deduplication is None
    rig.deduplicates = True
    rig.engine.reload_deduplication(rig.topic)
    assert sender.send(0)  # what was stored before is not known
    rig.commit()
    assert not sender.send(0)
    sender.send(1)
    sender.send(0)
    rig.deduplicates = False
    rig.engine.reload_deduplication(rig.topic)
    assert rig.log.sequences is None
    assert sender.send(0)
    rig.commit()
    assert [sequence for sequence, _ in sender.receipts] == [0, 0, 0, 0, 1, 0, 0]
    assert sender.publishing.deduplication is None


def test_a_closed_producer_gets_no_receipts_and_its_name_is_inactive(
    rig: Rig, sender: Sender
) -> None:
    sender.send(0)
    rig.commit()
    sender.send(1)
    sender.send(0)
    rig.topic.remove_producer(rig.producer)
    rig.commit()
    assert len(sender.receipts) == 1
    table = rig.log.sequences
    assert table is not None
    assert table.last_id("p") == 1
    assert [row.inactive_since_ms for row in table.rows(9)] == [rig.engine.log_ms]
    newcomer = Producer(2, "p", FakePort())
    rig.topic.add_producer(newcomer)
    assert [row.inactive_since_ms for row in table.rows(9)] == [0]


def test_a_loaded_topic_has_no_connected_producers() -> None:
    rig = Rig(deduplicates=True)
    Sender(rig).send(0)
    rig.commit()
    table = rig.log.sequences
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.engine.begin_turn(rig.engine.now_ns, rig.engine.now_ms, rig.engine.log_ms + 5)
    topic = rig.engine.load_topic(rig.topic.name, rig.log)
    assert rig.log.sequences is table
    assert topic.publishing.deduplication is not None
    assert table is not None
    assert table.names_max == rig.engine.limits.deduplicated_producers_max
    assert [row.inactive_since_ms for row in table.rows(9)] != [0]


def test_a_topic_that_never_had_deduplication_has_no_count_of_duplicates() -> None:
    plain, rig = Rig(), Rig(deduplicates=True)
    assert plain.topic.publishing.duplicates_if_any is None
    assert rig.topic.publishing.duplicates_if_any == 0
    sender = Sender(rig)
    sender.send(0)
    rig.commit()
    sender.send(0)
    rig.deduplicates = False
    rig.engine.reload_deduplication(rig.topic)
    assert rig.topic.publishing.duplicates_if_any == 1


@pytest.mark.parametrize(("rows_max", "left"), [(1, []), (3, ["p"])])
def test_what_all_topics_of_a_tenant_remember_has_a_bound_together(
    monkeypatch: pytest.MonkeyPatch, rows_max: int, left: list[str]
) -> None:
    monkeypatch.setattr(
        "headgate.engine.deduplication.SEQUENCES_OF_TENANT_BYTES_MAX", rows_max * (ROW_BYTES + 1)
    )
    rig = Rig(deduplicates=True)
    of_another_topic = SequenceTable(SequenceRow(name, 1, 1) for name in "abc")
    rig.engine.sequence_totals.join(of_another_topic, OTHER)
    Sender(rig).send(0)
    rig.commit()
    table = rig.log.sequences
    assert table is not None
    assert list(table.last) == ["p"]  # as long as it is connected
    rig.topic.remove_producer(rig.producer)
    assert list(table.last) == left  # its topic has not got its share
    assert list(of_another_topic.last) == ["a", "b", "c"]


def test_a_table_counts_until_its_topic_is_deleted_or_has_deduplication_no_more() -> None:
    rig = Rig(deduplicates=True)
    Sender(rig).send(0)
    rig.commit()
    totals = rig.engine.sequence_totals
    table = rig.log.sequences
    assert table is not None
    assert totals.held_bytes("acme") == ROW_BYTES + 1
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    assert totals.held_bytes("acme") == ROW_BYTES + 1
    topic = rig.engine.load_topic(rig.topic.name, rig.log)
    assert totals.held_bytes("acme") == ROW_BYTES + 1
    rig.deduplicates = False
    rig.engine.reload_deduplication(topic)
    assert totals.held_bytes("acme") == 0
    rig.deduplicates = True
    rig.engine.reload_deduplication(topic)
    rig.log.sequences = table
    rig.engine.reload_deduplication(topic)
    topic.fence()
    rig.engine.unload_topic(topic, deleted=True)
    assert totals.held_bytes("acme") == 0
    assert len(table) == 1


def test_beyond_the_bound_a_producer_that_leaves_before_its_receipt_does_not_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.engine.deduplication.SEQUENCES_OF_TENANT_BYTES_MAX", 0)
    rig = Rig(deduplicates=True)
    of_another_topic = SequenceTable([SequenceRow("a", 1, 0)])
    rig.engine.sequence_totals.join(of_another_topic, OTHER)
    Sender(rig).send(0)
    rig.topic.remove_producer(rig.producer)
    rig.commit()
    table = rig.log.sequences
    assert table is not None
    assert not table.last
    assert rig.engine.sequence_totals.held_bytes("acme") == ROW_BYTES + 1

"""Near the limit on its memory the broker lets those that have the most keep no more."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import BLOCK_MEMORY_BYTES
from headgate.base.names import parse_topic
from headgate.base.sequence_table import ROW_BYTES, SequenceRow, SequenceTable
from headgate.base.units import GIB
from headgate.broker.process_room import PART_MIN
from headgate.engine import deduplication
from headgate.engine.ack_budget import NoAckRoomError
from headgate.engine.block_budget import BlockBudget
from headgate.engine.delayed_index import INDEXED_BYTES
from headgate.engine.errors import ProducersRefusedError
from headgate.engine.memory_part import (
    CREATING_PART,
    KEPT_MIN,
    SUBSCRIPTION_BYTES,
    TOPIC_BYTES,
)
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.tenant_storage import RUNS_MIN
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import START_MS, FakeLog, Rig

SHARED = SubscriptionType.SHARED


def test_at_the_limit_the_tenants_with_the_most_get_no_more_subscriptions() -> None:
    engine = Rig().engine
    engine.durable_by_tenant.update({"most": 19_000, "much": 18_000, "few": 2_000, "less": 900})
    tenants = ["most", "much", "few", "less", "new"]
    engine.memory_part.use(CREATING_PART + 0.1)
    assert all(engine.memory_part.may_keep_more(tenant) for tenant in tenants)
    engine.memory_part.use(CREATING_PART)
    may = [tenant for tenant in tenants if engine.memory_part.may_keep_more(tenant)]
    assert may == ["few", "less", "new"]
    engine.memory_part.use(1.0)
    assert engine.memory_part.may_keep_more("most")


def test_topics_count_as_subscriptions_do() -> None:
    engine = Rig(name="persistent://acme/ns/t").engine
    engine.durable_by_tenant.update({"acme": KEPT_MIN - 1, "globex": KEPT_MIN - 1})
    engine.memory_part.use(PART_MIN)
    assert engine.memory_part.may_keep_more("globex")
    assert not engine.memory_part.may_keep_more("acme")


def test_a_tenant_may_have_some_in_any_case() -> None:
    engine = Rig().engine
    for count, may in (KEPT_MIN - 1, True), (KEPT_MIN, False):
        engine.durable_by_tenant["alone"] = count
        engine.memory_part.use(PART_MIN)
        assert engine.memory_part.may_keep_more("alone") is may


def test_who_has_most_acknowledged_out_of_order_gets_a_part_of_the_bound() -> None:
    rig = Rig()
    budget = rig.engine.ack_blocks = BlockBudget(32 * BLOCK_MEMORY_BYTES)
    rig.publish(10)
    for number in range(3):
        subscription = rig.subscribe(f"s{number}")
        consumer, _ = rig.consumer(subscription, permits=10)
        subscription.ack_entry(consumer, 5)
        budget.measure(subscription)
    budget.check_room(subscription)
    rig.engine.memory_part.use(PART_MIN)
    with pytest.raises(NoAckRoomError):
        budget.check_room(subscription)
    other = Rig(name="persistent://globex/prod/orders").subscribe("another")
    budget.check_room(other)
    rig.engine.memory_part.use(1.0)
    budget.check_room(subscription)


def test_what_is_remembered_for_nobody_has_a_part_of_the_bound() -> None:
    rig = Rig()
    rig.engine.remembered = RememberedBudget(1 << 20)
    rig.engine.memory_part.use(1e-6)
    subscription = rig.subscribe()
    rig.publish(5)
    consumer, _ = rig.consumer(subscription, SHARED, permits=5)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    subscription.remove_consumer(consumer)
    assert not subscription.dispatcher.redelivery_counts


def test_who_has_most_delayed_messages_waits_until_there_is_room_again() -> None:
    """Of the messages that wait behind them none is lost: they go on when the process has room."""
    rig = Rig()
    engine = rig.engine
    engine.due_time_of = lambda body: START_MS + 60_000 if body == b"later" else 0
    engine.delays.memory_bytes_max = 160 * INDEXED_BYTES
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=1_000)
    engine.memory_part.use(PART_MIN)
    rig.topic.may_be_delayed()
    rig.publish(30, body=b"later")
    rig.publish()
    assert (engine.delays.entries, port.ordinals) == (10, [])
    wake_ns = engine.next_wake_ns()  # nothing is to be done now: the loop would turn all the time
    assert wake_ns is not None
    assert wake_ns > engine.now_ns
    engine.memory_part.use(1.0)
    rig.flush()
    assert (engine.delays.entries, port.ordinals) == (30, [30])
    rig.advance(61_000)
    assert sorted(port.ordinals) == list(range(31))


def test_the_largest_tables_of_producers_forget_those_that_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names for deduplication stay when their producers leave: 128 to 256 MiB of each tenant."""
    monkeypatch.setattr(deduplication, "SEQUENCES_OF_TENANT_BYTES_MAX", 10 * ROW_BYTES)
    rig = Rig(deduplicates=True)
    totals = rig.engine.sequence_totals
    table = SequenceTable(SequenceRow(name, 1, 1) for name in "abc")
    totals.join(table, rig.topic.name)
    table.disconnected("a", 2)
    rig.engine.memory_part.use(PART_MIN)
    table.store("d", 1)
    table.store("e", 1)
    assert list(table.last) == ["a", "d", "e"]
    rig.engine.memory_part.use(1.0)
    table.store("f", 1)
    assert list(table.last) == ["a", "d", "e", "f"]


def test_what_others_remember_makes_no_smaller_tenant_forget_producers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who is forgotten may store a message twice."""
    monkeypatch.setattr(deduplication, "SEQUENCES_OF_TENANT_BYTES_MAX", 10 * ROW_BYTES)
    rig = Rig()
    totals = rig.engine.sequence_totals
    small = SequenceTable(SequenceRow(name, 1, 1) for name in "abcd")
    large = SequenceTable(SequenceRow(name, 1, 1) for name in "abcdefghijkl")
    totals.join(small, rig.topic.name)
    totals.join(large, parse_topic("persistent://globex/ns/t"))
    rig.engine.memory_part.use(PART_MIN)
    for table in (small, large):
        table.store("new", 1)
    assert (len(small), len(large)) == (5, 11)


def test_who_has_most_in_the_segments_of_the_log_stores_no_more() -> None:
    """A message now and then to each of very many topics takes memory, as long as it is stored."""
    rig = Rig()
    engine, stored = rig.engine, rig.log.stored_total
    stored.runs = RUNS_MIN
    engine.memory_part.use(CREATING_PART + 0.1)
    rig.publish()
    engine.memory_part.use(CREATING_PART)
    rig.publish()
    assert (rig.log.end, rig.producer.closed) == (1, True)
    with pytest.raises(ProducersRefusedError, match="in 500,000 places of the log, and no more"):
        rig.topic.publishing.check_newcomer(rig.port)
    stored.runs -= 1
    engine.memory_part.use(CREATING_PART)
    rig.topic.publishing.check_newcomer(rig.port)


def test_a_tenant_with_less_in_the_log_than_others_goes_on() -> None:
    rig = Rig()
    other = FakeLog(2)
    rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), other)
    rig.log.stored_total.runs, other.stored_total.runs = RUNS_MIN, 5 * RUNS_MIN
    rig.engine.memory_part.use(PART_MIN)
    assert (rig.log.stored_total.is_held, other.stored_total.is_held) == (False, True)
    rig.engine.memory_part.use(1.0)
    assert not other.stored_total.is_held


def test_where_others_filled_the_memory_a_tenant_goes_on_with_what_it_has_in_the_log() -> None:
    """Half a million messages of thousands of topics are 64 MB, a 64th of 4 GiB, and nobody else
    may have as many: the subscriptions of others would keep all producers of the tenant out."""
    rig = Rig()
    engine, stored, limit_bytes = rig.engine, rig.log.stored_total, 4 * GIB
    stored.runs = 2_097_151
    engine.memory_part.use(PART_MIN, limit_bytes)
    rig.publish()
    assert (rig.log.end, rig.producer.closed) == (1, False)
    stored.runs += 1
    engine.memory_part.use(PART_MIN, limit_bytes)
    assert stored.is_held
    stored.runs -= 1
    engine.memory_part.use(PART_MIN, limit_bytes)
    assert not stored.is_held


def test_the_runs_of_several_tenants_count_together() -> None:
    rig = Rig()
    other, few = FakeLog(2), FakeLog(3)
    rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), other)
    rig.engine.load_topic(parse_topic("persistent://initech/ns/t"), few)
    logs = rig.log, other, few
    for log, runs in zip(logs, (1_000_000, 1_000_000, 2 * RUNS_MIN // 5), strict=True):
        log.stored_total.runs = runs
    rig.engine.memory_part.use(PART_MIN, 4 * GIB)
    assert [log.stored_total.is_held for log in logs] == [True, True, False]


def test_what_all_tenants_keep_is_known() -> None:
    rig = Rig()
    engine = rig.engine
    before = engine.memory_part.kept_bytes
    rig.subscribe("s")
    assert engine.memory_part.kept_bytes == before + SUBSCRIPTION_BYTES >= TOPIC_BYTES
    engine.ack_blocks = BlockBudget(32 * BLOCK_MEMORY_BYTES)
    engine.delays.count(1_000, "acme")
    grown = engine.memory_part.kept_bytes - before
    assert grown == SUBSCRIPTION_BYTES + 1_000 * INDEXED_BYTES

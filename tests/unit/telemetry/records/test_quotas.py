"""Backlog quotas in the records: what is in force, what was lost, what waits (rule 4.6)."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.eviction import Eviction, SubscriptionLoss
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, Quotas, QuotaType
from headgate.record.fields import FIELDS, Kind
from headgate.telemetry.records.names import PLAIN, HashedNames
from headgate.telemetry.records.quotas import (
    BREACH_COLUMNS,
    COUNT_COLUMNS,
    LIMIT_COLUMNS,
    NAMES_CHARACTERS_MAX,
    SUBSCRIPTIONS_MAX,
    breach_values,
    count_values,
    event_inputs,
    eviction_outcome,
    limit_values,
    producers_outcome,
)
from tests.unit.engine.quota_rig import EVICT, HOLD, REFUSE, QuotaRig, size_quota, time_quota

NAMESPACE = "namespace policy acme/ns"
SIZE = Quota(QuotaType.SIZE, 1_000, HOLD, NAMESPACE)
TIME = Quota(QuotaType.TIME, 90_000, EVICT, "topic policy")


def test_the_columns_are_those_of_a_topics_row() -> None:
    fields = {field.name for field in FIELDS[Kind.TOPIC]}
    assert fields >= {*LIMIT_COLUMNS, *COUNT_COLUMNS, *BREACH_COLUMNS}


def test_quotas_as_a_row_has_them() -> None:
    assert limit_values(NO_QUOTAS, PLAIN) == (None,) * len(LIMIT_COLUMNS)
    row = dict(zip(LIMIT_COLUMNS, limit_values(Quotas(SIZE, TIME), PLAIN), strict=True))
    assert row == {
        "quota_size_limit_bytes": 1_000,
        "quota_size_policy": "producer_request_hold",
        "quota_size_source": NAMESPACE,
        "quota_time_limit_ns": 90_000 * NS_PER_MS,
        "quota_time_policy": "consumer_backlog_eviction",
        "quota_time_source": "topic policy",
    }
    only_time = limit_values(Quotas(None, TIME), PLAIN)
    assert only_time[:3] == (None, None, None)
    assert only_time[3:] == tuple(row.values())[3:]


def test_names_in_sources_are_hashed_where_names_are() -> None:
    names = HashedNames(b"key")
    hashed = f"namespace policy {names.part('acme')}/{names.part('ns')}"
    assert limit_values(Quotas(SIZE, None), names)[2] == hashed
    assert event_inputs(SIZE, 1, 2, names)["source"] == hashed


def test_what_was_lost() -> None:
    rig = QuotaRig()
    assert count_values(rig.topic) == (0,) * len(COUNT_COLUMNS)
    rig.set_quotas(Quotas(size_quota(100, EVICT).size, time_quota(5_000, EVICT).time))
    rig.subscribe()
    rig.publish(10, body=b"0123456789")
    rig.advance(6_000)
    assert count_values(rig.topic) == (1, 1, 10, 1, 9, 90)


def test_how_long_until_each_breaks() -> None:
    rig = QuotaRig()
    assert breach_values(rig.topic) == (None, None)
    rig.set_quotas(Quotas(size_quota(1_000).size, time_quota(100_000).time))
    rig.subscribe()
    for _ in range(11):
        rig.publish(1, body=b"0123456789")
        rig.engine.quotas.sample(1)
        rig.advance(1_000)
    size_ns, time_ns = breach_values(rig.topic)
    assert size_ns is not None
    assert abs(int(size_ns) - 89 * NS_PER_S) < 2 * NS_PER_S
    assert time_ns is not None
    assert abs(int(time_ns) - 89 * NS_PER_S) < 2 * NS_PER_S


def test_an_event_says_what_was_decided_upon() -> None:
    assert event_inputs(SIZE, 1_010, 4_000, PLAIN) == {
        "quota": "size",
        "policy": "producer_request_hold",
        "source": NAMESPACE,
        "limit_bytes": 1_000,
        "backlog_bytes": 1_010,
        "oldest_age_ns": 4_000 * NS_PER_MS,
    }
    inputs = event_inputs(TIME, 0, -1, PLAIN)
    assert inputs["limit_ns"] == 90_000 * NS_PER_MS
    assert "limit_bytes" not in inputs
    assert inputs["oldest_age_ns"] is None


def test_what_became_of_the_producers() -> None:
    actions = {
        (policy, exceeded): producers_outcome(
            Quota(QuotaType.SIZE, 1, QuotaPolicy(policy), "s"), exceeded
        )["action"]
        for policy in (HOLD, REFUSE)
        for exceeded in (True, False)
    }
    assert actions == {
        (HOLD, True): "producers_held",
        (REFUSE, True): "producers_closed",
        (HOLD, False): "producers_let_go_on",
        (REFUSE, False): "producers_let_go_on",
    }


def test_an_eviction_names_those_that_lost_most() -> None:
    taken = [SubscriptionLoss(f"s{n}", n, 10 * n) for n in range(SUBSCRIPTIONS_MAX + 5, 0, -1)]
    outcome = eviction_outcome(Eviction(TIME, 5_000, 95_000, taken, 900, -1), PLAIN)
    total = sum(range(SUBSCRIPTIONS_MAX + 6))
    assert (outcome["messages"], outcome["bytes"]) == (total, 10 * total)
    assert (outcome["backlog_bytes"], outcome["oldest_age_ns"]) == (900, None)
    assert len(outcome["subscriptions"]) == SUBSCRIPTIONS_MAX
    assert outcome["subscriptions"][0] == {"subscription": "s105", "messages": 105, "bytes": 1_050}
    assert outcome["subscriptions_more"] == 5
    few = eviction_outcome(Eviction(TIME, 0, 0, taken[:2], 0, 70), HashedNames(b"key"))
    assert few["subscriptions_more"] == 0
    assert few["oldest_age_ns"] == 70 * NS_PER_MS
    assert few["subscriptions"][0]["subscription"] == HashedNames(b"key").part("s105")


def test_long_names_have_a_bound_together() -> None:
    """An event with a hundred names of 512 characters took 200 KB; a window has 2,000 events."""
    losses = [SubscriptionLoss(f"{n:03d}".rjust(512, "\U0001f4e6"), 1, 1) for n in range(100)]
    outcome = eviction_outcome(Eviction(SIZE, 1, -1, losses, 0, -1), PLAIN)
    named = NAMES_CHARACTERS_MAX // 512
    assert [each["subscription"] for each in outcome["subscriptions"]] == [
        loss.subscription for loss in losses[:named]
    ]
    assert (outcome["subscriptions_more"], outcome["messages"]) == (100 - named, 100)

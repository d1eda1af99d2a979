"""Actions of quotas are logged, at most once a minute for each topic."""

from __future__ import annotations

import logging
from typing import cast

import pytest

from headgate.base.names import parse_topic
from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_S
from headgate.broker import quota_logger
from headgate.broker.quota_logger import TENANT_TOPICS_MAX, TOPICS_MAX, QuotaLogger
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaType
from tests.unit.engine.quota_rig import EVICT, HOLD, QuotaRig, size_quota

TEN = b"0123456789"


def _reached() -> tuple[QuotaRig, Quota]:
    """A topic that has reached its quota on size, and the quota."""
    rig = QuotaRig(size_quota(100))
    rig.subscribe("billing")
    rig.publish(10, body=TEN)
    quota = rig.quotas.size
    assert quota is not None
    return rig, quota


def test_a_quota_that_is_reached_repeatedly_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    (rig, quota), log = _reached(), QuotaLogger()
    for _ in range(5):
        log.quota_state_changed(rig.topic, quota, exceeded=True)
        log.quota_state_changed(rig.topic, quota, exceeded=False)
    log.flush(rig.engine.now_ns + 59 * NS_PER_S)
    assert caplog.messages == [
        "persistent://acme/ns/t: the backlog of subscription billing is at 100 bytes of 100 bytes "
        "(topic policy): producers are held"
    ]
    log.flush(rig.engine.now_ns + 60 * NS_PER_S)
    assert caplog.messages[1].endswith(": producers are held, 4 times since the last line")
    log.flush(rig.engine.now_ns + 120 * NS_PER_S)
    assert len(caplog.messages) == 2
    log.quota_state_changed(rig.topic, quota, exceeded=True)
    assert caplog.messages[2] == caplog.messages[0]


def test_a_quota_that_has_room_at_the_end_of_the_minute_was_reached_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (rig, quota), log = _reached(), QuotaLogger()
    for _ in range(2):
        log.quota_state_changed(rig.topic, quota, exceeded=True)
    rig.set_quotas(size_quota(1_000))
    log.flush(rig.engine.now_ns + 60 * NS_PER_S)
    assert caplog.messages[0].endswith(": producers are held")
    # Of what it was then, not of what the backlog and the limit are now.
    assert caplog.messages[1].endswith(
        "t: the size quota (topic policy) was reached once more: producers were held"
    )


def test_evictions_of_a_minute_are_logged_together_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rig, log = QuotaRig(size_quota(100, EVICT)), QuotaLogger()
    rig.subscribe("billing")
    rig.publish(40, body=TEN)
    acts = rig.effects.evictions
    assert len(acts) > 3
    # Held producers have a line of their own.
    log.quota_state_changed(
        rig.topic, Quota(QuotaType.SIZE, 100, HOLD, "topic policy"), exceeded=True
    )
    for act in acts:
        log.evicted(rig.topic, act)
    assert caplog.messages[1].endswith(
        f"evicted {acts[0].messages} messages, {10 * acts[0].messages} bytes, most of the latest "
        "from billing"
    )
    log.flush(rig.engine.now_ns + 60 * NS_PER_S)
    lost = sum(act.messages for act in acts[1:])
    assert (
        f"evicted {lost} messages, {10 * lost} bytes in {len(acts) - 1} evictions"
        in caplog.messages[2]
    )
    log.flush(rig.engine.now_ns + 120 * NS_PER_S)
    assert len(caplog.messages) == 3


def test_no_more_topics_are_remembered_than_a_minute_can_tell_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(quota_logger, "TOPICS_MAX", 0)
    rig, log = QuotaRig(size_quota(100, EVICT)), QuotaLogger()
    rig.subscribe("billing")
    rig.publish(10, body=TEN)
    log.evicted(rig.topic, rig.effects.evictions[0])
    log.quota_state_changed(rig.topic, rig.effects.evictions[0].quota, exceeded=True)
    assert caplog.messages == []


class _Named:
    """A topic of which the logger asks its name and the time."""

    def __init__(self, name: str) -> None:
        self.name = parse_topic(name)
        self.now_ns = 0


def test_a_tenant_with_very_many_topics_has_a_share_of_the_lines_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, log = QuotaRig(size_quota(100, EVICT)), QuotaLogger()
    rig.subscribe("billing")
    rig.publish(20, body=TEN)
    act = rig.effects.evictions[0]

    def evicted(name: str) -> None:
        log.evicted(cast(Topic, _Named(name)), act)

    def lines(what: str) -> int:
        found = sum(what in message for message in caplog.messages)
        caplog.clear()
        return found

    for number in range(5_000):
        evicted(f"persistent://acme/ns/t{number}")
    assert lines("evicted") == TENANT_TOPICS_MAX
    evicted("persistent://other/ns/t")
    assert lines("persistent://other/ns/t") == 1
    for number in range(5_000):
        evicted(f"persistent://acme/ns/t{number}")
    log.flush(60 * NS_PER_S)
    left_out = 2 * (5_000 - TENANT_TOPICS_MAX)
    assert caplog.messages[-1] == (
        f"quotas acted {left_out} times on topics that have no line here, {left_out} of them of "
        "tenant acme"
    )
    assert lines("evicted") == TENANT_TOPICS_MAX
    log.flush(120 * NS_PER_S)
    assert lines("") == 0
    for number in range(5_000):
        evicted(f"persistent://acme/ns/other{number}")
    assert lines("evicted") == TENANT_TOPICS_MAX


def test_topics_of_very_many_tenants_have_a_bound_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (rig, quota), log = _reached(), QuotaLogger()
    for number in range(2 * TOPICS_MAX):
        rig.topic.name = parse_topic(f"persistent://tenant{number}/ns/t")
        log.quota_state_changed(rig.topic, quota, exceeded=True)
    assert len(caplog.messages) == TOPICS_MAX


def test_a_full_tenant_is_logged_when_that_begins_and_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, total = QuotaLogger(), StoredTotal(owner="acme")
    total.bytes = 100
    total.set_max(100)
    for at_s in range(3):
        log.tenants_full([total], at_s * NS_PER_S)
    log.tenants_full([], 59 * NS_PER_S)
    log.tenants_full([total], 59 * NS_PER_S)
    assert caplog.messages == [
        "tenant acme stores 100 bytes of 100, and has to come down to 95 % of it "
        "(headgateMaxStoragePerTenantMB): its producers are closed and refused"
    ]
    log.tenants_full([], 60 * NS_PER_S)
    log.tenants_full([], 61 * NS_PER_S)
    assert caplog.messages[1:] == ["tenant acme has room again: its producers are accepted"]

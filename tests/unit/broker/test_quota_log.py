"""What quotas do stands in the log, each topic at most once a minute."""

from __future__ import annotations

import logging

import pytest

from headgate.base.units import NS_PER_S
from headgate.broker.quota_log import QuotaLog
from tests.unit.engine.quota_rig import EVICT, QuotaRig, size_quota

TEN = b"0123456789"


def test_a_quota_that_is_reached_again_and_again_is_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rig, log = QuotaRig(size_quota(100)), QuotaLog()
    rig.subscribe("billing")
    rig.publish(10, body=TEN)
    quota = rig.quotas.size
    assert quota is not None
    for _ in range(5):
        log.turned(rig.topic, quota, exceeded=True)
        log.turned(rig.topic, quota, exceeded=False)
    assert caplog.messages == [
        "persistent://acme/ns/t: the backlog of subscription billing is at 100 bytes of 100 bytes "
        "(topic policy): producers are held"
    ]
    rig.engine.begin_turn(rig.engine.now_ns + 60 * NS_PER_S, rig.engine.now_ms)
    log.turned(rig.topic, quota, exceeded=True)
    assert caplog.messages[1].endswith(": producers are held, 5 times since the last line")
    assert len(caplog.messages) == 2


def test_evictions_of_a_minute_are_added_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig, log = QuotaRig(size_quota(100, EVICT)), QuotaLog()
    rig.subscribe("billing")
    rig.publish(40, body=TEN)
    acts = rig.effects.evictions
    assert len(acts) > 3
    for act in acts:
        log.evicted(rig.topic, act)
    assert len(caplog.messages) == 1
    rig.engine.begin_turn(rig.engine.now_ns + 60 * NS_PER_S, rig.engine.now_ms)
    log.evicted(rig.topic, acts[0])
    lost = sum(act.messages for act in acts[1:]) + acts[0].messages
    assert f"took {lost} messages, {10 * lost} bytes" in caplog.messages[1]
    assert caplog.messages[1].endswith(f"in {len(acts)} acts, the last of them from billing")

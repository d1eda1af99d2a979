"""A subscription is judged by its past alone."""

from __future__ import annotations

import pytest

from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_S
from headgate.explain.diagnosis import diagnose
from headgate.flow.account.account import Cell
from headgate.flow.account.verdict import INFERRED_CONFIDENCE, Verdict
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.flow.sentences.backlog import Circumstances
from tests.unit.explain.made_past import past

NO_LIMITS = (NO_LIMIT, NO_LIMIT, NO_LIMIT)
TOPIC_LIMIT = EffectiveLimit(RateLimit(messages=50, bytes=None, period_ns=NS_PER_S), "topic policy")
HELD = [Cell.TOPIC_MESSAGES_HUNGRY] * 20


def test_the_limit_in_force_is_named() -> None:
    found = at_once(diagnose([past(HELD, acked_per_s=50)], (NO_LIMIT, TOPIC_LIMIT, NO_LIMIT)))
    assert found.settled
    assert found.judgement.verdict is Verdict.THROTTLED_TOPIC
    assert found.named_level is Level.TOPIC
    assert found.named_limit is TOPIC_LIMIT
    assert "the topic limit of 50 msg/s (topic policy) held this subscription" in (
        found.sentence(Circumstances())
    )


def test_a_limit_that_is_not_to_blame_is_mentioned_and_not_named() -> None:
    idle = past([Cell.NO_PERMITS] * 20, acked_per_s=10)
    found = at_once(diagnose([idle], (NO_LIMIT, TOPIC_LIMIT, NO_LIMIT)))
    assert found.judgement.verdict is Verdict.CONSUMER
    assert found.named_level is None
    assert found.named_limit is NO_LIMIT
    assert found.level is Level.TOPIC
    assert "the limit of 50 msg/s (topic policy) is not what holds it back" in (
        found.sentence(Circumstances())
    )


def test_what_is_inferred_or_incomplete_is_less_sure() -> None:
    parts = [past(HELD, acked_per_s=50)]
    measured = at_once(diagnose(parts, NO_LIMITS))
    inferred = at_once(diagnose(parts, NO_LIMITS, is_inferred=True, completeness=0.5))
    assert inferred.judgement.confidence == pytest.approx(
        measured.judgement.confidence * INFERRED_CONFIDENCE * 0.5
    )
    assert inferred.sentence(Circumstances()).endswith("(inferred from counters).")


def test_partitions_are_summed() -> None:
    found = at_once(diagnose([past(HELD), past(HELD)], NO_LIMITS))
    assert found.window.total_end("backlog") == 2 * 20 * 100
    assert sum(found.window.cells_ns) == 2 * found.window.length_ns


def test_two_seconds_settle_nothing() -> None:
    found = at_once(diagnose([past(HELD[:2])], NO_LIMITS))
    assert not found.settled
    assert found.sentence(Circumstances()).startswith("settling: 200 messages wait")

"""The agent's verdicts beside those that a broker measures, over situations in virtual time.

``python -m bench.agent_accuracy`` prints the table of the guide, over more rates.
"""

from __future__ import annotations

from functools import cache

from tests.sim.agentsim.oracle import Answer, Run
from tests.sim.agentsim.situations import SITUATIONS

SOON_S, LATE_S = 61.7, 301.3
"""After a minute and after five, and not at the instant of a burst."""
PERIODS_S = (1.0, 5.0)


@cache
def _answers() -> tuple[Answer, ...]:
    found: list[Answer] = []
    for place, situation in enumerate(SITUATIONS):
        factor = (1.0, 0.6, 1.3)[place % 3]
        found += Run(situation, factor, PERIODS_S).play((SOON_S, LATE_S))
    return tuple(found)


def _right(period_s: float, at_s: float) -> tuple[float, list[Answer]]:
    asked = [each for each in _answers() if (each.period_s, each.at_s) == (period_s, at_s)]
    wrong = [each for each in asked if not each.is_right]
    return 1 - len(wrong) / len(asked), wrong


def test_there_are_situations_of_every_cause() -> None:
    assert len(SITUATIONS) >= 12
    assert sum(situation.is_borderline for situation in SITUATIONS) >= 2
    measured = {answer.measured for answer in _answers()}
    assert measured >= {
        "NONE", "CONSUMER", "NO_CONSUMER", "THROTTLED_SUBSCRIPTION", "THROTTLED_TOPIC",
        "THROTTLED_BROKER",
    }  # fmt: skip


def test_a_minute_of_looks_each_second() -> None:
    share, wrong = _right(1.0, SOON_S)
    assert share >= 0.90, wrong


def test_five_minutes_of_looks_each_five_seconds() -> None:
    share, wrong = _right(5.0, LATE_S)
    assert share >= 0.95, wrong

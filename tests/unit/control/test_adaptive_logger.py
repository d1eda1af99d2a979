"""Lines of the adaptive controller: what operators look for, and how few they are (D15)."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.control.adaptive_logger import LINES_MAX, AdaptiveLogger
from headgate.flow.adaptive.cycle import (
    Decision,
    DecisionKind,
    Inputs,
    Law,
    MemoryRule,
    PublishLimit,
    Rule,
)
from tests.unit.engine.harness import FakeLog, Rig

INPUTS = Inputs(
    0.43, 0.0, 500, 1_000, -1, None, 0.0, None, 1_000.0, 5_000.0, None, MemoryRule.EVERYBODY
)
BEGUN = Decision(
    DecisionKind.ACTIVATED,
    observe_only=False,
    law=Law.PRESSURE,
    rule=Rule.STEP,
    inputs=INPUTS,
    old=None,
    new=PublishLimit(750, 3_750),
    step_factor=0.25,
)
ENDED = replace(BEGUN, kind=DecisionKind.DEACTIVATED, rule=Rule.CLEAR, old=BEGUN.new, new=None)
STEP = replace(BEGUN, kind=DecisionKind.CHANGED, old=BEGUN.new, new=PublishLimit(500, 2_500))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "headgate.adaptive")
    return caplog


def test_what_began_and_what_ended(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    log.decided(rig.topic, BEGUN, 0)
    log.decided(rig.topic, STEP, 1)
    log.decided(rig.topic, ENDED, 2)
    begun, ended = lines.messages
    assert begun.startswith(
        "[AdaptiveThrottle] ACTIVATED topic=persistent://acme/ns/t memoryPressure=.43 "
        "backlogPressure=0: slowed to 750 msg/s"
    )
    assert ended.startswith(
        "[AdaptiveThrottle] DEACTIVATED topic=persistent://acme/ns/t naturalMsgRate=1000.0/s: "
    )
    # The document's own command finds the pressure that is there, and only that.
    assert re.search("memoryPressure=[^0]", begun)
    assert not re.search("backlogPressure=[^0]", begun)


def test_observe_only_says_what_would_be(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    log.decided(rig.topic, replace(BEGUN, observe_only=True), 0)
    log.decided(rig.topic, replace(ENDED, observe_only=True), 0)
    assert "OBSERVE-ONLY would-activate topic=" in lines.messages[0]
    assert "OBSERVE-ONLY would-deactivate topic=" in lines.messages[1]
    assert " ACTIVATED" not in lines.text


def test_a_topic_has_a_line_of_each_kind_a_minute(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    for cycle in range(60):
        log.decided(rig.topic, BEGUN if cycle % 2 else ENDED, cycle * NS_PER_S)
        log.cycle_ended(cycle * NS_PER_S)
    assert len(lines.messages) == 2
    log.cycle_ended(60 * NS_PER_S)
    assert lines.messages[-1].endswith("58 more lines in the last minute were left out")
    log.decided(rig.topic, BEGUN, 61 * NS_PER_S)
    assert len(lines.messages) == 4


def test_a_change_of_the_mode_leaves_nothing_out(lines: pytest.LogCaptureFixture) -> None:
    """Slowed, stopped by observe-only, live again and let go, within a minute."""
    log, rig = AdaptiveLogger(), Rig()
    log.decided(rig.topic, BEGUN, 0)
    log.begin_minute()
    log.decided(rig.topic, replace(ENDED, rule=Rule.LET_GO), NS_PER_S)
    log.decided(rig.topic, replace(BEGUN, observe_only=True), 2 * NS_PER_S)
    log.begin_minute()
    log.decided(rig.topic, BEGUN, 3 * NS_PER_S)
    log.decided(rig.topic, ENDED, 4 * NS_PER_S)
    words = [
        line.removeprefix("[AdaptiveThrottle] ").split(" topic=")[0] for line in lines.messages
    ]
    assert words == [
        "ACTIVATED", "DEACTIVATED", "OBSERVE-ONLY would-activate", "ACTIVATED", "DEACTIVATED",
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [4, 5])
def test_the_minute_ends_with_how_a_topic_is(lines: pytest.LogCaptureFixture, seconds: int) -> None:
    """The last of a topic is never left out, only late."""
    log, rig = AdaptiveLogger(), Rig()
    for second in range(1, seconds + 1):
        log.decided(rig.topic, BEGUN if second % 2 else ENDED, second * NS_PER_S)
    log.cycle_ended(61 * NS_PER_S)
    begun, ended, *rest = lines.messages
    assert " ACTIVATED " in begun
    assert " DEACTIVATED " in ended
    if seconds == 4:  # as its last line says
        assert rest == ["[AdaptiveThrottle] 2 more lines in the last minute were left out"]
    else:
        assert rest[0] == "[AdaptiveThrottle] 2 more lines in the last minute were left out"
        assert rest[1].startswith("[AdaptiveThrottle] ACTIVATED topic=")
        assert rest[1].endswith("(56 s ago)")
    log.cycle_ended(122 * NS_PER_S)
    assert len(lines.messages) == len(rest) + 2


def test_a_late_line_is_reported_once_and_not_after_a_newer_one(
    lines: pytest.LogCaptureFixture,
) -> None:
    log, rig = AdaptiveLogger(), Rig()
    for decision in (BEGUN, ENDED, BEGUN):
        log.decided(rig.topic, decision, 0)
    log.begin_minute()
    log.decided(rig.topic, ENDED, NS_PER_S)
    log.cycle_ended(60 * NS_PER_S)
    assert [" DEACTIVATED " in line for line in lines.messages] == [False, True, True, False]
    assert "left out" in lines.messages[-1]


def test_where_both_limits_meet(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    for holds in ("topic policy in messages", "adaptive controller in messages") * 2:
        log.both_limits(rig.topic, "100 msg/s (topic policy)", PublishLimit(75, 800), holds, 0)
    first, second = lines.messages
    assert first == (
        "[AdaptiveThrottle] BOTH-LIMITS topic=persistent://acme/ns/t adaptive=75 msg/s and 800 B/s"
        " set=100 msg/s (topic policy): the tighter one applies, topic policy in messages"
    )
    assert second.endswith("adaptive controller in messages")


def test_many_topics_have_not_a_line_each(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    for number in range(LINES_MAX + 50):
        name = parse_topic(f"persistent://acme/ns/t{number}")
        log.decided(rig.engine.load_topic(name, FakeLog(number + 10)), BEGUN, 0)
    assert len(lines.messages) == LINES_MAX
    log.cycle_ended(60 * NS_PER_S)
    # These fifty are told late, as many as that are at most.
    assert len(lines.messages) == LINES_MAX + 50
    assert all("(60 s ago)" in line for line in lines.messages[LINES_MAX:])


def test_of_very_many_topics_some_are_left_out(lines: pytest.LogCaptureFixture) -> None:
    log, rig = AdaptiveLogger(), Rig()
    for number in range(3 * LINES_MAX):
        name = parse_topic(f"persistent://acme/ns/t{number}")
        log.decided(rig.engine.load_topic(name, FakeLog(number + 10)), BEGUN, 0)
    log.cycle_ended(60 * NS_PER_S)
    assert len(lines.messages) == 2 * LINES_MAX + 1
    left_out = lines.messages[LINES_MAX]
    assert left_out.endswith(f"{LINES_MAX} more lines in the last minute were left out")


def test_a_failure_is_reported_with_its_trace_and_then_once_a_minute(
    lines: pytest.LogCaptureFixture,
) -> None:
    log = AdaptiveLogger()
    for cycle in range(61):
        log.failed(ValueError("of the law"), cycle * NS_PER_S)
    first, second = lines.records
    assert first.getMessage() == "[AdaptiveThrottle] Evaluation cycle failed: of the law"
    assert first.exc_info is not None
    assert "(60 times since the last line)" in second.getMessage()


def test_limits_that_are_lifted_are_reported(lines: pytest.LogCaptureFixture) -> None:
    AdaptiveLogger().limits_outlived(3, 31.2)
    assert lines.messages == [
        "[AdaptiveThrottle] RELEASED 3 topics: no evaluation cycle completed for 31 s"
    ]

"""Adaptive publish throttling with real clients: both laws, observe-only, what can be set, and what
a broker says of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator

import pulsar
import pytest

from tests.service.adaptive_scenes import (
    PREFIX,
    Consuming,
    Publishing,
    change,
    decisions,
    explained,
    figures,
    parked_s,
    set_size_quota,
)
from tests.service.clients import EARLIEST, client_of, full, wait_until
from tests.service.measuring import Noise, Rest
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.quota_scenes import CONFIGURATION, Samples, backlog_bytes, connected, words

pytestmark = pytest.mark.alone

INTERVAL_MS = 100
RATE = 500
"""Messages a second of a thousand bytes that producers want to send."""
QUOTA_BYTES = 1_500_000
"""At three quarters of it, after more than two seconds, the pressure begins."""
RUNTIME = f"{CONFIGURATION}/runtime"

OF_BROKER = {
    "memory_pressure",
    "active_topics",
    "activations_total",
    "controller_last_evaluation_timestamp",
    "controller_evaluation_duration",
    "controller_evaluation_failures_total",
    "controller_interval",
    "observe_only",
    "memory_used_bytes",
    "memory_limit_bytes",
}
OF_TOPIC = {
    "topic_active",
    "topic_natural_publish_rate",
    "topic_effective_publish_rate",
    "topic_memory_pressure",
    "topic_backlog_pressure",
    "topic_rate_reduction_ratio",
}

Make = Callable[..., BrokerProcess]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Its controller looks ten times a second."""
    settings = words(
        adaptivePublisherThrottlingEnabled="true",
        adaptivePublisherThrottlingIntervalMs=INTERVAL_MS,
        headgateMemoryLimitMB=2_000,
        headgateTelemetryIntervalMs=1_000,
    )
    process = BrokerProcess(tmp_path_factory.mktemp("adaptive"), settings)
    process.start()
    try:
        yield process
    finally:
        process.close()


@pytest.fixture(autouse=True)
def as_started(broker: BrokerProcess) -> Iterator[None]:
    """After each test all settings are those of the start."""
    yield
    for _ in range(2):  # a watermark may have to wait for the other one
        for key in json.loads(broker.get(f"{CONFIGURATION}/values")[1]):
            broker.request("DELETE", f"{CONFIGURATION}/{key}")
    assert json.loads(broker.get(f"{CONFIGURATION}/values")[1]) == {}


def is_slowed(rest: Rest, topic: str) -> bool:
    state = explained(rest, topic)
    return state is not None and state["active"] == 1


def subscribed(client: pulsar.Client, topic: str) -> str:
    """The topic, whose messages somebody owes from now on."""
    client.subscribe(topic, "s", initial_position=EARLIEST).close()
    return topic


def lines_of(broker: BrokerProcess, topic: str) -> list[str]:
    """What the controller logged about a topic."""
    return [
        line
        for line in broker.log().splitlines()
        if "[AdaptiveThrottle]" in line and f" topic={topic} " in line
    ]


# What it does ------------------------------------------------------------------------------------


def test_a_topic_is_slowed_by_steps_and_let_go_by_steps(broker: BrokerProcess, rest: Rest) -> None:
    """Rules 5.1, 5.4 and 5.6: log, explain and telemetry tell the same decisions, and the natural
    rate is not worn out by what the limit allowed."""
    topic = full("steps")
    with client_of(broker.service_url) as client:
        set_size_quota(rest, subscribed(client, topic), QUOTA_BYTES)
        with Publishing(client, topic, RATE) as publishing:
            wait_until(lambda: publishing.waiting > RATE / 2)
            state = explained(rest, topic)
            assert (state["law"], state["observeOnly"], state["active"]) == ("pressure", False, 1)
            assert 0.7 * RATE <= state["naturalMessagesPerS"] <= 1.2 * RATE
            assert state["sentence"] == state["decisions"][-1]["sentence"]
            assert re.match(
                r"(?:slowed|slowed further|raised) to [\d,]+ msg/s and [\d,]+ B/s: the backlog is"
                r" at \d+ % of its quota",
                state["sentence"],
            )
        with Consuming(client, topic, 5_000) as consuming:
            publishing.sending.finish()
            wait_until(lambda: not is_slowed(rest, topic))
            wait_until(lambda: consuming.taken == len(publishing.sending.sent))
    assert publishing.sending.with_result() == publishing.sending.sent
    told = decisions(broker.service_url, topic)
    kinds = [each["outcome"]["kind"] for each in told]
    assert (kinds[0], kinds[-1]) == ("activated", "deactivated")
    first, last = told[0], told[-1]
    assert first["limit"] is None
    assert first["outcome"]["limit"]["messages_per_s"] >= 0.74 * first["natural_messages_per_s"] - 1
    assert last["natural_messages_per_s"] >= 0.7 * RATE
    assert last["outcome"]["rule"] == "clear"
    begun, ended = lines_of(broker, topic)
    assert re.search(r"\[AdaptiveThrottle\] ACTIVATED topic=\S+ memoryPressure=0 backlog", begun)
    assert re.search(r"backlogPressure=[^0]", begun)
    assert begun.endswith(first["outcome"]["sentence"])
    assert re.search(r"\[AdaptiveThrottle\] DEACTIVATED topic=\S+ naturalMsgRate=[\d.]+/s", ended)
    assert ended.endswith(last["outcome"]["sentence"])


def test_law_drain_keeps_a_quota_from_being_reached(broker: BrokerProcess, rest: Rest) -> None:
    """Rule 5.5: with the producer and its slow consumer on one connection, which is never paused:
    the backlog stays below, and what the consumer can do is used."""
    topic, drained = full("drain"), 100
    quota_bytes = 13 * drained * 1_000
    change(rest, Law="drain", DrainHorizonMs=1_000)
    with client_of(broker.service_url) as client:
        set_size_quota(rest, subscribed(client, topic), quota_bytes)
        with (
            Consuming(client, topic, drained) as consuming,
            Publishing(client, topic, 400) as publishing,
            Samples(broker.admin_url, topic, lambda s: (backlog_bytes(s), connected(s))) as seen,
        ):
            wait_until(lambda: publishing.waiting > 400)
            before, begin = consuming.taken, time.monotonic()
            time.sleep(4)
            taken, span = consuming.taken - before, time.monotonic() - begin
            assert is_slowed(rest, topic)
            # A set point far below the backlog asks for nothing at all.
            change(rest, DrainSetPointPct=0.2)
            wait_until(lambda: explained(rest, topic)["decisions"][-1]["rule"] == "minimum")
    assert 0.6 * quota_bytes < max(size for size, _ in seen.values) < quota_bytes
    assert taken >= 0.8 * drained * span
    assert parked_s(broker, topic, "adaptive") > 2
    assert parked_s(broker, topic, "backlog_quota") == 0
    assert len({tuple(producers) for _, producers in seen.values if producers}) == 1
    told = decisions(broker.service_url, topic)
    assert {each["law"] for each in told} == {"drain"}
    assert [each["outcome"]["kind"] for each in told].count("activated") <= 3


def test_memory_slows_who_takes_it_and_nobody_else(broker: BrokerProcess, rest: Rest) -> None:
    """Rule 5.3: a topic that grows, not one beside it; its watermarks act while it runs."""
    heavy, light = full("heavy"), full("light")
    with client_of(broker.service_url) as client:
        with (
            Publishing(client, heavy, 1_500, at_once=10) as flood,
            Publishing(client, light, 20) as trickle,
        ):
            wait_until(lambda: (explained(rest, light) or {}).get("naturalMessagesPerS", 0) > 10)
            assert figures(broker)["memory_pressure"] == 0
            # What every broker takes is far more than that. In three such cycles a flood is seen to
            # grow, so that nobody else is asked.
            change(rest, IntervalMs=1_000)
            change(rest, MemoryLowWatermarkPct=0.001)
            change(rest, MemoryHighWatermarkPct=0.002)
            wait_until(lambda: is_slowed(rest, heavy) and flood.waiting > 500)
            assert figures(broker)["memory_pressure"] == 1
            assert "memory is short (100 % of the way" in explained(rest, heavy)["sentence"]
            wait_until(lambda: len(trickle.sending.sent) > 100)
            assert explained(rest, light)["decisions"] == []
            assert trickle.waiting < 20
            change(rest, MemoryHighWatermarkPct=1, MemoryLowWatermarkPct=0.99)
            change(rest, IntervalMs=INTERVAL_MS)
        flood.sending.finish()
        wait_until(lambda: not is_slowed(rest, heavy))
    assert re.search(r"ACTIVATED .*memoryPressure=[^0]", lines_of(broker, heavy)[0])
    assert lines_of(broker, light) == []
    assert parked_s(broker, light, "adaptive") == 0


def test_observe_only_releases_at_once_and_holds_nobody(broker: BrokerProcess, rest: Rest) -> None:
    """Rule 5.2: within 100 ms, though the next cycle is ten minutes away; then it only says what
    it would do."""
    topic, quota_bytes = full("observed"), 2_000_000
    with client_of(broker.service_url) as client:
        set_size_quota(rest, subscribed(client, topic), quota_bytes)
        with Publishing(client, topic, RATE) as publishing:
            wait_until(lambda: parked_s(broker, topic, "adaptive") > 0.3)
            wait_until(lambda: publishing.waiting > 100)
        change(rest, IntervalMs=600_000)
        assert publishing.waiting > 50
        with Noise([broker.pid]) as noise:
            begin = time.monotonic()
            change(rest, ObserveOnly="true")
            publishing.sending.finish()
            end = max(at for _, _, at in publishing.sending.told)
        assert end - begin - noise.lost_s(broker.pid, begin, end) <= 0.1
        now = figures(broker)
        assert (now["active_topics"], now["observe_only"]) == (0, 1)
        held_s = parked_s(broker, topic, "adaptive")
        assert held_s > 0
        change(rest, IntervalMs=INTERVAL_MS)
        with Publishing(client, topic, 20, "trickle") as trickle:
            wait_until(lambda: "OBSERVE-ONLY would-activate" in lines_of(broker, topic)[-1])
        trickle.sending.finish()
        state = explained(rest, topic)
        assert (state["observeOnly"], state["active"]) == (True, 0)
        assert state["decisions"][-1]["observeOnly"]
        assert state["sentence"].startswith("would be ")
    assert parked_s(broker, topic, "adaptive") == held_s
    assert figures(broker)["activations_total"] == now["activations_total"]


# What can be set ---------------------------------------------------------------------------------


def refused(broker: BrokerProcess, name: str, value: str) -> str:
    """The reason for which a dynamic value is refused; the old one stays."""
    key = PREFIX + name
    before = json.loads(broker.get(RUNTIME)[1])[key]
    status, body = broker.request("POST", f"{CONFIGURATION}/{key}/{value}")
    assert status == 412, (status, body)
    assert json.loads(broker.get(RUNTIME)[1])[key] == before
    reason: str = json.loads(body)["reason"]
    assert reason.startswith(f"{key}='{value}' is not allowed; use "), reason
    return reason


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("ObserveOnly", "perhaps", "true or false"),
        ("IntervalMs", "9", "10"),
        ("IntervalMs", "600001", "600000"),
        ("MemoryHighWatermarkPct", "1.01", "1"),
        ("MemoryHighWatermarkPct", "0.6", "above adaptivePublisherThrottlingMemoryLowWatermark"),
        ("MemoryLowWatermarkPct", "0", "0"),
        ("BacklogHighWatermarkPct", "85", "1"),
        ("BacklogLowWatermarkPct", "0.9", "below adaptivePublisherThrottlingBacklogHighWatermark"),
        ("MinRateFactor", "0", "0"),
        ("MaxRateChangeFactor", "1.5", "1"),
        ("PerTopicMetricsEnabled", "1", "true or false"),
        ("Law", "pid", "pressure"),
        ("DrainSetPointPct", "1", "1"),
        ("DrainHorizonMs", "99", "100"),
    ],
)
def test_values_out_of_range_are_refused_while_it_runs(
    broker: BrokerProcess, name: str, value: str, allowed: str
) -> None:
    """Rule 5.1: with key, value and what is allowed; the old value stays."""
    assert allowed in refused(broker, name, value)


def test_the_switch_itself_takes_a_restart(broker: BrokerProcess) -> None:
    """Rule 5.1."""
    status, body = broker.request("POST", f"{CONFIGURATION}/{PREFIX}Enabled/false")
    assert status == 412
    assert json.loads(body)["reason"].startswith(
        f"Can't update non-dynamic configuration: {PREFIX}Enabled is read when the broker starts"
    )


def test_a_start_with_crossed_watermarks_is_refused(make_broker: Make) -> None:
    """Rule 5.1."""
    low, high = (f"{PREFIX}Backlog{end}WatermarkPct" for end in ("Low", "High"))
    broker = make_broker(words=words(**{low: 0.95}))
    with pytest.raises(StartFailedError) as caught:
        broker.start()
    assert caught.value.stderr.startswith("Error: ")
    assert f"{low}='0.95' is not allowed" in caught.value.stderr
    assert high in caught.value.stderr


def test_dynamic_keys_act_without_a_restart(broker: BrokerProcess, rest: Rest) -> None:
    """Rules 5.1 and 5.2: each has its effect with the next cycles, here of a topic of which half
    a quota is used, in observe-only."""
    topic = full("dynamic")
    assert figures(broker, topic) == {}
    change(rest, ObserveOnly="true", PerTopicMetricsEnabled="true")

    def becomes(name: str, low: float, high: float) -> None:
        wait_until(lambda: low <= figures(broker, topic).get(name, -1.0) <= high)

    with client_of(broker.service_url) as client:
        subscribed(client, topic)
        with Publishing(client, topic, 100) as publishing:
            becomes("topic_natural_publish_rate", 80, 120)
            assert set(figures(broker, topic)) == OF_TOPIC
            filled = backlog_bytes(rest.topic(topic))
            set_size_quota(rest, topic, 2 * filled + 400_000)  # and soon half of it is used
            change(rest, BacklogLowWatermarkPct=0.001)
            becomes("topic_backlog_pressure", 0.1, 0.99)
            change(rest, BacklogHighWatermarkPct=0.002)
            becomes("topic_backlog_pressure", 1.0, 1.0)
            becomes("topic_rate_reduction_ratio", 0.88, 0.92)
            change(rest, MinRateFactor=0.6)
            becomes("topic_rate_reduction_ratio", 0.35, 0.42)
            change(rest, MaxRateChangeFactor=0.02, MinRateFactor=0.2)
            wait_until(lambda: "step of 2 %" in explained(rest, topic)["sentence"])
            change(rest, IntervalMs=600_000)
            time.sleep(0.1)  # the cycle that was on its way
            evaluated = figures(broker)["controller_last_evaluation_timestamp"]
            time.sleep(0.4)
            now = figures(broker)
            assert now["controller_last_evaluation_timestamp"] == evaluated
            assert now["controller_interval"] == 600_000
            change(rest, IntervalMs=INTERVAL_MS)
            wait_until(
                lambda: figures(broker)["controller_last_evaluation_timestamp"] > evaluated, 2
            )
        publishing.sending.finish()
    assert parked_s(broker, topic, "adaptive") == 0
    change(rest, PerTopicMetricsEnabled="false")
    assert figures(broker, topic) == {}


# On and off --------------------------------------------------------------------------------------


def test_enabled_there_are_six_instruments_and_what_alerts_need(broker: BrokerProcess) -> None:
    """Rule 5.1: and the time of the last cycle is now."""
    found = figures(broker)
    assert set(found) == OF_BROKER
    assert found["controller_interval"] == INTERVAL_MS
    assert 0 < found["memory_used_bytes"] < found["memory_limit_bytes"]
    assert found["controller_evaluation_failures_total"] == 0
    age_s = time.time() - found["controller_last_evaluation_timestamp"] / 1_000
    assert age_s < 1


def test_disabled_there_is_nothing_of_it(make_broker: Make) -> None:
    """Rule 5.1: no series, no lines, no limit, whatever the other keys say."""
    settings = words(
        adaptivePublisherThrottlingIntervalMs=INTERVAL_MS,
        adaptivePublisherThrottlingPerTopicMetricsEnabled="true",
        adaptivePublisherThrottlingBacklogLowWatermarkPct=0.001,
        adaptivePublisherThrottlingBacklogHighWatermarkPct=0.002,
    )
    broker = make_broker(words=settings).start()
    topic, rest = full("off"), Rest(broker.admin_url)
    with client_of(broker.service_url) as client:
        set_size_quota(rest, subscribed(client, topic), QUOTA_BYTES)
        with Publishing(client, topic, 200) as publishing:
            wait_until(lambda: len(publishing.sending.told) > 300)
        publishing.sending.finish()
    assert parked_s(broker, topic, "adaptive") == 0
    assert explained(rest, topic) is None
    rest.close()
    assert b"headgate_adaptive" not in broker.get("/metrics")[1]
    assert "AdaptiveThrottle" not in broker.log()

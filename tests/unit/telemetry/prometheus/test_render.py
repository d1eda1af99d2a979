"""The page: every sample from the state it tells, in the form that Prometheus reads."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.texts import label_value
from headgate.flow.account.account import State
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.record.fields import STATE_CELLS
from headgate.telemetry.prometheus import render as prometheus
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.prometheus.series.limits import LIMIT_SERIES
from headgate.testing import RefusedError, World
from tests.unit.security.made_tokens import token_provider
from tests.unit.telemetry.support import (
    ADAPTIVE_SETTINGS,
    NAME,
    Sample,
    fill_disk_up,
    limit,
    publish,
    publish_limit,
    quota,
    read_page,
    rendered,
    value_of,
)

THROTTLED = (
    "pulsar_subscription_dispatch_throttled_msg_events",
    "pulsar_subscription_dispatch_throttled_bytes_events",
)
HELD_BACK = (
    "pulsar_subscription_dispatch_throttled_msgs",
    "pulsar_subscription_dispatch_throttled_bytes",
)


async def page(world: World) -> tuple[dict[str, str], list[Sample]]:
    return read_page(await rendered(world.broker))


ANONYMOUS = {"authenticationEnabled": "true", "anonymousUserRole": "anyone"}


def test_series_on_the_page_are_those_of_the_table() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await publish(world, 5)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        await limit(world.broker, 50)
        await quota(world.broker, limit_size=1_000)
        producer = await client.producer(NAME)
        for _ in range(12):
            producer.send_nowait(bytes(100))
            await asyncio.sleep(1)
        world.broker.schemas.get(parse_topic(NAME))
        fill_disk_up(world.broker)
        world.broker.tls.expires_at_s = 1_800_000_000
        world.broker.engine.topics[NAME].publishing.duplicates_dropped = 3
        types, samples = await page(world)
        table = {series.name: series for series in SERIES}
        assert list(types.items()) == [(series.family, series.type) for series in SERIES]
        for sample in samples:
            if sample.name not in table:
                of = table[sample.name.rpartition("_")[0]]
                assert of.type in ("histogram", "summary")
                assert sample.labels.keys() - {"le"} == set(of.labels)
                continue
            assert set(sample.labels) <= set(table[sample.name].labels)
            if sample.name != LIMIT_SERIES.name:
                assert tuple(sample.labels) == table[sample.name].labels

    with World(
        settings={
            **ADAPTIVE_SETTINGS,
            **ANONYMOUS,
            "exposeSubscriptionBacklogAgeInPrometheus": "true",
        }
    ) as world:
        world.run(scenario(world))


def test_duplicates_of_a_topic_that_had_deduplication() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 5)
        name = "headgate_topic_duplicates_dropped_messages_total"
        assert name not in (await page(world))[0]
        topic = parse_topic(NAME)
        await broker.commit(broker.catalog.plan_topic_policies(topic, deduplication=True))
        assert value_of((await page(world))[1], name, topic=NAME) == 0
        client = await world.connect()
        producer = await client.producer(NAME)
        await producer.send(b"x")
        producer.sequence_id -= 1
        await producer.send(b"x")
        _, samples = await page(world)
        assert value_of(samples, name, topic=NAME) == 1
        assert value_of(samples, "headgate_duplicates_dropped_messages_total") == 1

    with World() as world:
        world.run(scenario(world))


def test_attempts_to_authenticate() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for _ in range(3):
            await world.connect()
        with pytest.raises(RefusedError):
            await world.connect(auth_method="token", auth_data=b"x")
        _, samples = await page(world)
        name = "headgate_authentication_attempts_total"
        assert value_of(samples, name, method="none", result="success") == 3
        assert value_of(samples, name, method="token", result="failure") == 1

    with World(settings=ANONYMOUS, providers=[token_provider()]) as world:
        world.run(scenario(world))


def test_counts_backlog_and_time() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s", queue_size=0)
        consumer.flow(4)
        await publish(world, 10)
        await consumer.ack((await consumer.receive()).position)
        await asyncio.sleep(30)
        _, samples = await page(world)
        topic = broker.engine.topics[NAME]
        here = {"cluster": "standalone", "namespace": "public/default", "topic": NAME}

        def value(name: str, **labels: str) -> float:
            return value_of(samples, name, **here, **labels)

        assert value("pulsar_in_messages_total") == 10
        assert value("pulsar_in_bytes_total") == topic.bytes_in() > 1_000
        assert value("pulsar_msg_backlog") == 9
        assert value("pulsar_storage_backlog_size") == topic.backlog_bytes()
        assert value("pulsar_storage_backlog_age_seconds") == 30
        assert value("pulsar_consumers_count") == 1
        assert value("pulsar_producers_count") == 0
        own = {"subscription": "s"}
        assert value("pulsar_subscription_back_log", **own) == 9
        assert value("pulsar_subscription_unacked_messages", **own) == 3
        assert value("pulsar_out_messages_total", **own) == 4
        states = [s for s in samples if s.name == "headgate_subscription_state_seconds_total"]
        assert sum(s.value for s in states) == pytest.approx(30, abs=0.5)
        assert value(states[0].name, **own, state="no_permits") == pytest.approx(30, abs=0.5)
        assert value_of(samples, "pulsar_broker_msg_backlog") == 9
        assert value_of(samples, "pulsar_topics_count", namespace="public/default") == 1

    with World() as world:
        world.run(scenario(world))


@pytest.mark.parametrize("splits", [False, True])
def test_partitions_have_a_label_of_their_own_where_that_is_asked_for(splits: bool) -> None:
    """``splitTopicAndPartitionLabelInPrometheus``: on every series of topics and subscriptions, -1
    for a topic without partitions."""

    async def scenario(world: World) -> None:
        await world.start()
        client = await world.connect()
        for name in (NAME, f"{NAME}-partition-12"):
            await client.subscribe(name, "s")
        _, samples = await page(world)
        found = {
            (sample.labels["topic"], sample.labels.get("partition"))
            for sample in samples
            if "topic" in sample.labels
        }
        if splits:
            assert found == {(NAME, "-1"), (NAME, "12")}
        else:
            assert found == {(NAME, None), (f"{NAME}-partition-12", None)}

    with World(settings={"splitTopicAndPartitionLabelInPrometheus": str(splits).lower()}) as world:
        world.run(scenario(world))


def test_throttled_events_are_six_for_each_subscription_and_settled() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s", queue_size=0)
        _, samples = await page(world)
        events = [s for s in samples if s.name in THROTTLED]
        assert [s.labels["reason"] for s in events] == ["subscription", "topic", "broker"] * 2
        assert all(s.value == 0 for s in events)
        await limit(broker, 10)
        await publish(world, 60)
        consumer.flow(1_000)
        await asyncio.sleep(3.5)
        _, samples = await page(world)
        # Still waiting: the periods so far are counted all the same.
        assert value_of(samples, THROTTLED[0], reason="subscription") in (3, 4)
        held_back = [s for s in samples if s.name in HELD_BACK]
        assert [(s.name, s.value) for s in held_back] == list(zip(HELD_BACK, (50, 0), strict=True))
        assert held_back[0].labels == {
            "cluster": broker.settings.clusterName,
            "tenant": "public",
            "namespace": "public/default",
            "topic": NAME,
            "subscription": "s",
        }
        assert value_of(samples, THROTTLED[0], reason="topic") == 0
        assert value_of(samples, THROTTLED[1], reason="subscription") == 0
        held = value_of(
            samples,
            "headgate_subscription_state_seconds_total",
            state="throttled_subscription",
            dimension="messages",
            consumer="hungry",
        )
        assert held == pytest.approx(3.5, abs=0.3)

    with World() as world:
        world.run(scenario(world))


def test_effective_limits_say_where_they_are_set() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        await limit(broker, 50)
        await limit(broker, 80, of="topic")
        own = await broker.registry.create(parse_topic(broker.settings.headgateTelemetryTopic))
        await limit(broker, 5, own.name.full, of="topic")
        _, samples = await page(world)
        limits = {s.labels["limiter"]: s for s in samples if s.name == LIMIT_SERIES.name}
        assert set(limits) == {"broker", "topic", "subscription"}
        assert (limits["topic"].value, limits["topic"].labels["topic"]) == (80, NAME)
        assert "subscription" not in limits["topic"].labels
        assert limits["broker"].value == 700
        assert limits["broker"].labels == {
            "cluster": "standalone",
            "limiter": "broker",
            "dimension": "bytes",
            "source": "broker setting dispatchThrottlingRateInByte",
        }
        assert limits["subscription"].value == 50
        assert limits["subscription"].labels["source"] == "topic policy"
        assert limits["subscription"].labels["subscription"] == "s"

    with World(settings={"dispatchThrottlingRateInByte": "700"}) as world:
        world.run(scenario(world))


def test_publish_limits_are_reported_beside_those_of_dispatch() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        topic = await publish(world, 1)
        await publish_limit(broker, 80, 9_000)
        topic.publishing.adaptive_limit = RateLimit(100, 2_000)
        broker.engine.admission.put_in_force(topic)
        _, samples = await page(world)
        limits = {
            (s.labels["limiter"], s.labels["dimension"]): (s.value, s.labels["source"])
            for s in samples
            if s.name == LIMIT_SERIES.name
        }
        assert limits == {
            ("publish_broker", "messages"): (
                300,
                "broker setting brokerPublisherThrottlingMaxMessageRate",
            ),
            ("publish_topic", "messages"): (80, "topic policy"),
            ("publish_topic", "bytes"): (2_000, "adaptive controller"),
        }

    with World(settings={"brokerPublisherThrottlingMaxMessageRate": "300"}) as world:
        world.run(scenario(world))


def test_without_topic_level_the_brokers_series_stay() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await publish(world, 3)
        types, samples = await page(world)
        assert value_of(samples, "pulsar_broker_topics_count") == 1
        assert value_of(samples, "pulsar_broker_storage_size") > 0
        assert all(not {"topic", "subscription"} & set(sample.labels) for sample in samples)
        named = {sample.name for sample in samples if "namespace" in sample.labels}
        assert {"pulsar_topics_count", "pulsar_in_messages_total", "pulsar_out_bytes_total"} < named
        assert value_of(samples, "pulsar_in_messages_total", namespace="public/default") == 3
        assert value_of(samples, "pulsar_msg_backlog", remote_cluster="local") == 0
        assert value_of(samples, "pulsar_entry_size_count", namespace="public/default") == 0
        # What has no meaning as a sum is left out, as a Pulsar broker does.
        assert not named & {
            "pulsar_storage_backlog_age_seconds", "pulsar_storage_backlog_quota_limit",
            "pulsar_average_msg_size", "pulsar_publish_rate_limit_times",
        }  # fmt: skip
        assert types["pulsar_storage_backlog_quota_exceeded_evictions_total"] == "gauge"

    with World(settings={"exposeTopicLevelMetricsInPrometheus": "false"}) as world:
        world.run(scenario(world))


def test_the_brokers_own_topic_is_shown_and_kept_apart_in_the_sums() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 3)
        own = await broker.registry.create(parse_topic(broker.settings.headgateTelemetryTopic))
        _, samples = await page(world)
        assert value_of(samples, "pulsar_producers_count", topic=own.name.full) == 0
        in_bytes = "pulsar_broker_in_bytes_total"
        assert value_of(samples, in_bytes, system_topic="false") > 0
        assert value_of(samples, in_bytes, system_topic="true") == 0
        assert value_of(samples, "pulsar_broker_topics_count") == 2

    with World() as world:
        world.run(scenario(world))


def test_labels_are_escaped() -> None:
    assert label_value('a"b\\c\nd') == 'a\\"b\\\\c\\nd'
    assert label_value("plain") == "plain"

    async def scenario(world: World) -> None:
        await world.start()
        await publish(world, 1)
        client = await world.connect()
        await client.subscribe(NAME, 'say "hi" \\ bye')
        _, samples = await page(world)
        names = {s.labels["subscription"] for s in samples if "subscription" in s.labels}
        assert names == {'say \\"hi\\" \\\\ bye'}

    with World() as world:
        world.run(scenario(world))


def test_a_page_of_many_topics_lets_others_run() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        for i in range(100):
            await broker.registry.create(parse_topic(f"persistent://public/default/t{i}"))
        turns = 0
        rendering = asyncio.get_running_loop().create_task(rendered(broker))
        gone = parse_topic("persistent://public/default/t99")
        while not rendering.done():
            await asyncio.sleep(0)
            turns += 1
            if turns == 1:
                broker.engine.unload_topic(broker.engine.topics[gone.full])
        assert turns >= 100 // prometheus.SLICE_SUBJECTS
        _, samples = read_page(await rendering)
        assert value_of(samples, "pulsar_topics_count", namespace="public/default") == 99

    with World() as world:
        world.run(scenario(world))


def test_state_labels_are_those_of_the_record() -> None:
    cells = [(c.state.value, c.dimension, c.consumer) for c in prometheus.LABELS]
    assert tuple(cells) == STATE_CELLS
    assert {state for state, _, _ in cells} == {state.value for state in State}
    assert len(prometheus._REASONS) == len(Level)

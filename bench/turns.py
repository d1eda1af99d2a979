"""What a unit of the broker's work costs: each step in CPU, beside the 4 us that it counts.

The broker is a whole one in memory (headgate.testing): disk and other processes take no part.
A step that costs more than twice its units is a miss: turns with much of it would be too long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from bench.report import Table, median, number
from headgate.base import work_units
from headgate.base.units import NS_PER_US
from headgate.base.work_units import STEPS
from headgate.broker.commands.acked_ids import ack_entries
from headgate.broker.commands.consuming import _redeliver_in_slices
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.waiting_commands import WaitingCommands
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import OlderThan
from headgate.flow.limits.rate_limit import RateLimit
from headgate.schema.avro import AvroSchema, parse_avro
from headgate.schema.avro_resolution import misfit
from headgate.schema.definition import Steps
from headgate.testing import NetworkProfile, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, SubscriptionType
from headgate.wire.entry import build_entry
from headgate.wire.messages import BaseCommand, MessageMetadata

T = TypeVar("T")

UNIT_US = work_units.UNIT_NS / NS_PER_US
TIMES_MAX = 2.0
ROUNDS = 7
COUNT = 400
"""Steps of one round."""
HOUR_MS = 3_600_000

NOT_ALONE = {
    "read": "a read of a socket is mostly a system call; bench messages has it",
    "send": "with the read of its frame; bench messages has it",
    "flow": "with the read of its frame",
    "connection measured": "bench crowd has it",
    "connection slowed": "bench crowd has it",
    "connection resumed": "bench crowd has it",
    "waited": "bench crowd has it",
    "ping": "with the read of its frame",
    "connection ended": "bench crowd has it",
    "cold command": "its bytes and its answer count more than its number",
    "credentials checked": "bench authentication has it",
    "pumped": "a part of every dispatched entry",
    "topic durable": "a part of every receipt",
    "waiter told": "what the waiting request does then is its own command",
    "topic limit resolved": "a part of a resolved topic",
    "topic trimmed": "bench recycling has it",
    "topic loaded": "a part of a client's first command about it; bench restart has it",
    "topic dropped": "the metadata, the log and the disk have parts in a deletion",
    "consumer ranked": "its hashes are a part of a SUBSCRIBE; bench crowd has that",
    "watcher ended": "a part of its connection's end",
    "subscription looked at": "as the history's unchanged ones",
}
"""Steps that this bench cannot measure by themselves, with the reason."""


@dataclass
class Stage:
    """A broker with topics and one consumer on each."""

    world: World
    client: SimClient
    topics: list[Topic]

    @property
    def subscriptions(self) -> list[Subscription]:
        """One of each topic."""
        return [topic.subscriptions["s"] for topic in self.topics]


def cpu_us(work: Callable[[], object]) -> float:
    """CPU time of ``work`` in microseconds."""
    began_ns = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began_ns) / NS_PER_US


async def stage_of(world: World) -> Stage:
    """``COUNT`` topics with a producer and a Shared consumer each, on one connection."""
    await world.start()
    client = await world.connect()
    for number_ in range(COUNT):
        name = f"persistent://public/default/t{number_}"
        await client.subscribe(name, "s", kind=SubscriptionType.SHARED, queue_size=0)
        await client.producer(name)
    topics = [t for t in world.broker.engine.topics.values() if not t.is_system]
    return Stage(world, client, topics)


def _drain(steps: Iterator[object]) -> None:
    for _ in steps:
        pass


def _flush(stage: Stage) -> None:
    while stage.world.broker.engine.flush():
        pass


async def _publish(stage: Stage, topic: Topic, count: int, body: bytes = b"x" * 100) -> None:
    producer = next(iter(topic.producers.values()))
    for sequence in range(count):
        topic.publishing.publish(producer, sequence, sequence, 1, body)
    await stage.world.broker.when_durable()
    await asyncio.sleep(0.1)


async def topic_resolved(stage: Stage) -> float:
    """Topics whose policies are put in force, less their subscriptions and producers."""
    engine = stage.world.broker.engine

    def resolve() -> None:
        for topic in stage.topics:
            _drain(engine.publish_limit_in_steps(topic))
            engine.reload_quotas(topic)
            engine.may_release(topic)
            _drain(engine.limits_in_steps(topic))

    return (cpu_us(resolve) / COUNT) - UNIT_US * work_units.SUBSCRIPTION_RESOLVED


async def subscription_resolved(stage: Stage) -> float:
    engine, topic = stage.world.broker.engine, stage.topics[0]
    for number_ in range(COUNT):
        await stage.world.broker.subscriptions.create(
            topic, f"more{number_}", at_ordinal=0, properties={}
        )
    return cpu_us(lambda: _drain(engine.limits_in_steps(topic))) / (COUNT + 1)


async def producer_resolved(stage: Stage) -> float:
    broker = stage.world.broker
    topic = stage.topics[0]
    broker.engine.admission.set_broker_limit(RateLimit(1_000_000, None))
    gate = broker.engine.admission.gate_of(topic.publishing)
    for _ in range(COUNT):
        gate.waiter()
    broker.engine.admission.set_broker_limit(RateLimit(None, 1 << 40))
    took_us = cpu_us(lambda: _drain(broker.engine.admission.limit_in_steps(topic)))
    broker.engine.admission.set_broker_limit(None)
    return took_us / COUNT


async def client_closed(stage: Stage) -> float:
    steps = stage.subscriptions

    def close() -> None:
        for subscription in steps:
            subscription.disconnect_consumers()

    return cpu_us(close) / COUNT


async def command_cancelled(stage: Stage) -> float:
    """With what the loop does for each task that ends."""
    broker, never = stage.world.broker, asyncio.Event()
    connection = next(iter(broker.connections))
    memory, left = broker.client_memory, broker.connections.left_acknowledgements
    waiting = WaitingCommands(connection, stage.world.loop, memory, left)
    for request_id in range(COUNT):
        command = BaseCommand(type=CommandType.UNSUBSCRIBE)
        command.unsubscribe.request_id = command.unsubscribe.consumer_id = request_id
        waiting.add(_wait(never), command)
    await asyncio.sleep(0)
    began_ns = time.process_time_ns()
    _drain(waiting.cancel())
    while waiting.count:
        await asyncio.sleep(0)
    return (time.process_time_ns() - began_ns) / NS_PER_US / COUNT


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def subscription_removed(stage: Stage) -> float:
    for subscription in stage.subscriptions:
        subscription.disconnect_consumers()

    def remove() -> None:
        for topic in stage.topics:
            topic.remove_subscription("s")

    return cpu_us(remove) / COUNT


async def subscription_recorded(stage: Stage) -> float:
    history, took_us = stage.world.observer.history, 0.0

    def record() -> None:
        for subscription in stage.subscriptions:
            history.observe(subscription)

    for sequence in range(3):
        for topic in stage.topics:
            producer = next(iter(topic.producers.values()))
            topic.publishing.publish(producer, sequence, sequence, 1, b"x")
        await stage.world.broker.when_durable()
        stage.world.broker.begin_turn()
        took_us = cpu_us(record)
    return took_us / COUNT


def _hold(stage: Stage, count: int) -> tuple[Topic, Subscription, Consumer]:
    topic = stage.topics[0]
    subscription = topic.subscriptions["s"]
    consumer = next(iter(subscription.consumers))
    subscription.flow(consumer, 10 * count)
    _flush(stage)
    return topic, subscription, consumer


async def dispatched(stage: Stage) -> float:
    await _publish(stage, stage.topics[0], COUNT)
    return cpu_us(lambda: _hold(stage, COUNT)) / COUNT


async def queued_again(stage: Stage) -> float:
    await _publish(stage, stage.topics[0], COUNT)
    _, subscription, consumer = _hold(stage, COUNT)
    consumer.permits = 0

    def give_back() -> None:
        subscription.redeliver(consumer, None, -1)
        _flush(stage)

    return cpu_us(give_back) / COUNT


async def _publish_delayed(stage: Stage) -> Subscription:
    """``COUNT`` entries of the first topic that are due in an hour, all put aside."""
    now_ms = stage.world.wall_ms()
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=now_ms)
    metadata.deliver_at_time = now_ms + HOUR_MS
    stage.topics[0].may_be_delayed()
    await _publish(stage, stage.topics[0], COUNT, build_entry(metadata, b"x" * 100))
    subscription = stage.subscriptions[0]
    assert subscription.delayed_messages == COUNT
    return subscription


async def put_aside(stage: Stage) -> float:
    subscription = await _publish_delayed(stage)
    dispatcher = subscription.dispatcher
    dispatcher.close()
    dispatcher.read_ordinal = 0
    subscription.wake()
    took_us = cpu_us(lambda: _flush(stage))
    assert subscription.delayed_messages == COUNT
    return took_us / COUNT


async def became_due(stage: Stage) -> float:
    subscription = await _publish_delayed(stage)
    engine = stage.world.broker.engine
    engine.begin_turn(engine.now_ns, engine.now_ms + HOUR_MS, engine.log_ms)
    took_us = cpu_us(lambda: _flush(stage))
    assert subscription.delayed_messages == 0
    return took_us / COUNT


async def redeliver_id(stage: Stage) -> float:
    await _publish(stage, stage.topics[0], COUNT)
    topic, _, consumer = _hold(stage, COUNT)
    consumer.permits = 0
    positions = [topic.log.position(ordinal) for ordinal in range(COUNT)]
    command = BaseCommand.FromString(frames.redeliver(consumer.consumer_id, positions)[8:])
    (connection,) = stage.world.broker.connections
    assert isinstance(connection, Connection)
    connected = connection.consumers[consumer.consumer_id]
    broker = stage.world.broker
    steps = _redeliver_in_slices(broker.logs, broker.work, connection, command, connected)
    return cpu_us(lambda: _drain(steps)) / COUNT


async def ack_id(stage: Stage) -> float:
    await _publish(stage, stage.topics[0], COUNT)
    topic, subscription, consumer = _hold(stage, COUNT)
    positions = [topic.log.position(ordinal) for ordinal in range(COUNT)]
    command = BaseCommand.FromString(frames.ack(consumer.consumer_id, positions)[8:])
    ids = command.ack.message_id
    settings = stage.world.broker.settings
    work = partial(ack_entries, consumer, subscription, ids, [], [], settings)
    return cpu_us(work) / COUNT


async def receipt(stage: Stage) -> float:
    log = stage.world.broker.log
    for topic in stage.topics:
        producer = next(iter(topic.producers.values()))
        topic.publishing.publish(producer, 0, 0, 1, b"x" * 100)
    batch = log.seal_batch()
    assert batch is not None
    log.write_batch(batch)
    log.complete(batch)

    def durable() -> None:
        for topic in stage.topics:
            topic.publishing.entries_durable(1_000)

    return cpu_us(durable) / COUNT - UNIT_US * work_units.TOPIC_DURABLE


async def subscription_expired(stage: Stage) -> float:
    for topic in stage.topics:
        producer = next(iter(topic.producers.values()))
        topic.publishing.publish(producer, 0, 0, 1, b"x")
    await stage.world.broker.when_durable()
    facade = AdminFacade(stage.world.broker, stage.world.observer)
    began_ns = time.process_time_ns()
    for subscription in stage.subscriptions:
        await facade.expire_messages(subscription.topic.name, subscription.name, OlderThan(0))
    return (time.process_time_ns() - began_ns) / NS_PER_US / COUNT


async def acks_staged(stage: Stage) -> float:
    for topic in stage.topics:
        producer = next(iter(topic.producers.values()))
        topic.publishing.publish(producer, 0, 0, 1, b"x")
    await stage.world.broker.when_durable()
    for subscription in stage.subscriptions:
        subscription.skip_to(1)
    log = stage.world.broker.log
    cursor_ids = [s.cursor_id for s in stage.subscriptions if s.cursor_id is not None]

    def stage_all() -> None:
        for cursor_id in cursor_ids:
            log.stage_acks(cursor_id)

    return cpu_us(stage_all) / COUNT


COLUMNS: Final = 1_000
"""Fields of a definition that is read or compared."""


def _table_schema() -> AvroSchema:
    fields = [{"name": f"column_{number}", "type": ["null", "string"]} for number in range(COLUMNS)]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    return _result(parse_avro(text.encode()))


def _result(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def schema_type_read(_: Stage) -> float:
    # A field is a union of two types, and the record is one more.
    return cpu_us(_table_schema) / (3 * COLUMNS + 1)


async def schema_pair_compared(_: Stage) -> float:
    ours, theirs = _table_schema(), _table_schema()
    return cpu_us(lambda: _result(misfit(ours, theirs))) / (2 * COLUMNS + 1)


Measure = Callable[[Stage], Awaitable[float]]

MEASURES: dict[str, Measure] = {
    "topic resolved": topic_resolved,
    "subscription resolved": subscription_resolved,
    "producer resolved": producer_resolved,
    "client closed": client_closed,
    "command cancelled": command_cancelled,
    "subscription removed": subscription_removed,
    "subscription recorded": subscription_recorded,
    "dispatched": dispatched,
    "queued again": queued_again,
    "put aside": put_aside,
    "became due": became_due,
    "redeliver id": redeliver_id,
    "ack id": ack_id,
    "receipt": receipt,
    "subscription expired": subscription_expired,
    "acks staged": acks_staged,
    "schema type read": schema_type_read,
    "schema pair compared": schema_pair_compared,
}
"""By the name of the step, what measures it: microseconds of one."""


def one_us(measure: Measure) -> float:
    """One measurement, on a broker of its own."""
    with World(network=NetworkProfile(0, 0)) as world:

        async def whole() -> float:
            return await measure(await stage_of(world))

        return world.run(whole())


def measure_all(rounds: int) -> Table:
    """All steps, each the median of so many rounds."""
    table = Table(f"Units of work: {UNIT_US} us each, CPU of one step (median of {rounds})")
    for name, measure in MEASURES.items():
        step = STEPS[name]
        took_us = median([one_us(measure) for _ in range(rounds)])
        note = f"{number(took_us)} us for {step.units}, {step.per}"
        unit_us = took_us / step.units
        table.check(name, unit_us, "us a unit", TIMES_MAX * UNIT_US, note=note)
    table.add("an iteration of the loop, by the table", f"{work_units.TURN_UNITS_MAX:,} units")
    for name, reason in NOT_ALONE.items():
        table.add(name, f"{STEPS[name].units} units: {reason}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    measure_all(1 if options.quick else ROUNDS).print()


if __name__ == "__main__":
    main()

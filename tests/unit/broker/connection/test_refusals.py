"""A refused command is logged once for each text, and never too often."""

from __future__ import annotations

import logging

import pytest

from headgate.base.identity import Identity
from headgate.broker.connection.refusals import LINES_MAX, RefusalLogger, unrequested_error
from headgate.policy.access_law import AccessLaw
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.entry import build_entry
from headgate.wire.messages import BaseCommand, MessageMetadata
from tests.unit.broker.playing import TOPIC

NOT_ALLOWED = ServerError.NOT_ALLOWED_ERROR


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name == "headgate.connection"
    ]


def test_a_client_in_a_loop_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refusal_logger = RefusalLogger()
    for _ in range(3):
        refusal_logger.refused("/a:1", CommandType.SUBSCRIBE, NOT_ALLOWED, "no")
    assert lines(caplog) == [(logging.INFO, "/a:1: SUBSCRIBE refused: no")]
    for number in range(100):
        refusal_logger.refused("/a:1", CommandType.SUBSCRIBE, NOT_ALLOWED, f"not {number}")
    assert len(lines(caplog)) == LINES_MAX


def test_what_may_succeed_later_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refusal_logger = RefusalLogger()
    for code in (ServerError.SERVICE_NOT_READY, ServerError.CONSUMER_BUSY):
        refusal_logger.refused("/a:1", CommandType.SUBSCRIBE, code, "not now")
    assert lines(caplog) == []


def test_a_producer_s_name_stays_in_its_line(caplog: pytest.LogCaptureFixture) -> None:
    RefusalLogger().delay_ignored("/a:1", "p\nq" + "x" * 60_000, TOPIC)
    ((_, text),) = lines(caplog)
    assert "producer 'p\\nqxx" in text
    assert len(text) < 300


def test_a_refused_subscription_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        for _ in range(3):
            with pytest.raises(RefusedError):
                await client.subscribe(TOPIC, "s", kind=SubscriptionType.KEY_SHARED)

    with World(7) as world:
        world.run(story(world))
    ((level, text),) = lines(caplog)
    assert level == logging.INFO
    assert text.endswith(
        ": SUBSCRIBE refused: Key_Shared is not supported: Exclusive, Shared and Failover are"
    )


def test_the_log_has_the_reason_of_what_a_role_may_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        world.broker.authorizer = AccessLaw(world.broker.catalog, world.broker.settings)
        next(iter(world.broker.connections)).identity = Identity("a")
        for _ in range(2):
            with pytest.raises(RefusedError) as refusal:
                await client.producer(TOPIC)
            assert str(refusal.value).endswith("Client is not authorized to Produce")

    with World(7) as world:
        world.run(story(world))
    ((level, text),) = lines(caplog)
    assert level == logging.INFO
    assert f"not authorized to Produce ({TOPIC}: role a has no produce on topic {TOPIC} or" in text


def test_a_delay_is_ignored_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A producer that sends thousands has one line."""
    caplog.set_level(logging.INFO)

    async def story(world: World) -> None:
        await world.start()
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s")
        producer = await client.producer(TOPIC)
        for number in range(3):
            metadata = MessageMetadata(
                producer_name=producer.name,
                sequence_id=number,
                publish_time=1,
                deliver_at_time=world.clock.wall_ns() // 1_000_000 + 3_600_000,
            )
            entry = build_entry(metadata, b"late")
            client.write(frames.send(producer.producer_id, number, entry))
            assert (await consumer.receive()).payload == b"late"

    with World(7, settings={"delayedDeliveryEnabled": "false"}) as world:
        world.run(story(world))
    ((level, text),) = lines(caplog)
    assert level == logging.WARNING
    assert f"of {TOPIC} asks for delayed delivery, which is switched off there" in text


def test_an_error_that_nobody_asked_for_is_a_frame() -> None:
    frame = unrequested_error("too many")
    command = BaseCommand.FromString(frame[8:])
    assert (command.type, command.error.message) == (CommandType.ERROR, "too many")
    assert command.error.error == ServerError.NOT_ALLOWED_ERROR

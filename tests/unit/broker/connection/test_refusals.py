"""A refused command is logged once for each text, and never too often."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.base.bounded_lines import (
    ROLE_LINES_PER_MINUTE,
    BoundedLines,
    RoleLines,
)
from headgate.base.identity import NOBODY, Identity
from headgate.broker.authorization import ALLOW_ALL
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.refusals import LINES_MAX, RefusalLogger, unrequested_error
from headgate.policy.access_law import AccessLaw
from headgate.testing import RefusedError, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.entry import build_entry
from headgate.wire.messages import BaseCommand, MessageMetadata
from tests.unit.broker.playing import TOPIC

NOT_ALLOWED = ServerError.NOT_ALLOWED_ERROR
CLIENT = cast(ClientConnection, SimpleNamespace(address="/a:1", identity=NOBODY))


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name == "headgate.connection"
    ]


def a_logger() -> RefusalLogger:
    return RefusalLogger(
        BoundedLines(logging.getLogger("headgate.connection"), lambda: 0), RoleLines(lambda: 0)
    )


def test_a_client_in_a_loop_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refusal_logger = a_logger()
    for _ in range(3):
        refusal_logger.refused(CLIENT, CommandType.SUBSCRIBE, NOT_ALLOWED, "no")
    assert lines(caplog) == [(logging.INFO, "/a:1: SUBSCRIBE refused: no")]
    for number in range(100):
        refusal_logger.refused(CLIENT, CommandType.SUBSCRIBE, NOT_ALLOWED, f"not {number}")
    assert len(lines(caplog)) == LINES_MAX


def test_what_may_succeed_later_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refusal_logger = a_logger()
    for code in (ServerError.SERVICE_NOT_READY, ServerError.CONSUMER_BUSY):
        refusal_logger.refused(CLIENT, CommandType.SUBSCRIBE, code, "not now")
    assert lines(caplog) == []


def test_a_producer_s_name_stays_in_its_line(caplog: pytest.LogCaptureFixture) -> None:
    a_logger().delay_ignored(CLIENT, "p\nq" + "x" * 60_000, TOPIC)
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


def test_a_role_that_connects_again_and_again_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def story(world: World) -> None:
        await world.start()
        law = AccessLaw(world.broker.catalog, world.broker.settings)
        for role in ["a"] * (ROLE_LINES_PER_MINUTE + 5) + ["b"]:
            world.broker.authorizer = ALLOW_ALL
            client = await world.connect()
            world.broker.authorizer = law
            next(iter(world.broker.connections)).identity = Identity(role)
            with pytest.raises(RefusedError):
                await client.producer(TOPIC)
            client.write(frames.connect())
            await client.lost

    with World(7) as world:
        world.run(story(world))
    texts = [text for _, text in lines(caplog)]
    # Each client of "a" is refused, and then breaks the protocol.
    assert len(texts) == ROLE_LINES_PER_MINUTE + 2
    assert "role b has no produce on topic" in texts[-2]
    left_out = ROLE_LINES_PER_MINUTE + 10
    assert texts[-2].endswith(f"({left_out} lines about clients were left out before)")
    assert "broke the protocol" in texts[-1]


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

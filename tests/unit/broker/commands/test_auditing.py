"""Commands of the binary protocol in the audit log."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.base.identity import Identity
from headgate.base.positions import EARLIEST
from headgate.broker.audit import AuditLog, logger
from headgate.broker.commands.auditing import CommandAudit
from headgate.metadata.errors import RefusalError
from headgate.testing import ManualClock, RefusedError, SimLoop, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played
from tests.unit.denying import Deny

Lines = list[dict[str, Any]]


class _Lines(logging.Handler):
    """Keeps the lines of the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Lines = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(record.getMessage()))


@pytest.fixture(autouse=True)
def audited() -> Any:
    handler = _Lines()
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(before)
    logger.removeHandler(handler)


def _found() -> Lines:
    (handler,) = (each for each in logger.handlers if isinstance(each, _Lines))
    return handler.found


@played()
async def test_what_creates_moves_and_deletes_has_a_line_with_its_result(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    position = await producer.send(b"x")
    consumer = await client.subscribe(TOPIC, "s")
    await client.request(
        lambda number: frames.seek(number, consumer.consumer_id, position=EARLIEST)
    )
    again = await client.subscribe(TOPIC, "s")
    await again.ack(position)
    await client.request(lambda number: frames.unsubscribe(number, again.consumer_id))
    made = [(line["request"], line["operation"], line["result"]) for line in _found()]
    assert made == [
        ("PRODUCER", "topic.produce", "allowed"),
        ("SUBSCRIBE", "topic.consume", "allowed"),
        ("SEEK", "subscription.reset", "allowed"),
        ("SUBSCRIBE", "topic.consume", "allowed"),
        ("UNSUBSCRIBE", "subscription.delete", "allowed"),
    ]
    last = _found()[-1]
    assert (last["resource"], last["subscription"]) == (TOPIC, "s")
    assert not last["address"].startswith("/")


@played()
async def test_refusals_of_authorization_and_of_the_command_itself(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "s")
    _found().clear()
    with pytest.raises(RefusedError):
        await (await world.connect()).subscribe(TOPIC, "s")  # exclusive
    (line,) = _found()
    assert (line["request"], line["result"]) == ("SUBSCRIBE", "refused")
    assert "already connected" in line["reason"]
    world.broker.authorizer = Deny()
    _found().clear()
    with pytest.raises(RefusedError):
        await client.request(lambda number: frames.lookup(number, TOPIC))
    with pytest.raises(RefusedError):
        await client.producer(TOPIC)
    found = [(line["request"], line["result"], line["status"]) for line in _found()]
    assert found == [("LOOKUP", "refused", 403), ("PRODUCER", "refused", 403)]


class _Host:
    """As much of a connection as an entry shows."""

    identity = Identity("ops")
    address = "/10.0.0.7:1"


@pytest.mark.parametrize(
    ("error", "result", "reason"),
    [
        (StorageError("the disk refused", retryable=True), "failed", "the disk refused"),
        (ValueError("a bug with m4rked text"), "failed", "unexpected ValueError"),
        (asyncio.CancelledError(), "failed", "the connection ended before the command did"),
        (RefusalError(409, "in use"), "refused", "in use"),
    ],
)
def test_how_a_command_ends_is_its_result(error: BaseException, result: str, reason: str) -> None:
    async def fail(*_: object) -> None:
        raise error

    command = BaseCommand(type=CommandType.SUBSCRIBE)
    command.subscribe.topic, command.subscribe.subscription = TOPIC, "s"
    loop = SimLoop(ManualClock())
    noted = CommandAudit(AuditLog(loop.clock, loop)).noted(fail)
    with pytest.raises(type(error)):
        loop.run_until_complete(noted(_Host(), command))  # type: ignore[arg-type]
    loop.close()
    (line,) = _found()
    assert (line["result"], line["role"], line["subscription"]) == (result, "ops", "s")
    assert line["reason"].startswith(reason)
    assert "m4rked" not in line["reason"]


@played()
async def test_a_name_that_is_none_is_refused_and_noted_without_a_resource(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError):
        await client.producer("persistent://a/b/c/d/\n")
    (line,) = _found()
    assert "resource" not in line
    assert line["result"] == "refused"

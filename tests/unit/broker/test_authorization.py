"""The seam for authorization: who is asked, about what, and what a refusal looks like."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.broker.authorization import AllowAll
from headgate.testing import RefusedError, World
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played


class Deny:
    """Allows nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def allows(self, role: str, operation: str, resource: str) -> bool:
        self.asked.append((role, operation, resource))
        return False


def test_without_authentication_everybody_may_do_everything() -> None:
    assert AllowAll().allows("", "topic.produce", TOPIC)


@played()
async def test_a_refusal_creates_nothing_and_costs_nothing_else(world: World) -> None:
    client = await world.connect()
    world.broker.authorizer = deny = Deny()
    with pytest.raises(RefusedError, match="not authorized to produce") as refusal:
        await client.producer(TOPIC)
    assert refusal.value.code == ServerError.AUTHORIZATION_ERROR
    with pytest.raises(RefusedError, match="not authorized to consume") as refusal:
        await client.subscribe(TOPIC, "s")
    assert refusal.value.code == ServerError.AUTHORIZATION_ERROR
    assert deny.asked == [("", "topic.produce", TOPIC), ("", "topic.consume", TOPIC)]
    assert not world.broker.registry.exists(parse_topic(TOPIC))
    assert client.is_open

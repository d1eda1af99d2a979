"""What the protocol has and this broker does not is refused at once, as the guide says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError, SubscriptionType
from headgate.wire.commands import COMMANDS
from headgate.wire.frame import FIELD_OF_TYPE, encode_frame
from headgate.wire.messages import BaseCommand
from tests.sim.command_frames import fill
from tests.unit.broker.playing import played

GUIDE = Path(__file__).parents[3] / "docs/guide/not-supported.md"
AT_ONCE_S = 0.5
NON_PERSISTENT = "non-persistent://public/default/t"

NOT_BUILT = [CommandType(kind) for kind, facts in COMMANDS.items() if not facts.built]


def frame_of(kind: CommandType, request_id: int) -> bytes:
    """A command with its required fields, and the id under which its answer comes."""
    command = BaseCommand(type=kind)
    inner = getattr(command, FIELD_OF_TYPE[kind])
    inner.SetInParent()
    fill(inner, random.Random(1))
    setattr(inner, COMMANDS[kind].key or "", request_id)
    return encode_frame(command)


async def refusal(client: SimClient, kind: CommandType) -> tuple[ServerError, str]:
    """What answers a command that is not built."""
    facts = COMMANDS[kind]
    client.unexpected.clear()
    if facts.key == "request_id":
        with pytest.raises(RefusedError) as refused:
            await client.request(lambda i: frame_of(kind, i))
        return ServerError(refused.value.code), refused.value.message
    client.write(frame_of(kind, 77))
    await client.lookup("t")  # the answers come in order
    (answer,) = client.unexpected
    found = getattr(answer, FIELD_OF_TYPE[answer.type])
    assert answer.type == facts.reply
    assert getattr(found, facts.key or "") == 77
    return ServerError(found.error), found.message


@pytest.mark.parametrize("kind", NOT_BUILT, ids=lambda kind: kind.name)
def test_a_command_that_is_not_built_is_refused(kind: CommandType) -> None:
    @played()
    async def story(world: World) -> None:
        client = await world.connect()
        began_s = world.loop.time()
        if COMMANDS[kind].key is None:
            # It ends something, and never has an answer.
            assert kind.name.endswith("_CLOSE")
            client.write(frame_of_close(kind))
        else:
            code, text = await refusal(client, kind)
            assert code == ServerError.NOT_ALLOWED_ERROR
            assert f"| `{kind.name}` | `NotAllowedError` | `{text}` |" in GUIDE.read_text()
        assert await client.lookup("t")
        assert client.is_open
        assert world.loop.time() - began_s < AT_ONCE_S

    story()


def frame_of_close(kind: CommandType) -> bytes:
    command = BaseCommand(type=kind)
    inner = getattr(command, FIELD_OF_TYPE[kind])
    inner.SetInParent()
    fill(inner, random.Random(1))
    return encode_frame(command)


@played()
async def test_key_shared_and_other_domains_and_listeners_are_refused(world: World) -> None:
    client = await world.connect()
    made = {
        "Key_Shared is not supported": lambda i: frames.subscribe(
            i, 1, "t", "s", kind=SubscriptionType.KEY_SHARED
        ),
        "non-persistent topics": lambda i: frames.partitioned_metadata(i, NON_PERSISTENT),
        "non-persistent topics are": lambda i: frames.producer(i, 1, NON_PERSISTENT),
        "non-persistent topics are not": lambda i: frames.subscribe(i, 2, NON_PERSISTENT, "s"),
    }
    for words, make in made.items():
        with pytest.raises(RefusedError, match=words) as refused:
            await client.request(make)
        assert refused.value.code == ServerError.NOT_ALLOWED_ERROR
        assert f"`{refused.value.message}`" in GUIDE.read_text()

    def other_listener(request_id: int) -> bytes:
        command = BaseCommand(type=CommandType.LOOKUP)
        command.lookupTopic.topic, command.lookupTopic.request_id = "t", request_id
        command.lookupTopic.advertised_listener_name = "test"
        return encode_frame(command)

    with pytest.raises(RefusedError) as refused:
        await client.request(other_listener)
    assert refused.value.code == ServerError.SERVICE_NOT_READY
    assert f"`{refused.value.message}`" in GUIDE.read_text()


@played()
async def test_the_replicated_flag_is_ignored(world: World) -> None:
    client = await world.connect()

    def replicated(request_id: int) -> bytes:
        command = BaseCommand(type=CommandType.SUBSCRIBE)
        request = command.subscribe
        request.request_id, request.consumer_id = request_id, 1
        request.topic, request.subscription = "t", "s"
        request.subType = SubscriptionType.EXCLUSIVE
        request.replicate_subscription_state = True
        return encode_frame(command)

    await client.request(replicated)
    assert client.is_open

"""The disk in explain's answers."""

from __future__ import annotations

import asyncio
import errno

from headgate.base.names import parse_topic
from headgate.flow.sentences.disk import MAKE_ROOM
from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


def full(operation: Operation) -> None:
    if operation.kind in ("create", "allocate"):
        raise OSError(errno.ENOSPC, "no space left")


@played(ledger=LedgerSettings(segment_bytes=16 * 1024), capacity_bytes=1_000_000)
async def test_a_full_disk_is_reported_by_topic_and_without(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x")
    await asyncio.sleep(2)
    state = world.observer.storage_state()
    assert (state.sentence, state.disk_full, state.disk_full_s) == ("", False, 0)
    assert state.size_bytes == 1_000_000
    world.disk.plan = full
    for _ in range(50):
        producer.send_nowait(b"x" * 1_000)
        await asyncio.sleep(0.01)
    await asyncio.sleep(10)
    top = await world.observer.explain_top(5)
    assert top["storage"]["sentence"].startswith(
        "the disk is full: producers wait for room, for 10 s now, consumers continue; "
    )
    assert top["storage"]["sentence"].endswith(f"at once; {MAKE_ROOM}")
    assert top["storage"]["diskFull"]
    (held,) = top["publishing"]
    assert held["causes"] == ["disk_full"]
    topic = await world.observer.explain_topic(parse_topic(TOPIC))
    assert topic["storage"]["diskFullS"] > 9
    assert topic["publishing"]["sentence"].startswith(
        "1 producer waits for room on the disk, which is full: "
    )
    await asyncio.sleep(15)  # its producer was closed
    topic = await world.observer.explain_topic(parse_topic(TOPIC))
    assert topic["publishing"]["sentence"].startswith(
        "the disk is full: messages published now wait for room; the full disk held producers for "
    )

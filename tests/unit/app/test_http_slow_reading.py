"""Clients that read what they asked for slowly, and that read it all."""

from __future__ import annotations

import asyncio

import pytest

from headgate.app.http_bounds import WRITE_TIMEOUT_S, BoundedHttpProtocol
from tests.unit.app.test_http_bounds import GET, Wire, memory_of, play


@pytest.mark.parametrize(("bytes_per_s", "reads_all"), [(100_000, True), (10_000, False)])
def test_who_reads_a_large_part_in_more_than_the_time_for_reading_nothing_gets_all(
    bytes_per_s: int, reads_all: bool
) -> None:
    """The transport says nothing before nearly all of the part is read. The kernel takes little of
    it, and who read 3 of 5 MB was cut off."""

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(GET)
        wire.unread_bytes = size = 5_000_000
        protocol.pause_writing()
        for _ in range(size // bytes_per_s):
            await asyncio.sleep(1)
            wire.unread_bytes -= bytes_per_s
        assert wire.aborted is not reads_all
        if reads_all:
            protocol.resume_writing()
            await asyncio.sleep(2 * WRITE_TIMEOUT_S)
            assert not wire.closed

    play(story)


def test_what_was_left_of_an_answer_counts_no_more_once_it_is_read() -> None:
    """Nor does its time count for the answers that follow."""
    memory = memory_of()

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        wire.unread_bytes = 50_000
        protocol.data_received(GET)
        await asyncio.sleep(1)
        wire.unread_bytes = 0
        await asyncio.sleep(WRITE_TIMEOUT_S - 2)
        protocol.data_received(GET)
        wire.unread_bytes = 50_000  # the next answer
        await asyncio.sleep(3)
        assert not wire.closed
        wire.unread_bytes = 0
        await asyncio.sleep(WRITE_TIMEOUT_S)
        protocol.data_received(GET)
        await asyncio.sleep(1)
        assert memory.held_bytes == 0

    play(story, memory=memory)

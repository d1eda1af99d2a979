"""Who waits, who is refused and who ends when requests hold too much together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from headgate.base.units import MIB
from headgate.broker.http_memory import ANSWER_WAIT_S, ENDED_LINES_MAX, HttpMemory
from headgate.broker.process_room import ProcessRoom
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop


class Connection:
    """Notes why it ended."""

    def __init__(self) -> None:
        self.reason = ""

    def end_for_memory(self, reason: str) -> None:
        self.reason = reason


def memory_of(bytes_max: int = 1_000, requests_max: int = 2) -> HttpMemory:
    return HttpMemory(lambda: bytes_max, lambda: requests_max)


def test_many_small_connections_of_an_address_end_before_the_large_one_of_another() -> None:
    memory, crowd, large = memory_of(), [Connection() for _ in range(10)], Connection()
    memory.hold(large, 300, "/10.0.0.2:5000")
    for number, each in enumerate(crowd):
        memory.hold(each, 80, f"/10.0.0.1:{5_000 + number}")
    assert large.reason == ""
    assert sum(bool(each.reason) for each in crowd) == 2
    assert memory.held_bytes == 940
    memory.hold(large, 900, "/10.0.0.2:5000")
    assert large.reason.startswith("This connection holds 900 bytes")


def test_many_networks_of_one_machine_end_before_the_large_connection_of_another() -> None:
    """A machine may have each /64 of a /48. Unread answers of 1 MB, each from a network of its own,
    cut off every second answer of 2 MB of another machine."""
    memory, crowd, large = memory_of(), [Connection() for _ in range(10)], Connection()
    memory.hold(large, 300, "/2001:db8:2:1::1:5000")
    for number, each in enumerate(crowd):
        memory.hold(each, 80, f"/2001:db8:1:{number}::1:5000")
    assert large.reason == ""
    assert sum(bool(each.reason) for each in crowd) == 2
    neighbour = Connection()
    memory.hold(neighbour, 60, "/2001:db8:1:a::1:5000")
    memory.hold(crowd[-1], 190, "/2001:db8:1:9::1:5000")
    assert (neighbour.reason, large.reason) == ("", "")
    assert crowd[-1].reason, "a network that holds more than others of its wide one"
    for each in (large, neighbour, *crowd):
        memory.hold(each, 0, "/2001:db8:1:1::1:5000")
    assert memory.held_bytes == 0


def test_an_address_that_holds_more_than_many_tiny_ones_pays_for_no_crowd_of_another() -> None:
    """Above the average stood each address with more than a head, beside thirty with one byte."""
    memory, crowd, large = memory_of(), [Connection() for _ in range(10)], Connection()
    memory.hold(large, 150, "/10.0.0.2:5000")
    for number in range(30):
        memory.hold(Connection(), 1, f"/10.0.1.{number}:5000")
    for number, each in enumerate(crowd):
        memory.hold(each, 85, f"/10.0.0.1:{5_000 + number}")
    assert large.reason == ""
    assert sum(bool(each.reason) for each in crowd) == 1


def test_the_bounds_are_those_of_the_settings_at_the_time() -> None:
    settings, one = Settings(), Connection()
    memory = HttpMemory.of(settings, ProcessRoom())
    memory.hold(one, 64 * MIB, "/10.0.0.1:5000")
    settings.set("headgateHttpMemoryMB", "8")
    settings.set("maxConcurrentHttpRequests", "1")
    assert [memory.begin("/a:1"), bool(memory.begin("/b:1"))] == ["", True]
    assert not one.reason
    memory.hold(one, 64 * MIB + 1, "/10.0.0.1:5000")
    assert one.reason


def run(story: Coroutine[Any, Any, None]) -> None:
    """Run a story in virtual time."""
    loop = SimLoop(ManualClock())
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


def test_more_requests_than_allowed_are_refused_until_others_end() -> None:
    memory = memory_of()
    assert [memory.begin("/a:1"), memory.begin("/b:1")] == ["", ""]
    assert memory.begin("/c:1") == (
        "Too many requests at the same time: maxConcurrentHttpRequests allows 2 in all."
        " Try again later"
    )
    memory.end("/a:1")
    memory.end("/b:1")
    assert memory.begin("/d:1") == ""
    assert (memory.running, memory.refused_count) == (2, 1)


def test_the_connection_that_holds_most_ends() -> None:
    memory = memory_of()
    small, large, growing = Connection(), Connection(), Connection()
    memory.hold(small, 100, "/10.0.0.1:5000")
    memory.hold(large, 600, "/10.0.0.1:5000")
    memory.hold(growing, 300, "/10.0.0.1:5000")
    assert memory.held_bytes == 1_000
    memory.hold(growing, 301, "/10.0.0.1:5000")
    assert "holds 600 bytes" in large.reason
    assert "more than 1000 (headgateHttpMemoryMB)" in large.reason
    assert small.reason == growing.reason == ""
    assert (memory.held_bytes, memory.ended_count) == (401, 1)
    memory.hold(large, 0, "/10.0.0.1:5000")  # its connection is lost later
    memory.hold(small, 0, "/10.0.0.1:5000")
    memory.hold(growing, 0, "/10.0.0.1:5000")
    assert memory.held_bytes == 0


def test_a_connection_that_alone_holds_too_much_ends_itself() -> None:
    memory, one = memory_of(), Connection()
    memory.hold(one, 1_001, "/10.0.0.1:5000")
    assert one.reason
    assert memory.held_bytes == 0


def test_a_lower_bound_ends_connections_when_one_grows_not_before() -> None:
    bound = 1_000
    memory, one = HttpMemory(lambda: bound, lambda: 1), Connection()
    memory.hold(one, 900, "/10.0.0.1:5000")
    bound = 500
    memory.hold(one, 800, "/10.0.0.1:5000")
    assert not one.reason
    memory.hold(one, 801, "/10.0.0.1:5000")
    assert one.reason


def test_answers_wait_for_each_other_in_order() -> None:
    async def story() -> None:
        memory, done = memory_of(), []

        async def answer(name: str, size_bytes: int, takes_s: float) -> None:
            await memory.reserve(size_bytes)
            done.append(name)
            await asyncio.sleep(takes_s)
            memory.release(size_bytes)

        async with asyncio.TaskGroup() as group:
            for name, size_bytes in (("a", 600), ("b", 600), ("c", 100), ("d", 5_000)):
                group.create_task(answer(name, size_bytes, 1))
                await asyncio.sleep(0)
            await asyncio.sleep(0.5)
            assert done == ["a"]
            await asyncio.sleep(1)
            assert done == ["a", "b", "c"]
        # Alone, an answer may be larger than the bound: it could never be given else.
        assert done == ["a", "b", "c", "d"]
        assert memory.held_bytes == 0

    run(story())


def test_an_answer_that_waits_too_long_is_refused_and_leaves_the_others_their_place() -> None:
    async def story() -> None:
        memory, other = memory_of(), Connection()
        await memory.reserve(900)
        first = asyncio.ensure_future(memory.reserve(900))
        await asyncio.sleep(ANSWER_WAIT_S / 2)
        second = asyncio.ensure_future(memory.reserve(50))
        gone = asyncio.ensure_future(memory.reserve(50))
        await asyncio.sleep(0)
        gone.cancel()
        memory.hold(other, 10, "/10.0.0.1:5000")
        with pytest.raises(RefusalError, match="needs about 900 bytes") as refusal:
            await first
        assert refusal.value.status == 503
        await second
        assert memory.held_bytes == 960
        memory.release(50)
        memory.release(900)
        memory.hold(other, 0, "/10.0.0.1:5000")
        assert (memory.held_bytes, memory.refused_count) == (0, 1)

    run(story())


def test_an_answer_waits_also_for_what_connections_hold() -> None:
    async def story() -> None:
        memory, reader = memory_of(), Connection()
        memory.hold(reader, 500, "/10.0.0.1:5000")
        await memory.reserve(300)
        waiting = asyncio.ensure_future(memory.reserve(300))
        await asyncio.sleep(1)
        assert not waiting.done()
        memory.hold(reader, 400, "/10.0.0.1:5000")
        await asyncio.sleep(0)
        await waiting
        assert memory.held_bytes == 1_000

    run(story())


def test_an_answer_larger_than_the_bound_ends_no_connection_that_holds_little() -> None:
    async def story() -> None:
        memory, asking, other = memory_of(), Connection(), Connection()
        memory.hold(asking, 10, "/10.0.0.1:5000")
        await memory.reserve(5_000)
        memory.hold(other, 490, "/10.0.0.1:5000")
        assert asking.reason == other.reason == ""
        memory.hold(other, 491, "/10.0.0.1:5000")
        assert "holds 491 bytes" in other.reason
        assert asking.reason == ""
        memory.release(5_000)
        assert memory.held_bytes == 10

    run(story())


def test_large_answers_about_one_tenant_keep_those_about_others_out_no_longer_than_they_take() -> (
    None
):
    """Who reads a very large answer slowly holds it for hours."""

    async def story() -> None:
        memory = memory_of(1_000)
        await memory.reserve(10_000, "one")
        waiting = [asyncio.ensure_future(memory.reserve(900, "one")) for _ in range(9)]
        await asyncio.sleep(0)
        await asyncio.wait_for(memory.reserve(800, "two"), 1)
        again = asyncio.ensure_future(memory.reserve(800, "two"))
        await asyncio.wait_for(memory.reserve(2_000, "three"), 1)
        fourth = asyncio.ensure_future(memory.reserve(2_000, "four"))
        await asyncio.sleep(1)
        assert not any(each.done() for each in (*waiting, again, fourth))
        memory.release(2_000, "three")
        await asyncio.wait_for(fourth, 1)
        for size_bytes, owner in ((10_000, "one"), (800, "two"), (2_000, "four")):
            memory.release(size_bytes, owner)
        await asyncio.sleep(1)
        # They take turns by tenant, whoever asked first: one of each, and what fits beside them.
        assert again.done()
        assert sum(each.done() for each in waiting) == 1
        for each in waiting[1:]:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert memory.held_bytes == 1_700
        memory.release(800, "two")
        memory.release(900, "one")
        assert (memory.held_bytes, memory._waiting, memory._by_owner) == (0, {}, {})

    run(story())


def test_a_small_answer_waits_for_no_large_one() -> None:
    """Who reads a large answer slowly holds it for long."""

    async def story() -> None:
        memory = memory_of(6_400)
        await memory.reserve(10_000)
        large = asyncio.ensure_future(memory.reserve(6_000))
        await asyncio.sleep(0)
        for _ in range(64):
            await asyncio.wait_for(memory.reserve(100), 1)
        assert not large.done()
        waiting = asyncio.ensure_future(memory.reserve(100))
        await asyncio.sleep(1)
        assert not waiting.done()  # the small ones have their bound, too
        for _ in range(64):
            memory.release(100)
        memory.release(10_000)
        await large
        await waiting
        assert memory.held_bytes == 6_100

    run(story())


def test_only_the_first_ended_connections_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    memory = memory_of()
    with caplog.at_level(logging.WARNING, logger="headgate.web"):
        for _ in range(2 * ENDED_LINES_MAX):
            memory.hold(Connection(), 2_000, "/10.0.0.1:5000")
    assert len(caplog.records) == ENDED_LINES_MAX
    assert memory.ended_count == 2 * ENDED_LINES_MAX


def test_two_addresses_leave_requests_to_others() -> None:
    """1,024 `explain` of a role with two addresses, 150 KB, kept the admin API and the probe of the
    readiness from everybody for 25 s, again and again."""
    memory = memory_of(requests_max=64)
    for address in ("/10.0.0.1:1", "/10.0.0.2:1"):
        while not memory.begin(address):
            pass
        memory.end(address)
    assert memory.begin("/10.0.0.3:1") == ""


def test_one_address_has_half_of_the_requests() -> None:
    """1,024 connections of one address refused all requests of everybody."""
    memory = memory_of(requests_max=4)
    one, same, other = "/10.0.0.1:1", "/10.0.0.1:2", "/10.0.0.2:1"
    assert [memory.begin(one), memory.begin(same)] == ["", ""]
    assert "allows 2 from one address" in memory.begin(one)
    memory.end(one)
    assert [memory.begin(other), memory.begin("/10.0.0.3:1")] == ["", ""]
    assert "allows 4 in all" in memory.begin("/10.0.0.4:1")
    for ended in ("/10.0.0.3:1", "/10.0.0.4:1"):
        memory.end(ended)
    memory.end(one)
    assert memory.begin(one) == ""


def test_refusals_name_what_sets_the_bound() -> None:
    """An agent has none of the broker's keys."""
    memory = HttpMemory(lambda: 1_000, lambda: 0, bytes_key="one bound", requests_key="another")
    assert "another allows 0 in all" in memory.begin("/a:1")
    one = Connection()
    memory.hold(one, 1_001, "/10.0.0.1:5000")
    assert "(one bound)" in one.reason

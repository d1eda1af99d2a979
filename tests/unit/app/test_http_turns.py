"""What connections to the web ports have of one turn of the loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from headgate.app.http_bounds import BODY_TIMEOUT_S, PIECE_BYTES, BoundedHttpProtocol
from headgate.app.http_turns import HEAD_BYTES_PER_START, STARTS_MAX, TURN_S, HttpTurns, KeptBytes
from headgate.app.served_requests import TURN_EXTENSION
from headgate.broker.http_memory import REQUEST_BYTES
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.unit.app.test_http_bounds import Wire, _answer, connect, memory_of, play


class Connection:
    """Has some slices to parse, each of which takes its time."""

    def __init__(self, log: list[str], name: str, slices: int) -> None:
        self.log, self.name, self.slices = log, name, slices

    def parse_some(self) -> bool:
        self.log.append(self.name)
        self.slices -= 1
        return self.slices > 0


class Counting:
    """Answers, and counts the requests that begin."""

    begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        await _answer(scope, receive, send)


def ticking(step_s: float) -> Callable[[], float]:
    """A clock that goes on by a step each time that somebody looks."""
    looks = itertools.count(1)
    return lambda: next(looks) * step_s


def run(story: Callable[[HttpTurns], Coroutine[Any, Any, None]], slice_s: float = TURN_S) -> None:
    loop = SimLoop(ManualClock())
    try:
        loop.run_until_complete(story(HttpTurns(loop, ticking(slice_s))))
    finally:
        loop.close()


def test_who_is_alone_parses_at_once_as_long_as_a_turn_has_time() -> None:
    async def story(turns: HttpTurns) -> None:
        log: list[str] = []
        turns.parse(Connection(log, "a", 10))
        assert len(log) == 4
        await asyncio.sleep(0)
        assert len(log) == 8
        await asyncio.sleep(0)
        assert len(log) == 10

    run(story, TURN_S / 4 + 1e-9)


def test_others_have_their_turn_in_their_order() -> None:
    async def story(turns: HttpTurns) -> None:
        log: list[str] = []
        for name in "abc":
            turns.parse(Connection(log, name, 2))
        assert log == ["a"]
        await asyncio.sleep(0.1)
        assert log == ["a", "a", "b", "c", "b", "c"]

    run(story)


def test_the_many_of_one_address_let_those_of_others_parse() -> None:
    """The end of a head may take 28 ms. Behind four hundred connections of one address, a request
    of another one was parsed after three seconds."""

    async def story(turns: HttpTurns) -> None:
        log: list[str] = []
        for _ in range(50):
            turns.parse(Connection(log, "many", 2), "10.0.0.1")
        turns.parse(Connection(log, "one", 2), "10.0.0.2")
        gone = Connection(log, "gone", 1)
        turns.parse(gone, "10.0.0.3")
        turns.leave(gone, "10.0.0.3")
        await asyncio.sleep(0.1)
        assert log[:5] == ["many", "many", "one", "many", "one"]
        assert len(log) == 102

    run(story)


def test_who_ended_has_no_turn() -> None:
    async def story(turns: HttpTurns) -> None:
        log: list[str] = []
        one = Connection(log, "a", 2)
        turns.parse_later(one)
        turns.leave(one)
        turns.leave(one)
        await asyncio.sleep(0.1)
        assert log == []

    run(story)


def test_a_failure_of_one_holds_up_no_other() -> None:
    async def story(turns: HttpTurns) -> None:
        log: list[str] = []

        class Fails(Connection):
            def parse_some(self) -> bool:
                raise ValueError(self.name)

        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, facts: failures.append(facts))
        turns.parse_later(Fails(log, "a", 1))
        turns.parse_later(Connection(log, "b", 1))
        await asyncio.sleep(0.1)
        assert log == ["b"]
        assert len(failures) == 1

    run(story)


def test_a_bounded_number_begins_in_one_turn() -> None:
    async def story(turns: HttpTurns) -> None:
        begun: list[int] = []

        def begins(number: int) -> Callable[[], bool]:
            def begin() -> bool:
                begun.append(number)
                return number % 2 == 0  # the client of every second one is gone

            return begin

        for number in range(5 * STARTS_MAX):
            turns.start(begins(number))
        assert len(begun) == 2 * STARTS_MAX - 1
        await asyncio.sleep(0)
        assert len(begun) == 4 * STARTS_MAX - 1
        await asyncio.sleep(0.1)
        assert begun == list(range(5 * STARTS_MAX))

    run(story)


def test_the_many_of_one_address_let_those_of_others_begin() -> None:
    async def story(turns: HttpTurns) -> None:
        begun: list[str] = []

        def begins(name: str) -> Callable[[], bool]:
            def begin() -> bool:
                begun.append(name)
                return True

            return begin

        for _ in range(10 * STARTS_MAX):
            turns.start(begins("many"), "10.0.0.1")
        turns.start(begins("one"), "10.0.0.2")
        await asyncio.sleep(0)
        assert "one" in begun
        assert len(begun) == 2 * STARTS_MAX

    run(story)


def test_the_networks_of_a_wide_one_let_those_of_others_parse_and_begin() -> None:
    """A machine may have each /64 of a /48. Behind 750 of one, a short request of another machine
    was answered after 0.25 s in the median."""

    async def story(turns: HttpTurns) -> None:
        log: list[str] = []
        begun: list[str] = []

        def begins(name: str) -> Callable[[], int]:
            return lambda: begun.append(name) or 1  # type: ignore[func-returns-value]

        for number in range(10 * STARTS_MAX):
            network = f"2001:db8:1:{number:x}::/64"
            turns.parse(Connection(log, "many", 2), network)
            turns.start(begins("many"), network)
        turns.parse(Connection(log, "one", 1), "2001:db8:2:1::/64")
        turns.start(begins("one"), "2001:db8:2:1::/64")
        await asyncio.sleep(0)
        assert "one" in begun
        await asyncio.sleep(0.1)
        assert log.index("one") < 4

    run(story)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /?a=" + b"%" * 60_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nCookie: " + b";" * 60_000 + b"\r\n\r\n",
    ],
    ids=["query", "headers"],
)
def test_of_requests_with_long_heads_fewer_begin_in_one_turn(head: bytes) -> None:
    """To read such a query takes 28 ms: sixteen of them held the loop for half a second."""
    app = Counting()

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        turns = HttpTurns(protocol.loop, lambda: 0.0)
        made = [connect(protocol.loop, app, turns=turns) for _ in range(20)]
        for one, _ in made:
            one.data_received(head)
        most = before = 0
        while app.begun < 20:
            await asyncio.sleep(0)
            most, before = max(most, app.begun - before), app.begun
        assert most <= 2
        await asyncio.sleep(0.1)
        for one, one_wire in made:
            assert one_wire.written.count(b"HTTP/1.1 200 ") == 1
            one.connection_lost(None)

    play(story)


def test_of_requests_whose_bodies_end_at_one_instant_a_few_go_on_in_a_turn() -> None:
    """A client holds back the last bytes of hundreds: all of them went on in one iteration."""
    ended = 0

    async def reads(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal ended
        while (await receive()).get("more_body"):
            pass
        ended += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        turns = HttpTurns(protocol.loop, lambda: 0.0)
        made = [connect(protocol.loop, reads, turns=turns) for _ in range(100)]
        for one, _ in made:
            one.data_received(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{")
        await asyncio.sleep(0.1)
        assert ended == 0
        for one, _ in made:
            one.data_received(b"}")
        before = 0
        while ended < 100:
            await asyncio.sleep(0)
            assert ended - before <= 2 * STARTS_MAX
            before = ended
        await asyncio.sleep(0.1)
        for one, one_wire in made:
            assert one_wire.written.count(b"HTTP/1.1 200 ") == 1
            one.connection_lost(None)

    play(story)


def test_requests_that_waited_for_one_thing_go_on_with_their_heads_in_turns() -> None:
    """A crowd with one password waits for its check, and 32 went on in an iteration, whatever the
    heads of their requests cost."""
    result, begun, ended = asyncio.Event(), 0, 0

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun, ended
        begun += 1
        await result.wait()
        await scope["extensions"][TURN_EXTENSION]["call"]()
        ended += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        turns = HttpTurns(protocol.loop, lambda: 0.0)
        made = [connect(protocol.loop, waits, turns=turns) for _ in range(50)]
        for one, _ in made:
            one.data_received(b"GET /?" + b"%" * 15 * HEAD_BYTES_PER_START + b" HTTP/1.1\r\n\r\n")
        while begun < 50:
            await asyncio.sleep(0)
        result.set()
        before = 0
        while ended < 50:
            await asyncio.sleep(0)
            assert ended - before <= 2
            before = ended
        for one, _ in made:
            one.connection_lost(None)

    play(story)


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_bytes_are_taken_in_their_order(size: int) -> None:
    kept = KeptBytes()
    kept.add(b"")
    assert not kept
    kept.add(b"cdefgh")
    kept.add(b"ij")
    kept.put_back(b"ab")
    taken = b""
    while kept:
        assert kept.held_bytes == 10 - len(taken)
        part = kept.take(size)
        assert 0 < len(part) <= size
        taken += part
    assert taken == b"abcdefghij"
    kept.add(b"x")
    kept.clear()
    assert (bool(kept), kept.held_bytes) == (False, 0)


def test_a_long_read_is_not_kept_for_its_last_bytes() -> None:
    kept = KeptBytes()
    kept.add(b"x" * 100_000)
    while kept.held_bytes > 10:
        kept.take(1_000 if kept.held_bytes > 1_000 else 990)
        assert len(kept._reads[0].obj) <= 2 * kept.held_bytes  # type: ignore[arg-type]


SHORTEST = b"GET / HTTP/1.1\r\n\r\n"
READ = SHORTEST * (250_000 // len(SHORTEST))
"""One read full of requests; it made an object for each of 13,888."""


def test_requests_sent_ahead_wait_as_bytes() -> None:
    """The parser went through a whole read at once, and held the loop; pausing did not stop it."""
    memory, go_on, served = memory_of(), asyncio.Event(), 0

    async def slowly(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal served
        await go_on.wait()
        served += 1
        await _answer(scope, receive, send)

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(READ)
        await asyncio.sleep(0.1)
        assert len(protocol.pipeline) <= PIECE_BYTES // len(SHORTEST)
        assert not wire.is_read
        held_bytes = len(READ) - PIECE_BYTES + (len(protocol.pipeline) + 1) * REQUEST_BYTES
        assert memory.held_bytes == held_bytes
        await asyncio.sleep(2 * BODY_TIMEOUT_S)
        assert not wire.closed  # it is not late: the broker does not read
        go_on.set()
        await asyncio.sleep(0.1)
        assert served == wire.written.count(b"HTTP/1.1 200 ") == len(READ) // len(SHORTEST)
        assert wire.is_read
        assert memory.held_bytes == 0

    play(story, slowly, memory)


def test_a_connection_that_ends_for_memory_is_parsed_no_more() -> None:
    app = Counting()

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        protocol.data_received(READ)
        assert wire.closed
        await asyncio.sleep(0.1)
        assert app.begun == 0

    play(story, app, memory_of(bytes_max=100_000))


def test_what_all_connections_have_of_one_turn_is_bounded() -> None:
    """Each of a hundred reads was parsed whole in one turn: the binary port waited for 19 s."""
    app = Counting()

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        turns = HttpTurns(protocol.loop, ticking(0.0005))
        made = [connect(protocol.loop, app, turns=turns) for _ in range(100)]
        for one, _ in made:
            one.data_received(SHORTEST * 3)
        assert 0 < sum(one.cycle is not None for one, _ in made) < 20
        most = before = 0
        while app.begun < 300:
            await asyncio.sleep(0)
            most, before = max(most, app.begun - before), app.begun
        assert most <= 2 * STARTS_MAX
        await asyncio.sleep(0.1)
        for one, one_wire in made:
            assert one_wire.written.count(b"HTTP/1.1 200 ") == 3
            one.connection_lost(None)

    play(story)


def test_a_body_of_short_chunks_is_parsed_in_slices() -> None:
    chunks = 50_000

    async def story(protocol: BoundedHttpProtocol, wire: Wire) -> None:
        one, one_wire = connect(protocol.loop, turns=HttpTurns(protocol.loop, ticking(0.002)))
        one.data_received(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\na\r\n" * chunks
            + b"0\r\n\r\n"
        )
        assert len(one.cycle.body) < 5_000
        await asyncio.sleep(0.1)
        assert one_wire.written.endswith(str(chunks).encode())
        one.connection_lost(None)

    play(story)

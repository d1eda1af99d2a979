"""Whatever the client of a web port has done: once it does nothing more, its connection ends, and
nothing of it is left. Clients that send whole requests and read get all answers.

A seed that fails is played again, and many more are played, with
``./dev test simulation -- -k web_connections --simulation-seeds FIRST:COUNT``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import starmap

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.app.http_bounds import BoundedHttpProtocol
from headgate.app.http_transport import HttpTransport
from tests.seeds import play_seeds
from tests.sim.websim.client_story import Left, WebClient, body_bytes
from tests.sim.websim.socket_transport import SimSocket

SEEDS = range(40)
CLIENTS = 25
HONEST_CLIENTS = 4
"""So many of each seed."""
SILENCE_S = 300.0
"""Far more than all times together."""
NOTHING = Left(is_lost=True, held_bytes=0, running=0, connections=0, places=0)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    play_seeds(metafunc, SEEDS)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Applications that fail write no traceback."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def what_is_left(number: int) -> Left:
    """Behind a client that does anything."""
    client = WebClient(number)
    return client.play(client.live_wildly, SILENCE_S)[1]


def has_all(client: WebClient, socket: SimSocket) -> bool:
    """Whether the bodies of all answers came whole."""
    return socket.received.count(0) == sum(starmap(body_bytes, client.asked))


def test_nothing_is_left_of_a_client_that_does_nothing_more(seed: int) -> None:
    clients = range(seed * CLIENTS, (seed + 1) * CLIENTS)
    assert [each for each in clients if what_is_left(each) != NOTHING] == []


def test_who_sends_whole_requests_and_reads_gets_all_answers(seed: int) -> None:
    for number in range(seed * HONEST_CLIENTS, (seed + 1) * HONEST_CLIENTS):
        client = WebClient(number)
        socket, _ = client.play(client.live_honestly, SILENCE_S)
        assert socket.received.count(b"HTTP/1.1 200 ") == len(client.asked), number
        assert has_all(client, socket), number


def test_who_asks_once_and_reads_slowly_gets_the_whole_answer(seed: int) -> None:
    for number in range(seed * CLIENTS, (seed + 1) * CLIENTS):
        client = WebClient(number)
        socket, left = client.play(client.ask_once, SILENCE_S)
        assert socket.received.count(b" 200 OK\r\n") == 1, number
        assert has_all(client, socket), number
        assert left == NOTHING, number


# The simulation notices a connection that forgets one of its times, or ends early --------------


def _as_uvicorn(protocol: BoundedHttpProtocol, data: bytes) -> None:
    HttpToolsProtocol.data_received(protocol, data)


@pytest.mark.parametrize(
    ("name", "forgets", "number"),
    [
        ("_parse", _as_uvicorn, 658),
        ("_time_the_end", lambda _: None, 54),
        ("_time_the_rest", lambda _: None, 119),
        ("_begin_write_timer", lambda _: None, 4),
        ("_read_timed_out", lambda _: None, 42),
    ],
)
def test_it_notices(
    monkeypatch: pytest.MonkeyPatch, name: str, forgets: Callable[..., None], number: int
) -> None:
    monkeypatch.setattr(BoundedHttpProtocol, name, forgets)
    assert what_is_left(number) != NOTHING


def test_it_notices_an_end_that_is_not_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def close(transport: HttpTransport) -> None:
        transport._transport.close()

    monkeypatch.setattr(HttpTransport, "close", close)
    client = WebClient(8)
    assert not has_all(client, client.play(client.ask_once, SILENCE_S)[0])

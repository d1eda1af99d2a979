"""An answer ends in time and its head within a bound, whatever a server sends."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from headgate.access.timed_answers import (
    HEAD_BYTES_MAX,
    LateAnswerError,
    LongHeadError,
    timed_answers,
)

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ORDINARY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def asked() -> Iterator[Callable[[bytes, bool, Callable[[], float]], tuple[int, bytes]]]:
    """Asks a server that sends some bytes, again and again if it is endless."""
    sockets: list[socket.socket] = []

    def ask(sent: bytes, is_endless: bool, left_s: Callable[[], float]) -> tuple[int, bytes]:
        server, client = socket.socketpair()
        sockets.extend((server, client))

        def serve() -> None:
            with suppress(OSError):
                server.sendall(sent)
                while is_endless:
                    server.sendall(sent)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client.settimeout(30.0)
        connection = http.client.HTTPConnection("broker")
        connection.response_class = timed_answers(left_s)
        connection.sock = client
        try:
            connection.request("GET", "/")
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()
            server.close()
            thread.join(10)

    yield ask
    for each in sockets:
        each.close()


def countdown(reads: int) -> Callable[[], float]:
    """So many reads have time left, and those behind them none."""
    left = iter([1.0] * reads)
    return lambda: next(left, 0.0)


def test_an_ordinary_answer_is_read(
    asked: Callable[[bytes, bool, Callable[[], float]], tuple[int, bytes]],
) -> None:
    assert asked(ORDINARY, False, lambda: 5.0) == (200, b"ok")
    assert asked(CONTINUE + ORDINARY, False, lambda: 5.0) == (200, b"ok")


def test_interim_answers_without_end_are_a_head_that_is_too_long(
    asked: Callable[[bytes, bool, Callable[[], float]], tuple[int, bytes]],
) -> None:
    with pytest.raises(LongHeadError):
        asked(CONTINUE * 1_000, True, lambda: 5.0)


def test_behind_the_head_the_body_may_be_long(
    asked: Callable[[bytes, bool, Callable[[], float]], tuple[int, bytes]],
) -> None:
    size = 4 * HEAD_BYTES_MAX
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
    assert asked(head + bytes(size), False, lambda: 5.0) == (200, bytes(size))


@pytest.mark.parametrize("sent", [CONTINUE, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n1"])
def test_no_time_is_left_for_a_part_that_comes_later(
    asked: Callable[[bytes, bool, Callable[[], float]], tuple[int, bytes]], sent: bytes
) -> None:
    with pytest.raises(LateAnswerError):
        asked(sent, False, countdown(1))

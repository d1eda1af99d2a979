"""Many requests on one connection: all are asked, all are answered, a refusal is heard."""

from __future__ import annotations

import socket

import pytest

from bench.audience import PIPELINE_REQUESTS, ask_all
from bench.client import Client
from headgate.wire import client, encode
from headgate.wire.codes import ServerError
from headgate.wire.frame import FrameDecoder


class _Answered(Client):
    """A client whose answers were there before it asked."""

    def __init__(self, answers: bytes) -> None:
        self.socket, self.other_side = socket.socketpair()
        self._decoder = FrameDecoder()
        self._decoder.feed(answers)


def _requests_at(side: socket.socket) -> int:
    decoder = FrameDecoder()
    side.setblocking(False)
    decoder.feed(side.recv(1 << 20))
    count = 0
    while decoder.next_frame() is not None:
        count += 1
    return count


def test_each_request_is_sent_once() -> None:
    count = 2 * PIPELINE_REQUESTS + 1
    connection = _Answered(encode.success(1) * count)
    ask_all(connection, [client.unsubscribe(n, n) for n in range(count)])
    assert _requests_at(connection.other_side) == count
    connection.other_side.close()
    connection.close()


def test_a_refusal_is_not_taken_for_an_answer() -> None:
    refusal = encode.error(2, ServerError.CONSUMER_BUSY, "somebody reads it")
    connection = _Answered(encode.success(1) + refusal)
    with pytest.raises(RuntimeError, match="somebody reads it"):
        ask_all(connection, [client.unsubscribe(n, n) for n in range(2)])
    connection.other_side.close()
    connection.close()

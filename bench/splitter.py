"""The floor under the floor: a server that only cuts the stream into frames.

It parses nothing of a SEND, checks nothing and stores nothing; every frame gets a receipt that was
made beforehand. What it costs is what the sockets, the event loop and the cutting cost.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from typing import Any, cast

import uvloop

from headgate.app.run import SWITCH_INTERVAL_S
from headgate.wire import encode
from headgate.wire.codes import CommandType
from headgate.wire.frame import FrameDecoder

_unpack_size = struct.Struct(">I").unpack_from
_RECEIPT = encode.send_receipt(0, 1, 1, 1)
_BUFFER_BYTES = 256 * 1024


class Session(asyncio.BufferedProtocol):
    """One connection: CONNECT and PRODUCER are answered, whatever follows is cut."""

    def __init__(self) -> None:
        self._decoder: FrameDecoder | None = FrameDecoder()
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._end = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint) if self._decoder else self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._decoder is not None:
            self._greet(self._decoder, nbytes)
            return
        buffer, end = self._buffer, self._end + nbytes
        start = frames = 0
        while end - start >= 4:
            stop = start + 4 + _unpack_size(buffer, start)[0]
            if stop > end:
                break
            bytes(self._view[start:stop])
            start = stop
            frames += 1
        self._view[: end - start] = bytes(self._view[start:end])
        self._end = end - start
        if frames:
            self._transport.write(_RECEIPT * frames)

    def _greet(self, decoder: FrameDecoder, nbytes: int) -> None:
        decoder.advance(nbytes)
        while (frame := decoder.next_frame()) is not None:
            command = frame[0]
            if command.type == CommandType.CONNECT:
                limits: Any = {"protocol_version": 21, "message_bytes_max": 5 << 20}
                self._transport.write(encode.connected(server_version="splitter", **limits))
            elif command.type == CommandType.PRODUCER:
                request_id = command.producer.request_id
                self._transport.write(encode.producer_success(request_id, producer_name="p"))
                self._decoder = None


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Session, "127.0.0.1", 0)
    print(f"ready at port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until killed."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())

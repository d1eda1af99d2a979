"""The peer: what any durable server of this protocol in Python must do, and nothing else.

The same frame codec, the same checksum of each entry, one log with a group commit (fdatasync
before the receipts), the same receipt and message encoders, the same event loop, thread and
switch interval as Headgate; and no engine: no index, no subscriptions, no limits, no account, no
recovery. Its cost is the floor that Headgate's is compared with.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import threading
from queue import SimpleQueue
from typing import Any, cast

import uvloop

from headgate.app.run import SWITCH_INTERVAL_S
from headgate.wire import encode
from headgate.wire.codes import CommandType
from headgate.wire.entry import checksum_ok
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand

LOG_BYTES = 1 << 30
KEPT_ENTRIES_MAX = 50_000
_pack_size = struct.Struct("<I").pack

Pending = tuple["Session", int, int]
"""Who waits for a receipt: its session, producer id and sequence id."""


class Log:
    """One file; whatever was appended while a commit ran goes into the next."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.posix_fallocate(self._fd, 0, LOG_BYTES)
        self._offset = 0
        self._loop = loop
        self._jobs: SimpleQueue[tuple[list[bytes], list[Pending]]] = SimpleQueue()
        self._parts: list[bytes] = []
        self._pending: list[Pending] = []
        self._busy = self._scheduled = False
        self._entries_count = 0
        self.kept: dict[str, list[bytes]] = {}
        """Entries by topic, for topics that were subscribed before they were published to."""
        threading.Thread(target=self._run, daemon=True).start()

    def append(self, topic: str, body: bytes, pending: Pending) -> None:
        """Store an entry; its receipt follows when it is durable."""
        self._parts.append(_pack_size(len(body)))
        self._parts.append(body)
        self._pending.append(pending)
        kept = self.kept.get(topic)
        if kept is not None and len(kept) < KEPT_ENTRIES_MAX:
            kept.append(body)
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._commit)

    def _commit(self) -> None:
        self._scheduled = False
        parts, self._parts = self._parts, []
        pending, self._pending = self._pending, []
        self._busy = True
        self._jobs.put((parts, pending))

    def _run(self) -> None:
        while True:
            parts, pending = self._jobs.get()
            data = b"".join(parts)
            if self._offset + len(data) > LOG_BYTES:
                self._offset = 0
            os.pwrite(self._fd, data, self._offset)
            os.fdatasync(self._fd)
            self._offset += len(data)
            self._loop.call_soon_threadsafe(self._durable, pending)

    def _durable(self, pending: list[Pending]) -> None:
        self._busy = False
        for session, producer_id, sequence_id in pending:
            self._entries_count += 1
            session.write(encode.send_receipt(producer_id, sequence_id, 1, self._entries_count))
        if self._parts:
            self._commit()


class Session(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, log: Log, loop: asyncio.AbstractEventLoop) -> None:
        self._log = log
        self._loop = loop
        self._decoder = FrameDecoder()
        self._topics: dict[int, str] = {}
        self._read: dict[int, tuple[list[bytes], int]] = {}
        self._out: list[bytes] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._decoder.advance(nbytes)
        while (frame := self._decoder.next_frame()) is not None:
            command, body = frame
            if command.type == CommandType.SEND and body is not None:
                send = command.send
                producer_id = send.producer_id
                if checksum_ok(body):
                    pending = (self, producer_id, send.sequence_id)
                    self._log.append(self._topics[producer_id], body, pending)
            elif command.type == CommandType.FLOW:
                self._deliver(command.flow.consumer_id, command.flow.messagePermits)
            else:
                self._cold(command)

    def write(self, data: bytes) -> None:
        """Have it written at the end of this turn."""
        if not self._out:
            self._loop.call_soon(self._write_out)
        self._out.append(data)

    def _write_out(self) -> None:
        out, self._out = self._out, []
        self._transport.writelines(out)

    def _deliver(self, consumer_id: int, permits: int) -> None:
        entries, place = self._read[consumer_id]
        stop = min(place + permits, len(entries))
        for index in range(place, stop):
            body = entries[index]
            head = encode.message_frame_head(consumer_id, 1, index, -1, 0, (), -1, len(body))
            self.write(head)
            self._out.append(body)
        self._read[consumer_id] = (entries, stop)

    def _cold(self, command: BaseCommand) -> None:
        if command.type == CommandType.CONNECT:
            limits: Any = {"protocol_version": 21, "message_bytes_max": 5 << 20}
            self.write(encode.connected(server_version="peer", **limits))
        elif command.type == CommandType.PRODUCER:
            self._topics[command.producer.producer_id] = command.producer.topic
            self.write(encode.producer_success(command.producer.request_id, producer_name="p"))
        elif command.type == CommandType.SUBSCRIBE:
            asked = command.subscribe
            self._read[asked.consumer_id] = (self._log.kept.setdefault(asked.topic, []), 0)
            self.write(encode.success(asked.request_id))
        elif command.type == CommandType.CLOSE_CONSUMER:
            self.write(encode.success(command.close_consumer.request_id))
        elif command.type == CommandType.PARTITIONED_METADATA:
            self.write(encode.partition_metadata(command.partitionMetadata.request_id, 0))
        elif command.type == CommandType.LOOKUP:
            port = self._transport.get_extra_info("sockname")[1]
            asked_id, url = command.lookupTopic.request_id, f"pulsar://127.0.0.1:{port}"
            self.write(encode.lookup_connect(asked_id, broker_url=url))
        elif command.type == CommandType.GET_TOPICS_OF_NAMESPACE:
            asked_id = command.getTopicsOfNamespace.request_id
            self.write(encode.topics_of_namespace(asked_id, self._log.kept))


async def _serve(path: str) -> None:
    loop = asyncio.get_running_loop()
    log = Log(path, loop)
    server = await loop.create_server(lambda: Session(log, loop), "127.0.0.1", 0)
    print(f"ready at port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main(path: str) -> None:
    """Serve with the log at ``path`` until killed."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(path))

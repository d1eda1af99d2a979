"""An agent's telemetry topic at a broker that answers badly."""

from __future__ import annotations

import os
import socketserver
import struct
import threading
import time

import pytest

from headgate.access.client_config import ClientConfig
from headgate.agent.record_topic import TopicError
from headgate.app.telemetry_topic.process import TopicProcess
from headgate.wire.codes import CommandType
from headgate.wire.messages import BaseCommand
from headgate.wire.replies import connected, partition_metadata

TOPIC = "persistent://public/default/samples"


class Hostile(socketserver.StreamRequestHandler):
    """Says of each topic that it has two billion partitions."""

    def handle(self) -> None:
        while head := self.rfile.read(4):
            frame = self.rfile.read(*struct.unpack(">I", head))
            command = BaseCommand.FromString(frame[4:])
            if command.type == CommandType.CONNECT:
                self.wfile.write(
                    connected(protocol_version=21, message_bytes_max=1_000_000, server_version="x")
                )
            elif command.type == CommandType.PARTITIONED_METADATA:
                request_id = command.partitionMetadata.request_id
                self.wfile.write(partition_metadata(request_id, 2**31 - 1))


def test_a_broker_that_answers_badly_ends_the_process_and_not_the_agent() -> None:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Hostile)
    server.daemon_threads = True
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = ClientConfig(broker_url=f"pulsar://127.0.0.1:{server.server_address[1]}")
        began_s = time.monotonic()
        with pytest.raises(TopicError, match="the process that publishes ended"):
            TopicProcess(config, TOPIC, os.environ, print)
        assert time.monotonic() - began_s < 60
        server.shutdown()

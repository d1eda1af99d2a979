"""Other users of the machine reach the ports of Spark's Java, and get nothing there. Nor do modules
run that they put into the folder in which the job was started."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from pathlib import Path

from tests.service.clients import free_ports

JOB = """
import sys
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_options import SparkOptions

session = create_session("test", options=SparkOptions(1, conf=(sys.argv[1],)))
secret = "a token"
assert session.sparkContext.parallelize([1], 1).map(lambda _: secret).collect() == [secret]
print("ready", flush=True)
sys.stdin.readline()
session.stop()
"""
"""The code of its one task, which has the secret, is the block ``broadcast_0_piece0``."""

RPC_REQUEST, RPC_RESPONSE = b"\x03", 4
"""Types of messages of Spark's network protocol (``org.apache.spark.network.protocol.Message``)."""


def text(value: str) -> bytes:
    """A text as the protocol has it."""
    return struct.pack(">i", len(value)) + value.encode()


def asked_for(block: str, port: int) -> tuple[int, bytes]:
    """The type and the body of the answer to ``OpenBlocks``, from a client without a secret."""
    body = b"\0" + text("app") + text("driver") + struct.pack(">i", 1) + text(block)
    request = RPC_REQUEST + struct.pack(">qi", 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), 30) as peer, peer.makefile("rb") as answers:
        peer.sendall(struct.pack(">q", len(request) + 8) + request)
        (size,) = struct.unpack(">q", answers.read(8))
        answer = answers.read(size - 8)
    return answer[0], answer[1:]


def test_a_stranger_gets_no_code_of_tasks(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "queue.py").write_text("raise SystemExit('a module of somebody else')")
    job = subprocess.Popen(
        [sys.executable, "-P", "-c", JOB, f"spark.blockManager.port={port}"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with job:
        try:
            assert job.stdin is not None
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
            kind, answer = asked_for("broadcast_0_piece0", port)
            job.stdin.write("\n")
            job.stdin.flush()
            assert job.wait(60) == 0
        finally:
            job.kill()
    assert kind != RPC_RESPONSE
    assert b"Expected SaslMessage" in answer

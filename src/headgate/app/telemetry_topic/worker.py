"""The program that publishes an agent's telemetry, which ``process`` starts.

It runs ``pulsar-client`` beside the agent. That library trusts the broker that it talks to: an
answer that names two billion partitions ends its process, some broken ones do, too, and others keep
a call from ever returning. Here this costs the messages that wait, and not the watch of all
clusters. So the process has a bound on its memory, and ends when a call takes too long.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from headgate.agent.pulsar_producer import PulsarProducer
from headgate.agent.record_topic import TopicError
from headgate.app.pipe_frames import read_frame, write_frame
from headgate.app.telemetry_topic.pipe import Begin, Outcome
from headgate.base.errors import HeadgateError
from headgate.base.units import GIB

CALL_S_MAX: Final = 90
"""A process whose library has not returned from a call after so long ends."""
CLOSE_S_MAX: Final = 5
MEMORY_BYTES_MAX: Final = GIB
"""Most addresses of the process: twice what it has while it publishes."""


def limit_process() -> None:
    """Bound what a broker can make of the library. A crash leaves no file with credentials, and who
    ends the agent ends this process by its pipe, after the last message."""
    for kind, most in ((resource.RLIMIT_AS, MEMORY_BYTES_MAX), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # a system may lack it, or have a lower bound
            resource.setrlimit(kind, (most, most))
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)


def serve(requests: int, replies: int, environment: Mapping[str, str]) -> None:
    """Publish what comes, and say what became of each message, until ``requests`` ends. Both are
    descriptors.

    Raises:
        BrokenPipeError, EOFError: the agent has ended.
    """
    said: list[str] = []

    def reply(problem: str) -> None:
        signal.alarm(0)
        write_frame(replies, msgspec.json.encode(Outcome(problem, said)))
        said.clear()

    first = read_frame(requests)
    if not first:
        return
    begin = msgspec.json.decode(first, type=Begin)
    signal.alarm(CALL_S_MAX)
    try:
        producer = PulsarProducer(begin.config, begin.topic, environment, said.append)
    except HeadgateError as error:
        reply(str(error))
        return
    reply("")
    while properties := read_frame(requests):
        data = read_frame(requests)
        problem = ""
        signal.alarm(CALL_S_MAX)
        try:
            producer.send(data, msgspec.json.decode(properties, type=dict[str, str]))
        except TopicError as error:
            problem = str(error)
        reply(problem)
    signal.alarm(CLOSE_S_MAX)
    producer.close()
    signal.alarm(0)


def main() -> None:
    """Serve the pipes of this process."""
    limit_process()
    # The library writes to the standard output, which is the pipe to the agent.
    replies = os.dup(sys.stdout.fileno())
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError, EOFError):
        serve(sys.stdin.fileno(), replies, os.environ)


if __name__ == "__main__":
    main()

"""A producer of the telemetry topic that lives in a process of its own.

``pulsar-client`` ends its process if a broker answers badly, as ``worker`` says; the watch of the
clusters goes on without it.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from headgate.access.authentication import Say
from headgate.access.client_config import ClientConfig
from headgate.agent.record_topic import TopicError
from headgate.app.pipe_frames import read_frame, write_frame
from headgate.app.telemetry_topic.pipe import Begin, Outcome
from headgate.base.errors import InputError

COMMAND: Final = (sys.executable, "-P", "-m", "headgate.app.telemetry_topic.worker")
END_S: Final = 6.0
"""How long the process may take to end; then it is killed."""
_OWN_ENVIRONMENT: Final = {"MALLOC_ARENA_MAX": "2"}
"""Else the C library reserves addresses for each of its threads, which have a bound."""


class TopicProcess:
    """The process and the pipes to it. All methods block."""

    def __init__(
        self,
        config: ClientConfig,
        topic: str,
        environment: Mapping[str, str],
        say: Say,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Start the process, which connects to ``config.broker_url``. ``say`` gets warnings.

        Raises:
            TopicError: the process cannot be started, or the cluster does not let it produce.
        """
        self._url = config.broker_url
        self._say = say
        try:
            # Credentials go through the pipe: arguments are for all users of the machine to see.
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **environment, **_OWN_ENVIRONMENT},
                start_new_session=True,
            )
        except OSError as error:
            raise TopicError(f"no process for it can be started: {error.strerror}") from error
        try:
            self._ask(msgspec.json.encode(Begin(config, topic)))
        except BaseException:
            self.close()
            raise

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        """Store one message. Raises :class:`TopicError`."""
        self._ask(msgspec.json.encode(properties), data)

    def close(self) -> None:
        """End the process. A second call does nothing."""
        try:
            self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        except (OSError, ValueError):  # its pipes have ended, or are closed
            self._process.kill()
            self._process.wait()

    def _ask(self, *frames: bytes) -> None:
        pipe_to, pipe_from = self._process.stdin, self._process.stdout
        if pipe_to is None or pipe_from is None:
            raise TopicError(f"{self._url}: there is no process")
        try:
            for frame in frames:
                write_frame(pipe_to.fileno(), frame)
            answer = read_frame(pipe_from.fileno())
        except (OSError, EOFError, ValueError):
            answer = b""
        if not answer:
            raise TopicError(f"{self._url}: the process that publishes ended {self._ended()}")
        outcome = msgspec.json.decode(answer, type=Outcome)
        for text in outcome.said:
            self._say(text)
        if outcome.problem:
            raise TopicError(outcome.problem)

    def _ended(self) -> str:
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        if status == -signal.SIGALRM:
            return "because pulsar-client did not return from a call"
        if status < 0:
            return f"with signal {-status}: pulsar-client does not survive what the broker answered"
        return f"with status {status}"


def check_installed() -> None:
    """Check that there is ``pulsar-client``. ``headgate[demo]`` and ``headgate[spark]`` bring it.

    Raises:
        InputError: it is not installed.
    """
    if importlib.util.find_spec("pulsar") is None:
        raise InputError(
            "a telemetry topic needs the package pulsar-client: pip install 'headgate[demo]'; or "
            "write files"
        )

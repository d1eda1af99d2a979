"""``headgate top`` on a terminal, while its broker goes away and comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pulsar
import pytest

from tests.service.process import BrokerProcess

pytestmark = pytest.mark.waits

WITHIN_S = 30.0
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a pseudo-terminal, and what it wrote there."""

    def __init__(self, *words: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli", *words],
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
        )  # fmt: skip
        self.modes = termios.tcgetattr(slave)
        self.slave = slave
        self.written = ""

    def wait_for(self, text: str) -> None:
        """Until ``text`` was written after the last one."""
        end = time.monotonic() + WITHIN_S
        while text not in _CODES.sub("", self.written):
            left = end - time.monotonic()
            assert left > 0, f"{text!r} is not in {self.written[-3000:]!r}"
            if select.select([self._master], [], [], left)[0]:
                self.written += os.read(self._master, 65_536).decode(errors="replace")
        self.written = ""

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self.slave)
        os.close(self._master)


@pytest.fixture
def on_terminal() -> Iterator[Callable[..., Terminal]]:
    """Runs a command on a terminal; it is ended after the test."""
    made: list[Terminal] = []

    def run(*words: str) -> Terminal:
        made.append(Terminal(*words))
        return made[-1]

    yield run
    for terminal in made:
        terminal.close()


def test_a_broker_goes_away_and_comes_back(
    make_broker: Callable[..., BrokerProcess], on_terminal: Callable[..., Terminal]
) -> None:
    broker = make_broker()
    broker.start()
    client = pulsar.Client(broker.service_url, logger=QUIET)
    client.subscribe("orders", "nobody").close()
    producer = client.create_producer("orders")
    producer.send(b"waits")
    client.close()

    terminal = on_terminal("top", "--admin-url", broker.admin_url, "--interval", "0.3")
    terminal.wait_for("public/default/orders")
    terminal.press("\r")
    terminal.wait_for("subscription nobody (")
    terminal.press("q")
    terminal.wait_for("headgate top")

    broker.kill()
    terminal.wait_for("No answer for")
    assert terminal.process.poll() is None
    broker.words += ["--web-port", str(urlsplit(broker.admin_url).port)]
    broker.start()
    terminal.wait_for("every 0.3 s")

    terminal.press("q")
    assert terminal.process.wait(WITHIN_S) == 0
    assert termios.tcgetattr(terminal.slave) == terminal.modes


def test_explain_watches(broker: BrokerProcess, on_terminal: Callable[..., Terminal]) -> None:
    terminal = on_terminal("explain", "--admin-url", broker.admin_url, "--watch", "0.3")
    terminal.wait_for("0 subscriptions, no backlog.")
    client = pulsar.Client(broker.service_url, logger=QUIET)
    client.subscribe("orders", "nobody").close()
    client.close()
    terminal.wait_for("1 subscription, no backlog.")
    terminal.press("q")
    assert terminal.process.wait(WITHIN_S) == 0

"""A broker as users run it: ``headgate standalone`` in a process of its own, on free ports."""

from __future__ import annotations

import re
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0

_READY = re.compile(
    r"Headgate \S+ ready(?: in (?P<age_s>[\d.]+) s)?: "
    r"(?:(?P<service_url>pulsar://\S+)  )?(?:(?P<admin_url>http://\S+)  )?"
    r"(?:(?P<service_url_tls>pulsar\+ssl://\S+)  )?(?:(?P<admin_url_tls>https://\S+)  )?"
    r"data in (?P<data>.+)\n"
)


class StartFailedError(Exception):
    """The process ended before it was ready."""

    def __init__(self, status: int, stderr: str) -> None:
        super().__init__(f"status {status}: {stderr}")
        self.status = status
        self.stderr = stderr


class BrokerProcess:
    """One run after the other on one data directory, each with free ports unless told otherwise."""

    def __init__(self, folder: Path, words: Sequence[str] = ()) -> None:
        """``folder`` gets ``data`` and the log of all runs, ``words`` go to the command line."""
        self.data_path = folder / "data"
        self.log_path = folder / "broker.log"
        self.words = list(words)
        self.has_plain_ports = True
        """Whether to ask for free ports without TLS."""
        self.wrapper: list[str] = []
        """Words before the command, of a program that carries it out."""
        self.module = "headgate.cli"
        """The module that is ``headgate``."""
        self.service_url = ""
        self.admin_url = ""
        self.service_url_tls = ""
        self.admin_url_tls = ""
        self.ready_line = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> BrokerProcess:
        """Start it and return when it says that it is ready."""
        command = [
            *self.wrapper, sys.executable, "-m", self.module, "standalone",
            "--data-dir", str(self.data_path),
            *(["--broker-port", "0", "--web-port", "0"] if self.has_plain_ports else []),
            *self.words,
        ]  # fmt: skip
        with self.log_path.open("ab") as log:
            begin = log.tell()
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        stdout = self._process.stdout
        assert stdout is not None
        try:
            readable, _, _ = select.select([stdout], [], [], READY_TIMEOUT_S)
            self.ready_line = stdout.readline().decode() if readable else ""
            match = _READY.fullmatch(self.ready_line)
            if match is None:
                status = self._process.wait(STOP_TIMEOUT_S) if readable else self.kill()
                raise StartFailedError(status, self.log_path.read_bytes()[begin:].decode())
        except BaseException:
            if self._process is not None:
                self.kill()
            raise
        self.service_url, self.admin_url = match["service_url"] or "", match["admin_url"] or ""
        self.service_url_tls = match["service_url_tls"] or ""
        self.admin_url_tls = match["admin_url_tls"] or ""
        return self

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and return its exit status; 0 is a clean end."""
        return self._end(number)

    def kill(self) -> int:
        """End it without giving it a chance (SIGKILL)."""
        return self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it ends by itself and return its exit status."""
        return self._end(None)

    def restart(self) -> BrokerProcess:
        """End it cleanly and start it again on the same data, on other ports."""
        assert self.terminate() == 0
        return self.start()

    def log(self) -> str:
        """What it has logged, over all runs."""
        return self.log_path.read_text()

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of ``GET path`` on the web port."""
        return self.request("GET", path)

    def request(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of a request to the web port; a body goes as JSON."""
        request = urllib.request.Request(
            self.admin_url + path,
            data=body,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def close(self) -> None:
        """End it if it still runs."""
        if self._process is not None:
            self.terminate()

    def _end(self, number: signal.Signals | None) -> int:
        process, self._process = self._process, None
        assert process is not None
        if number is not None:
            process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        return process.returncode

"""Server processes to measure: their start, their CPU time, their memory, their end."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0

_PORT = re.compile(r"(?:pulsar://\S+:|at port )(\d+)")


class Server:
    """A process that says on its first line that it is ready, and at which port."""

    def __init__(
        self, name: str, arguments: Sequence[str], folder: Path, source: Path | None = None
    ) -> None:
        """Start it and return when it is ready; stderr goes to a file in ``folder``.

        ``source`` is the folder of packages from which it runs instead of this checkout's.
        """
        environment = dict(os.environ)
        if source is not None:
            environment["PYTHONPATH"] = str(source)
        self.name = name
        began_s = time.perf_counter()
        with (folder / f"{name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT if source is None else folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        stdout = self._process.stdout
        assert stdout is not None
        try:
            readable, _, _ = select.select([stdout], [], [], START_TIMEOUT_S)
            self.ready_line = stdout.readline().decode() if readable else ""
            self.ready_s = time.perf_counter() - began_s
            """Seconds from its start to its first line."""
            match = _PORT.search(self.ready_line)
            if match is None:
                log_text = (folder / f"{name}.log").read_text()[-2_000:]
                raise RuntimeError(f"{name} did not start: {self.ready_line}{log_text}")
        except BaseException:
            self.close()
            raise
        self.port = int(match[1])

    def cpu_ns(self) -> int:
        """User and system time of the whole process, all threads."""
        # The clock of another process, as clock_getcpuclockid(3) makes it: exact, where
        # /proc/PID/stat counts ticks of 10 ms.
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def waited_for_cpu_ns(self) -> int:
        """How long its threads stood in line for a CPU."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks)

    def memory_mib(self) -> float:
        """Resident memory."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", text)
        assert match is not None
        return int(match[1]) / 1_024

    def lines(self) -> Iterator[str]:
        """What else it says on stdout, to its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield line.decode()

    def ask_to_end(self) -> None:
        """SIGTERM, without waiting."""
        self._process.terminate()

    def close(self) -> None:
        """End it and wait for that."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def headgate(
    folder: Path,
    settings: Sequence[str] = (),
    *,
    name: str = "headgate",
    more: Sequence[str] = (),
    source: Path | None = None,
) -> Server:
    """``headgate standalone`` on free ports with its data in ``folder``; ``more`` are further
    options of the command, ``source`` the packages of another version."""
    arguments = ["-m", "headgate.cli", "standalone", "--data-dir", str(folder / name)]
    arguments += ["--broker-port", "0", "--web-port", "0"]
    for setting in settings:
        arguments += ["--set", setting]
    return Server(name, [*arguments, *more], folder, source)


def peer(folder: Path) -> Server:
    """:mod:`bench.peer`, the server without an engine."""
    code = "import sys; from bench.peer import main; main(sys.argv[1])"
    return Server("peer", ["-c", code, str(folder / "peer.data")], folder)


def splitter(folder: Path) -> Server:
    """:mod:`bench.splitter`, which only cuts frames."""
    return Server("splitter", ["-c", "from bench.splitter import main; main()"], folder)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for data, removed afterwards; where TMPDIR says, on the disk that is measured."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as path:
        yield Path(path)

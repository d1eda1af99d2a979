"""Plays one suite: ``python -m tests.peer.suites.run go|python FOLDER PROGRAM [NAME ...]``.

Run it in a network namespace of its own. ``FOLDER`` is the client's source. ``PROGRAM`` is the
compiled test program of Go, or the Python that has the client. Names restrict it to some tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.peer.suites.outcomes import TEST_LIMIT_S, play, read_absent
from tests.peer.suites.suite_broker import SuiteBroker

HERE: Final = Path(__file__).parent
JOBS: Final = 1
"""Tests at the same time: several share topics, or change a policy of their namespace."""
PYTHON_FILES: Final = (
    "pulsar_test",
    "schema_test",
    "table_view_test",
    "reader_test",
    "asyncio_test",
)
"""The files of the Python client's suite that need a broker and no container."""


def play_go(source: Path, program: str, names: Sequence[str]) -> int:
    """The tests of the package ``pulsar`` of the Go client."""
    folder = source / "pulsar"
    listed = subprocess.run(
        [program, "-test.list", ".*"], cwd=folder, check=True, capture_output=True, text=True,
        timeout=60,
    ).stdout  # fmt: skip
    tests = [name for name in listed.split() if name.startswith("Test")]
    shared = source / "integration-tests"
    htpasswd, key = shared / "conf" / ".htpasswd", shared / "tokens" / "secret.key"
    with tempfile.TemporaryDirectory() as temporary:
        broker = SuiteBroker(Path(temporary), shared / "certs", htpasswd=htpasswd, secret_key=key)
        broker.start()
        try:
            return play(
                "Go client",
                _chosen(tests, names),
                lambda name: [
                    program, "-test.run", f"^{name}$", "-test.timeout", f"{TEST_LIMIT_S}s",
                ],
                folder,
                {} if names else read_absent(HERE / "go_absent.txt"),
                JOBS,
            )  # fmt: skip
        finally:
            broker.close()


def play_python(source: Path, python: str, names: Sequence[str]) -> int:
    """The tests of the Python client."""
    folder = source / "tests"
    tests = [
        f"{file}.{case}.{test}" for file in PYTHON_FILES for case, test in _cases(folder, file)
    ]
    secrets = folder / "test-conf"
    with tempfile.TemporaryDirectory() as temporary:
        htpasswd = secrets / ".htpasswd"
        broker = SuiteBroker(Path(temporary), secrets, htpasswd=htpasswd, secret_key=None)
        (folder / ".test-token.txt").write_text(broker.token("token-principal") + "\n")
        broker.start()
        try:
            return play(
                "Python client",
                _chosen(tests, names),
                lambda name: [python, "-m", "unittest", "-q", name],
                folder,
                {} if names else read_absent(HERE / "python_absent.txt"),
                JOBS,
            )
        finally:
            broker.close()


def _cases(folder: Path, file: str) -> list[tuple[str, str]]:
    """Class and name of each test of a file."""
    found: list[tuple[str, str]] = []
    case = ""
    for line in (folder / f"{file}.py").read_text().splitlines():
        if match := re.match(r"class (\w+)\(", line):
            case = match[1]
        elif match := re.match(r"    (?:async )?def (test\w*)\(self", line):
            found.append((case, match[1]))
    return found


def _chosen(tests: Sequence[str], names: Sequence[str]) -> list[str]:
    return [test for test in tests if not names or any(name in test for name in names)]


def main(suite: str, source: str, program: str, *names: str) -> int:
    """Play it; 0 if all was right."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
    chosen = {"go": play_go, "python": play_python}[suite]
    return chosen(Path(source).absolute(), str(Path(program).absolute()), names)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

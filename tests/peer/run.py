"""Runs the Java cases of ``./dev test-peer`` against a broker that it starts on free ports."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.service.process import BrokerProcess

MAIN = "headgate.peer.BacklogQuotas"
LIMIT_S = 240
"""When a program that hangs is ended."""


def run(java: str, classpath: str) -> int:
    """Start a broker, have the program play against it, and return the program's status."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        broker.start()
        try:
            command = [java, "-cp", classpath, MAIN, broker.service_url, broker.admin_url]
            return subprocess.run(command, timeout=LIMIT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"The Java program was given up after {LIMIT_S} s\n")
            return 1
        finally:
            broker.close()


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))

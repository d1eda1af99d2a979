"""An S3 server on a free port: moto, as a process, from an environment that has it."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PYTHON_VARIABLE: Final = "HEADGATE_TEST_S3_PYTHON"
"""The Python that has moto; ``./dev test-peer`` sets it."""

_ADDRESS: Final = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")
STOP_LIMIT_S: Final = 30


@contextmanager
def s3_server() -> Iterator[str]:
    """Start it; its URL. It keeps all in memory.

    A thread of the tests' own process would not do: delta-rs holds Python's lock while it waits
    for an answer.
    """
    python = os.environ.get(PYTHON_VARIABLE)
    if not python:
        raise RuntimeError(f"{PYTHON_VARIABLE} is not set: ./dev test-peer runs these tests")
    process = subprocess.Popen(
        [python, "-c", "from moto.server import main; main(['-H', '127.0.0.1', '-p', '0'])"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    drain: threading.Thread | None = None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            found = _ADDRESS.search(line)
            if found is not None:
                break
        else:
            raise RuntimeError(f"it did not start:\n{''.join(lines)}")
        # It tells every request, and would stop when nobody reads.
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_LIMIT_S)
        if drain is not None:
            drain.join()
        process.stderr.close()


def make_bucket(url: str, name: str) -> None:
    """Make a bucket, as nothing of Headgate does."""
    request = urllib.request.Request(f"{url}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200

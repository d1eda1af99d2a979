"""``headgate demo --no-spark`` as a user meets it: what it shows, its status, how it ends early."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.demo.scenes import clusters, subjects

pytestmark = pytest.mark.alone

_LIMIT_S = 90.0
_END_S = 10.0
"""On a machine that is busy with other things; otherwise it takes about one."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts ``headgate demo``, with its temporary files in ``tmp_path``."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli", "demo", "--no-spark", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def _wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Read until a line has the text; the test's own limit of time ends it otherwise. Returns what
    was read."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if text in line:
            return read
    raise AssertionError(f"it ended without {text!r}: {read}")


def _demo_processes(folder: Path) -> list[str]:
    """Processes whose temporary files are in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended meanwhile, or is somebody else's
    return found


def test_every_verdict_is_right_and_the_repair_helps(start: Start, tmp_path: Path) -> None:
    process = start("--seconds", "12", "--keep")
    text = _wait_for(process, "Ctrl-C ends the brokers")
    pages = re.findall(r"^  (http://\S+)/$", text.partition("Open the page")[2], re.M)
    assert len(pages) == len(clusters())
    for url in pages:
        with urllib.request.urlopen(f"{url}/headgate/", timeout=_END_S) as page:
            assert b"Headgate" in page.read()
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=_LIMIT_S)
    text += rest
    assert process.returncode == 0, text
    for subject, scene in subjects():
        line = (
            rf"^{re.escape(subject.text)} +[\d,]+ +[+-][\d,]+ +{scene.verdict.value} +[01]\.\d\d$"
        )
        assert re.search(line, text, re.MULTILINE), (subject.text, text)
    assert text.count("\n   10 of 12 s") == 1
    assert "left out: --no-spark was given" in text
    assert len(re.findall(r"^ +\d+-\d+ s  published .+ -> limit .+ -> backlog ", text, re.M)) >= 10
    assert len(re.findall(r"^ +\d+-\d+ s +\d+/s .+ [+-]\d+/s   =+", text, re.M)) >= 10
    assert len(re.findall(r"^ +\d+-\d+ s  quota +\d+ % -> .+ -> videos +\d+/s", text, re.M)) >= 10
    assert len(re.findall(r"^ +\d+-\d+ s .+ \d+ %   =+\.+$", text, re.M)) >= 10
    assert re.search(r"^    Adaptive throttling \(law drain\): \d+ s ago slowed .+ B/s", text, re.M)
    assert "The quota was never reached" in text
    assert "unless on (cluster, namespace, topic, subscription)" in text
    assert re.search(r"^metering(?:.*\n)+?    PIP-406  the subscription limit: wrong$", text, re.M)
    assert "/clicks/dispatchRate" in text
    assert "drained: that limit was the cause" in text
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []
    assert _demo_processes(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "status", "at"),
    [
        (signal.SIGINT, 130, "connecting producers"),
        (signal.SIGINT, 130, "0 of 60 s"),
        (signal.SIGTERM, 143, "0 of 60 s"),
    ],
)
def test_it_ends_early_and_leaves_nothing(
    start: Start, tmp_path: Path, number: signal.Signals, status: int, at: str
) -> None:
    process = start()
    _wait_for(process, at)
    begin_s = time.monotonic()
    process.send_signal(number)
    text, _ = process.communicate(timeout=_LIMIT_S)
    assert time.monotonic() - begin_s < _END_S
    assert process.returncode == status, text
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []
    assert _demo_processes(tmp_path) == []


def test_clients_do_not_outlive_a_demo_that_is_killed(start: Start, tmp_path: Path) -> None:
    process = start()
    _wait_for(process, "0 of 60 s")
    assert len(_demo_processes(tmp_path)) == 3
    process.kill()
    process.wait(_LIMIT_S)
    end_s = time.monotonic() + _LIMIT_S
    while (left := _demo_processes(tmp_path)) and time.monotonic() < end_s:
        time.sleep(0.05)
    assert left == []

"""Runs pip and condenses what it prints into one live line.

Installing Spark takes most of a minute in which pip itself says little, so each of its stages
is named as it passes: collecting, downloading, building, installing.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from devkit.console import REFRESH_S, DevError, Stage
from devkit.paths import environment_variables
from devkit.processes import TimedOutError

_SIZE = re.compile(r"\(([\d.]+ [kMG]?B)\)")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_PERCENT_SHOWN_BYTES_MIN = 20_000_000

SILENCE_S: Final = 900
"""So long pip may say nothing: the longest step, Spark's wheel, is built in less."""


class PipOutput:
    """Reads pip's lines; :attr:`detail` is what it is at."""

    def __init__(self, total: int) -> None:
        self.detail = "starting"
        self.installing = False
        self._total = total
        self._collected = 0
        self._package = ""

    def feed(self, line: str) -> None:
        """Take one line of output."""
        word, _, rest = line.strip().partition(" ")
        if word == "Progress":
            self._progress(line)
        elif word == "Collecting":
            self._collected += 1
            self.detail = f"collecting {self._collected} of {self._total}, {_project(rest)}"
        elif word in ("Downloading", "Using"):
            size = _SIZE.search(rest)
            name = rest.removeprefix("cached ").split(" ")[0].rsplit("/", 1)[-1]
            extra = f", {size[1]}" if size else ""
            self._package = f"package {self._collected} of {self._total}, {_project(name)}{extra}"
            self.detail = self._package
        elif line.lstrip().startswith("Building wheel for") and "finished" not in line:
            self.detail = f"building {_project(rest.removeprefix('wheel for '))}"
        elif line.startswith("Installing collected packages"):
            self.installing = True
            self.detail = f"installing {rest.count(',') + 1} packages"

    def _progress(self, line: str) -> None:
        """Show how far a download is, where it is long enough for anybody to wonder."""
        match = _PROGRESS.search(line)
        if match and int(match[2]) >= _PERCENT_SHOWN_BYTES_MIN:
            self.detail = f"{self._package}, {100 * int(match[1]) // int(match[2])} %"


def run_pip(
    python: Path,
    arguments: list[str],
    *,
    title: str,
    total: int,
    on_install: Callable[[], None],
    progress: str = "raw",
) -> None:
    """Run ``pip install`` with ``arguments`` under ``python``.

    ``progress`` is pip's own: ``raw`` is what we read, and a pip that came with an older Python
    knows ``off`` only.
    ``total`` is how many packages are wanted; ``on_install`` is called once when pip begins to
    change the environment (until then, stopping it leaves nothing half done).

    Raises:
        DevError: pip failed, with what it said last, or has said nothing for a long time.
    """
    command = [
        str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
        "--no-warn-script-location", "--root-user-action=ignore", f"--progress-bar={progress}",
        *arguments,
    ]  # fmt: skip
    stage = Stage(title)
    output = PipOutput(total)
    last_lines: deque[str] = deque(maxlen=30)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment_variables(),
    )
    with process:
        try:
            for line in _lines(process):
                if line:
                    last_lines.append(line)
                    before = output.installing
                    output.feed(line)
                    if output.installing and not before:
                        on_install()
                stage.update(output.detail)
        except BaseException:
            stage.leave()
            process.terminate()
            raise
    status = process.returncode
    if status != 0:
        stage.leave()
        raise DevError(
            "\n".join(["", *last_lines, ""])
            + f"\npip failed while installing {title}; its last lines stand above. If the "
            "package index could not be reached, run the same command again: finished "
            "downloads are kept."
        )
    stage.done()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Each line of the child's output, and an empty string whenever it was silent a while.

    Raises:
        TimedOutError: it was silent for :data:`SILENCE_S`.
    """
    stream = process.stdout
    if stream is None:
        return
    rest, heard_s = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(timeout=REFRESH_S):
                if time.monotonic() - heard_s > SILENCE_S:
                    raise TimedOutError(
                        f"pip printed nothing for {SILENCE_S} s and was ended; run the same "
                        "command again: finished downloads are kept."
                    )
                yield ""
                continue
            heard_s = time.monotonic()
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def _project(requirement: str) -> str:
    """``name`` of ``name==1.0``, ``name-1.0-py3-none-any.whl`` or ``name (from ...)``."""
    return re.split(r"[=<>!~;\[ (]|-\d", requirement, maxsplit=1)[0]

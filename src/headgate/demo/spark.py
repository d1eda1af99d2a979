"""Controls the Spark job of the demo."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import HeadgateError
from headgate.demo.children import Child
from headgate.demo.findings import Finding, from_table

_PACKAGES: Final = ("pyspark", "pyspark_pulsar", "pyarrow", "pandas", "deltalake")
_NICE: Final = 0
"""Spark yields to the clients and brokers of the demo, which share the machine."""
ATTEMPTS: Final = 3
"""How often a step is tried. On a machine that is busy with other things Spark's Python workers
miss Spark's own limit of 10 s to start. The tables take each record once, however often it is
read."""
_STAGE_S: Final = 120.0
"""No stage takes so long, not even on a machine that is busy with other things."""
_JAVA_S: Final = 20.0

JAVA_MIN: Final = 17
"""The oldest Java that Spark runs on."""


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """The input and output of the job."""

    broker_urls: tuple[str, ...]
    web_urls: tuple[str, ...]
    out: str
    """Folder of the tables."""
    trigger_s: float = 5.0
    token_path: str = ""
    """File with the token for all brokers; empty: the job has no credentials."""

    def to_json(self) -> str:
        """For the command line of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SparkSpec:
        """The inverse of :meth:`to_json`."""
        document = json.loads(text)
        return cls(
            tuple(document["broker_urls"]), tuple(document["web_urls"]),
            document["out"], document["trigger_s"], document["token_path"],
        )  # fmt: skip


def missing_requirement() -> str:
    """A sentence about the first requirement of Spark that is missing; empty if none is."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return f"the package {missing[0]} is not installed"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return f"no Java in JAVA_HOME={home}" if home else "no Java was found"
    return java_problem(java)


def java_problem(java: str) -> str:
    """The problem of a ``java`` command; empty when it is new enough for Spark."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java} cannot be run: {error}"
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if found is None:
        return f"{java} does not say its version"
    if int(found[1]) < JAVA_MIN:
        return f"Java {JAVA_MIN} or newer is needed, {java} is {found[1]}"
    return ""


class SparkJob:
    """The job as it runs."""

    def __init__(self, spec: SparkSpec, folder: Path) -> None:
        """Start it; its log and what Spark keeps for itself go to ``folder``."""
        self._child = Child(
            "spark",
            ["headgate.demo.spark_job", spec.to_json()],
            folder,
            nice=_NICE,
            environment=_temporary_files_in(folder),
        )
        self.progress = "Spark starts"
        """The present step of the job, as a sentence."""

    def poll(self) -> str:
        """Read the job's new lines and return :attr:`progress`.

        Raises:
            ChildFailedError: it has ended.
        """
        while True:
            try:
                line = self._child.lines.get_nowait()
            except queue.Empty:
                return self.progress
            if line is None:
                raise self._child.failure("it has ended")
            self.progress = progress_text(json.loads(line))

    def judge(
        self, since_ns: int, until_ns: int, tick: Callable[[str, str], None]
    ) -> list[Finding]:
        """Read all telemetry and judge the range (ns since the epoch).

        ``tick`` receives each finished stage with a sentence about its result.

        Raises:
            ChildFailedError: it has ended, or took too long.
        """
        self.poll()
        self._child.send(json.dumps({"since_ns": since_ns, "until_ns": until_ns}))
        while True:
            facts = json.loads(self._child.next_line(_STAGE_S))
            self.progress = progress_text(facts)
            tick(facts["stage"], self.progress)
            if facts["stage"] == "judged":
                return [from_table(row) for row in facts["found"]]

    def end(self) -> None:
        """End it. Idempotent."""
        self._child.end()

    def __enter__(self) -> SparkJob:
        """Nothing more: it has started."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()


def _temporary_files_in(folder: Path) -> dict[str, str]:
    """Environment that keeps Spark's temporary files in ``folder``, however it ends."""
    options = f'{os.environ.get("JDK_JAVA_OPTIONS", "")} "-Djava.io.tmpdir={folder}"'.strip()
    return {
        "SPARK_LOCAL_DIRS": str(folder),
        "TMPDIR": str(folder),
        "JDK_JAVA_OPTIONS": options,
    }


def with_retries(work: Callable[[], None], failed: Callable[[Exception], None]) -> None:
    """Do ``work``, up to :data:`ATTEMPTS` times while it fails; ``failed`` receives each error.

    Raises:
        HeadgateError: at once; another attempt would not help.
        Exception: what the last attempt raised.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            work()
        except HeadgateError:
            raise
        except Exception as error:
            if not left:
                raise
            failed(error)
        else:
            return


def progress_text(facts: Mapping[str, Any]) -> str:
    """One of the job's lines as a sentence."""
    stage = facts["stage"]
    if stage == "again":
        return f"Spark tries again: {facts['reason']}"
    if stage == "started":
        return f"Spark started in {facts['seconds']:.1f} s and reads the telemetry topics"
    rows = f"{facts['rows']:,} samples"
    return {
        "batch": f"Spark: {rows} in the tables after batch {facts.get('number', 0)}",
        "read": f"bronze_samples: all {rows} that the brokers published",
        "intervals": "intervals: differences of the cumulative values, by minute",
        "judged": f"attribution: {len(facts.get('found', ()))} subscriptions judged",
    }[stage]

"""The demo's side of its Spark job: whether there can be one, and what it says."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from headgate.demo.children import Child
from headgate.demo.findings import Finding, from_table

_PACKAGES: Final = ("pyspark", "pyspark_pulsar", "pyarrow", "pandas", "deltalake")
_NICE: Final = 10
"""The clients and brokers of the demo share the machine with Spark and come first."""
_JUDGED_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """What the job reads and writes."""

    broker_urls: tuple[str, ...]
    web_urls: tuple[str, ...]
    out: str
    """Folder of the tables."""
    trigger_s: float = 5.0

    def to_json(self) -> str:
        """For the command line of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SparkSpec:
        """The inverse of :meth:`to_json`."""
        document = json.loads(text)
        return cls(
            tuple(document["broker_urls"]), tuple(document["web_urls"]),
            document["out"], document["trigger_s"],
        )  # fmt: skip


def what_is_missing() -> str:
    """What Spark would need and is not there, for people; empty when nothing is missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return f"the package {missing[0]!r}"
    home = os.environ.get("JAVA_HOME")
    if (home and Path(home, "bin", "java").exists()) or shutil.which("java"):
        return ""
    return "Java 17 or newer"


class SparkJob:
    """The job as it runs."""

    def __init__(self, spec: SparkSpec, folder: Path) -> None:
        """Start it; its log goes to ``folder``."""
        self._child = Child(
            "spark", ["headgate.demo.spark_job", spec.to_json()], folder, nice=_NICE
        )
        self.progress = "Spark starts"
        """What it does now, for people."""

    def look(self) -> str:
        """Take in what it said, and return :attr:`progress`.

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
            self._take(json.loads(line))

    def judge(self, since_ns: int, until_ns: int, tick: Callable[[str], None]) -> list[Finding]:
        """Have everything read and the range judged; ``tick`` is told of progress.

        Raises:
            ChildFailedError: it has ended, or took too long.
        """
        self.look()
        self._child.tell(json.dumps({"since_ns": since_ns, "until_ns": until_ns}))
        while True:
            facts = json.loads(self._child.next_line(_JUDGED_S))
            self._take(facts)
            if facts["stage"] == "judged":
                return [from_table(row) for row in facts["found"]]
            tick(self.progress)

    def _take(self, facts: dict[str, Any]) -> None:
        if facts["stage"] == "started":
            self.progress = f"Spark started in {facts['seconds']:.1f} s"
        else:
            batch = f"batch {facts['number'] + 1}, " if "number" in facts else ""
            self.progress = f"Spark: {batch}{facts['rows']:,} samples in the tables"

    def end(self) -> None:
        """End it. Idempotent."""
        self._child.end()

    def __enter__(self) -> SparkJob:
        """Nothing more: it has started."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.end()

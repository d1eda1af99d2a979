"""How Spark's Java starts in this lane: with its classes from an archive, and with one compiler.

To load and verify Spark's 12,000 classes takes 6 s of CPU in each Java process. The second run of
the lane in a checkout writes them to an archive in ``.cache``; all later processes map it. The
first run writes none, because that takes 20 s of CPU, and a checkout of CI is used once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from devkit.paths import CACHE
from pyspark import SparkContext

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""In a few minutes, full compilation costs more than it gains."""

SUBMIT_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Variable with options for the Java of every Spark that starts under it."""

UNVERIFIED: Final = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Spark's classes are as its package has them. To verify them takes 2 s of CPU in each process."""

_WRITES: Final = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
"""One of the lane's processes writes the archive."""

_END_LIMIT_S: Final = 300.0
"""To write the archive takes 20 s of CPU, which a busy machine stretches."""


def archive_path() -> Path:
    """Where the archive for this machine's Java and Spark is, or will be."""
    java = Path(shutil.which("java", path=_java_folders()) or "java").resolve()
    home = Path(pyspark.__file__).parent
    changed = [path.stat().st_mtime_ns for path in (java, home / "jars") if path.exists()]
    parts = (java, home, pyspark.__version__, changed)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return CACHE / "spark-classes" / f"{key}.jsa"


def submit_options() -> str:
    """Options for :data:`SUBMIT_OPTIONS`, with the archive if there is one.

    Java says nothing of an archive that does not fit, because its output belongs to the tests.
    """
    archive = archive_path()
    if archive.exists():
        classes = f"-XX:SharedArchiveFile={archive}"
    elif archive.parent.exists():
        classes = ""  # those of an archive have to be verified
    else:
        classes = UNVERIFIED
    return f"{JAVA_OPTIONS} -Xlog:disable {classes}"


@contextmanager
def archiving() -> Iterator[str]:
    """An option for the Java of a session that is stopped inside, and then the end of this Java.

    With the option, Java writes the archive at its end. The option is empty if there is one, and in
    the first run.
    """
    archive = archive_path()
    is_first = not archive.parent.exists()
    if is_first or archive.exists() or not _WRITES:
        yield ""
        end_java()
        archive.parent.mkdir(parents=True, exist_ok=True)
        return
    pending = archive.with_suffix(f".{os.getpid()}")
    try:
        yield f"-XX:ArchiveClassesAtExit={pending}"
        if end_java() and pending.exists():
            pending.replace(archive)
    finally:
        pending.unlink(missing_ok=True)  # it has 190 MB


def end_java() -> bool:
    """End the Java process of the session that was stopped; False if it had to be killed."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return False
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
        return False
    return True


def _java_folders() -> str | None:
    """Where Spark looks for Java; None: where every command is looked for."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin")) if home else None

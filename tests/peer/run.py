"""What ``./dev test-peer`` plays: clients of Java and Go, Pulsar's tools, Spark against a Pulsar,
tables in S3."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.peer.apache_pulsar import ApachePulsar
from tests.peer.full_disk import play_on_full_disk
from tests.peer.pulsar_tools import play_tools
from tests.peer.s3_server import PYTHON_VARIABLE
from tests.service.process import BrokerProcess

MAINS = tuple(
    f"headgate.peer.{name}"
    for name in (
        "Schemas",
        "Delays",
        "Producers",
        "Patterns",
        "NotSupported",
        "Acknowledgements",
        "BacklogQuotas",
    )
)
"""The Java programs, in the order in which they share a broker: the last one changes settings."""
FULL_DISK = "headgate.peer.FullDisk"
"""The one with a broker of its own, on a disk that becomes full."""
JAVA_LIMIT_S = 240
GO_LIMIT_S = 120
SPARK_LIMIT_S = 600
"""When what hangs is ended."""

SPARK_TESTS = (
    "tests/spark/test_pulsar_source_batch.py",
    "tests/spark/test_pulsar_source_stream.py",
    "tests/spark/test_pulsar_source_exact.py",
    "tests/spark/test_pulsar_source_keys.py",
    "tests/spark/test_pulsar_source_outages.py",
    "tests/spark/test_pulsar_source_starts.py",
    "tests/spark/test_pipeline_pulsar.py",
)
"""What the suite plays against Headgate, and this against Apache Pulsar: the same answers."""
S3_TESTS = ("tests/peer/s3_tables.py", "tests/peer/s3_jobs.py")


def play_java(java: str, classpath: str) -> int:
    """Start a broker, have each program play against it, and return the first bad status."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        broker.start()
        try:
            for main in MAINS:
                command = [java, "-cp", classpath, main, broker.service_url, broker.admin_url]
                status = subprocess.run(command, timeout=JAVA_LIMIT_S, check=False).returncode
                if status != 0:
                    return status
            return 0
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"A Java program timed out after {JAVA_LIMIT_S} s\n")
            return 1
        finally:
            broker.close()


def play_go(program: str) -> int:
    """Start a broker, have the program play against it, and return its status."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        broker.start()
        try:
            return subprocess.run(
                [program, broker.service_url], timeout=GO_LIMIT_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"The Go program timed out after {GO_LIMIT_S} s\n")
            return 1
        finally:
            broker.close()


def play_spark(java: str, jars: Path) -> int:
    """Start an Apache Pulsar, run the Spark tests against it, and return their status."""
    with tempfile.TemporaryDirectory() as folder, ApachePulsar(java, jars, Path(folder)) as peer:
        urls = {
            "HEADGATE_TEST_SERVICE_URL": peer.service_url,
            "HEADGATE_TEST_ADMIN_URL": peer.admin_url,
        }
        return _pytest(SPARK_TESTS, urls)


def play_s3(s3_python: str) -> int:
    """Run the tests that start an S3 server, with the Python that has one; return their status."""
    return _pytest(S3_TESTS, {PYTHON_VARIABLE: s3_python})


def _pytest(files: tuple[str, ...], variables: dict[str, str]) -> int:
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *files],
            env=os.environ | variables, timeout=SPARK_LIMIT_S, check=False,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"{', '.join(files)}: timed out after {SPARK_LIMIT_S} s\n")
        return 1


def run(java: str, classpath: str, jars: str, s3_python: str, go_program: str) -> int:
    """All of them; 0 if all were right."""
    return (
        play_s3(s3_python)
        or play_java(java, classpath)
        or play_on_full_disk([java, "-cp", classpath, FULL_DISK], JAVA_LIMIT_S)
        or play_go(go_program)
        or play_on_full_disk([go_program], GO_LIMIT_S)
        or play_tools(java, Path(jars))
        or play_spark(java, Path(jars))
    )


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))

"""Plays one part of ``./dev test-peer``: ``python -m tests.peer.run PART WORD...``.

The words name the programs and folders that :mod:`devkit.peer` built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.peer.agent_truth.judge import judge
from tests.peer.agent_truth.record import RECORD_S, record_round
from tests.peer.agent_truth.situations import ROUNDS
from tests.peer.apache_pulsar import ApachePulsar
from tests.peer.full_disk import play_on_full_disk
from tests.peer.pulsar_tools import play_tools
from tests.peer.pulsar_verbs import play_verbs
from tests.peer.s3_server import PYTHON_VARIABLE
from tests.peer.secured_broker import PASSWORD, USER, Secured, secured_broker
from tests.service.process import BrokerProcess
from tests.spark.labelled import CLUSTERS
from tests.unit.security.jwks_examples import AUDIENCE

LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
FULL_DISK = "full-disk"
"""The tag of the test, and the word for the program, with a broker on a disk that becomes full."""
SECURED = "secured"
"""The tag and the folder of tests with a broker that has TLS and authentication."""
PLAIN = (f"--exclude-tag={FULL_DISK}", f"--exclude-tag={SECURED}")
NODE_TESTS = Path(__file__).with_name("node")
CLIENT_LIMIT_S = 600
SPARK_LIMIT_S = 1_500
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


def play_java(java: str, classes: str, libraries: str) -> int:
    """The JUnit tests of the Java client, each class a subject."""

    def secured(found: Secured) -> list[str]:
        broker = found.broker
        urls = (broker.service_url_tls, broker.admin_url_tls)
        secrets = [f"-Dheadgate.{name}={value}" for name, value in _secrets(found).items()]
        return _junit([java, *secrets], urls, classes, libraries, f"--include-tag={SECURED}")

    def on_full_disk(broker: BrokerProcess) -> list[str]:
        return _junit([java], _urls(broker), classes, libraries, f"--include-tag={FULL_DISK}")

    return (
        _with_broker(lambda broker: _junit([java], _urls(broker), classes, libraries, *PLAIN))
        or _with_secured(secured)
        or play_on_full_disk(on_full_disk, CLIENT_LIMIT_S)
    )


def play_java_5(java: str, classes: str, own_classes: str, libraries: str) -> int:
    """The same tests with the client of Pulsar 5, and those of its API for scalable topics."""
    both = f"{classes}{os.pathsep}{own_classes}"
    return _with_broker(lambda broker: _junit([java], _urls(broker), both, libraries, *PLAIN))


def _urls(broker: BrokerProcess) -> tuple[str, str]:
    return broker.service_url, broker.admin_url


def _junit(
    java: Sequence[str], urls: tuple[str, str], classes: str, libraries: str, *tags: str
) -> list[str]:
    return [
        *java, f"-Dheadgate.serviceUrl={urls[0]}", f"-Dheadgate.adminUrl={urls[1]}",
        "-cp", f"{classes}{os.pathsep}{libraries}/*", LAUNCHER, "execute",
        f"--scan-class-path={classes}", *tags, "--details=tree", "--disable-banner",
        "--disable-ansi-colors", "--fail-if-no-tests",
    ]  # fmt: skip


def _secrets(found: Secured) -> dict[str, str]:
    """What the tests of secured connections need, by name."""
    return {
        "authority": str(found.authority),
        "token": str(found.token),
        "certificate": str(found.certificate),
        "key": str(found.key),
        "user": USER,
        "password": PASSWORD,
        "issuer": found.issuer.url,
        "audience": AUDIENCE,
        "credentials": str(found.credentials),
    }


def play_node(modules: str) -> int:
    """The tests of Node.js, then those that need a broker with TLS and authentication."""

    def command(folder: Path, variables: dict[str, str]) -> list[str]:
        given = {"NODE_PATH": modules, **variables}
        settings = [f"{name}={value}" for name, value in given.items()]
        tests = map(str, sorted(folder.glob("*.test.js")))
        return ["env", *settings, "node", "--test", "--test-reporter=spec", *tests]

    def plain(broker: BrokerProcess) -> list[str]:
        urls = {
            "HEADGATE_SERVICE_URL": broker.service_url,
            "HEADGATE_ADMIN_URL": broker.admin_url,
        }
        return command(NODE_TESTS, urls)

    def secured(found: Secured) -> list[str]:
        secrets = {f"HEADGATE_{name.upper()}": text for name, text in _secrets(found).items()}
        url = {"HEADGATE_SERVICE_URL": found.broker.service_url_tls}
        return command(NODE_TESTS / SECURED, secrets | url)

    return _with_broker(plain) or _with_secured(secured)


def play_go(program: str) -> int:
    """The program of the Go client."""

    def command(broker: BrokerProcess) -> list[str]:
        return [program, broker.service_url, broker.admin_url]

    return _with_broker(command) or play_on_full_disk(
        lambda broker: [*command(broker), FULL_DISK], CLIENT_LIMIT_S
    )


def _with_broker(command: Callable[[BrokerProcess], Sequence[str]]) -> int:
    """Start a broker, run a program against it, and return its status."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder))
        broker.start()
        try:
            return _status(command(broker))
        finally:
            broker.close()


def _with_secured(command: Callable[[Secured], Sequence[str]]) -> int:
    """The same with a broker that has TLS and authentication."""
    with tempfile.TemporaryDirectory() as folder, secured_broker(Path(folder)) as found:
        return _status(command(found))


def _status(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, timeout=CLIENT_LIMIT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"{command[0]} timed out after {CLIENT_LIMIT_S} s\n")
        return 1


def play_spark(java: str, jars: str) -> int:
    """Start an Apache Pulsar, run the Spark tests against it, and return their status."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ApachePulsar(java, Path(jars), Path(folder)) as peer,
    ):
        urls = {
            "HEADGATE_TEST_SERVICE_URL": peer.service_url,
            "HEADGATE_TEST_ADMIN_URL": peer.admin_url,
        }
        return _pytest(SPARK_TESTS, urls)


def play_agent(java: str, jars: str) -> int:
    """Play situations with a known cause on an Apache Pulsar, and count how often the agent is
    right."""
    with tempfile.TemporaryDirectory() as folder:
        for factors in ROUNDS:
            for cluster in CLUSTERS:
                record_round(java, Path(jars), Path(folder), cluster, factors, RECORD_S)
        return judge(Path(folder), show=True)


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


PARTS: dict[str, Callable[..., int]] = {
    "java": play_java,
    "java-5": play_java_5,
    "node": play_node,
    "go": play_go,
    "tools": lambda java, jars: play_verbs(java, Path(jars)) or play_tools(java, Path(jars)),
    "s3": play_s3,
    "spark": play_spark,
    "agent": play_agent,
}

if __name__ == "__main__":
    sys.exit(PARTS[sys.argv[1]](*sys.argv[2:]))

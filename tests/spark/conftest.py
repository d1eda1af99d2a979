"""What the Spark lane shares: one session, one broker, and topics to fill.

The broker is a Headgate started for the session. With ``HEADGATE_TEST_SERVICE_URL`` and
``HEADGATE_TEST_ADMIN_URL`` set, the same tests run against that cluster instead, for example an
Apache Pulsar; they use topics with names of their own in ``public/default``.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest
import urllib3
from pyspark.sql import SparkSession

SOURCE_DIR = Path(__file__).resolve().parents[2] / "src"
BROKER_START_S = 30
SERVICE_URL_VARIABLE = "HEADGATE_TEST_SERVICE_URL"
ADMIN_URL_VARIABLE = "HEADGATE_TEST_ADMIN_URL"
_URLS = {
    "service": re.compile(r"pulsar://[\w.\[\]:-]+:\d+"),
    "admin": re.compile(r"http://[\w.\[\]:-]+:\d+"),
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The lane's only session: two cores, UTC, and a JVM tuned for a quick start."""
    worker_path = os.pathsep.join(
        part for part in (str(SOURCE_DIR), os.environ.get("PYTHONPATH")) if part
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="headgate-spark-") as scratch,
    ):
        # Workers are started from PATH's python3 unless told otherwise.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", worker_path)
        session = (
            SparkSession.builder.master("local[2]")
            .appName("headgate-tests")
            .config("spark.driver.memory", "1g")
            .config(
                "spark.driver.extraJavaOptions",
                "-XX:TieredStopAtLevel=1 -Xshare:auto -XX:+UseSerialGC",
            )
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(Path(scratch) / "warehouse"))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@dataclass(frozen=True)
class Broker:
    """A running cluster's two addresses."""

    service_url: str
    admin_url: str


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Headgate for the session, or the cluster that the two variables name."""
    service_url = os.environ.get(SERVICE_URL_VARIABLE)
    admin_url = os.environ.get(ADMIN_URL_VARIABLE)
    if service_url and admin_url:
        yield Broker(service_url, admin_url)
        return
    process = _start_headgate(tmp_path_factory.mktemp("broker"))
    try:
        yield _printed_urls(process)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _start_headgate(data_dir: Path) -> subprocess.Popen[bytes]:
    """A standalone broker on free ports; its output is one stream."""
    command = [
        *(sys.executable, "-m", "headgate.cli", "standalone"),
        *("--broker-port", "0", "--web-port", "0", "--data-dir", str(data_dir)),
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": str(SOURCE_DIR), "PYTHONUNBUFFERED": "1"},
    )


def _printed_urls(process: subprocess.Popen[bytes]) -> Broker:
    """The addresses, once both have been printed; fails with the output if they are not."""
    assert process.stdout is not None
    deadline = time.monotonic() + BROKER_START_S
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left_s := deadline - time.monotonic()) > 0:
            if not selector.select(left_s):
                break
            piece = os.read(process.stdout.fileno(), 65_536)
            output += piece
            found = {name: each.search(output.decode()) for name, each in _URLS.items()}
            if found["service"] and found["admin"] and output.endswith(b"\n"):
                return Broker(found["service"][0], found["admin"][0])
            if not piece:
                break
    process.kill()
    process.wait()
    pytest.fail(f"the broker printed no addresses within {BROKER_START_S} s: {output.decode()}")


class Cluster:
    """Topics of the broker, filled by an ordinary client from the test's own process."""

    def __init__(self, broker: Broker, client: pulsar.Client) -> None:
        self.broker = broker
        self._client = client
        self._http = urllib3.PoolManager(timeout=30)

    def new_topic(self, partitions: int = 0) -> str:
        """The full name of a topic that nobody used before; with partitions it is created."""
        topic = f"persistent://public/default/spark-{uuid.uuid4().hex[:12]}"
        if partitions:
            self.admin("PUT", topic, "/partitions", partitions)
        return topic

    def admin(self, method: str, topic: str, question: str, body: Any = None) -> Any:
        """One admin request about a topic; the JSON answer, or None."""
        path = topic.replace("://", "/")
        response = self._http.request(
            method, f"{self.broker.admin_url}/admin/v2/{path}{question}", json=body
        )
        assert response.status < 300, (response.status, response.data)
        return response.json() if response.data else None

    def publish(self, topic: str, values: Sequence[bytes], batch: int = 1, **message: Any) -> None:
        """Publish ``values`` in order, in entries of exactly ``batch`` messages (or the rest)."""
        producer = self._client.create_producer(
            topic,
            batching_enabled=batch > 1,
            batching_max_messages=max(batch, 2),
            batching_max_allowed_size_in_bytes=1 << 20,
            batching_max_publish_delay_ms=60_000,
            max_pending_messages=100_000,
        )
        for value in values:
            producer.send_async(value, None, **message)
        producer.flush()
        producer.close()

    def ids(self, topic: str) -> dict[bytes, pulsar.MessageId]:
        """The message id of each value of a topic without partitions."""
        reader = self._client.create_reader(topic, pulsar.MessageId.earliest)
        found: dict[bytes, pulsar.MessageId] = {}
        while reader.has_message_available():
            message = reader.read_next(timeout_millis=10_000)
            found[message.data()] = message.message_id()
        reader.close()
        return found

    def options(self, topic: str, **more: str) -> Mapping[str, str]:
        """The source's required options for a topic, and more."""
        urls = {"service.url": self.broker.service_url, "admin.url": self.broker.admin_url}
        return urls | {"topic": topic} | more


@pytest.fixture(scope="session")
def cluster(broker: Broker) -> Iterator[Cluster]:
    """Topics to fill, through one client for the session."""
    client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    yield Cluster(broker, client)
    client.close()


ReadValues = Callable[..., list[bytes]]


@pytest.fixture
def read_values(spark: SparkSession, cluster: Cluster) -> ReadValues:
    """Read a topic in a batch and return its values, by partition and in order."""

    def read(topic: str, **options: str) -> list[bytes]:
        frame = spark.read.format("pulsar").options(**cluster.options(topic, **options)).load()
        return [bytes(row.value) for row in frame.select("value").collect()]

    return read

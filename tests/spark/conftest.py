"""Fixtures of the Spark lane: one session, one broker, and topics to fill.

The broker is a Headgate started for the session. With ``HEADGATE_TEST_SERVICE_URL`` and
``HEADGATE_TEST_ADMIN_URL`` set, the same tests run against that cluster instead, for example an
Apache Pulsar; they use topics with names of their own in ``public/default``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest
import urllib3
from pyspark.sql import SparkSession

from headgate.pipeline import session
from headgate.pipeline.session import WORKER_DAEMON, WORKER_PATH
from headgate.pipeline.spark_options import shuffle_partitions
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words
from tests.spark.java import SUBMIT_OPTIONS, archiving, submit_options
from tests.spark.java_names import remembered_classes

KILLS = 2
ROOT = Path(__file__).resolve().parents[2]
SOURCE_DIR = ROOT / "src"
SERVICE_URL_VARIABLE = "HEADGATE_TEST_SERVICE_URL"
ADMIN_URL_VARIABLE = "HEADGATE_TEST_ADMIN_URL"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the lane; given where one of its files is named."""
    parser.addoption("--kills", type=int, default=KILLS, help="kill a stream so many times: a soak")


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """The lane's session, and commands that tests start, have a Java that starts quickly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SUBMIT_OPTIONS, submit_options())
        yield


@pytest.fixture(scope="session")
def spark(quick_java: None) -> Iterator[SparkSession]:
    """The lane's only session: two cores, UTC, and a JVM tuned for a quick start."""
    del quick_java
    worker_path = os.pathsep.join(
        part
        for part in (WORKER_PATH, str(SOURCE_DIR), str(ROOT), os.environ.get("PYTHONPATH"))
        if part
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory(prefix="headgate-spark-") as scratch,
        archiving() as archive_option,
    ):
        # Workers are started from PATH's python3 unless told otherwise.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", worker_path)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        started = (
            SparkSession.builder.master("local[2]")
            .appName("headgate-tests")
            .config("spark.driver.memory", "1g")
            # A large young generation: most of the garbage is plans, which live for one query.
            .config("spark.driver.extraJavaOptions", f"-Xms1g -Xmn500m {archive_option}")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            # That of the product for two cores: a small refresh is one task. See many_tasks.
            .config("spark.sql.shuffle.partitions", str(shuffle_partitions(2, 0)))
            # To compile a plan costs more than to interpret it over a few thousand rows.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            # The texts of plans for Spark's page, which is off, in their shortest form.
            .config("spark.sql.ui.explainMode", "simple")
            # For each call that builds a plan Python would tell Java where it stands in the source.
            .config("spark.python.sql.dataFrameDebugging.enabled", "false")
            .config(map=WORKER_DAEMON)
            .config("spark.sql.warehouse.dir", str(Path(scratch) / "warehouse"))
            .getOrCreate()
        )
        started.sparkContext.setLogLevel("ERROR")
        with remembered_classes():
            yield started
        started.stop()


@contextmanager
def many_tasks() -> Iterator[None]:
    """In the context, tables are computed with shuffles, as where there are many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "ONE_TASK_ROWS_MAX", -1)
        yield


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
    if service_url or admin_url:
        if not (service_url and admin_url):
            pytest.fail(f"{SERVICE_URL_VARIABLE} and {ADMIN_URL_VARIABLE} go together; set both")
        yield Broker(service_url, admin_url)
        return
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), words(**RETAINED)).start()
    try:
        yield Broker(process.service_url, process.admin_url)
    finally:
        process.close()


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

    def publish(
        self,
        topic: str,
        values: Sequence[bytes],
        batch: int = 1,
        *,
        chunking_enabled: bool = False,
        public_key: Path | None = None,
        **message: Any,
    ) -> None:
        """Publish ``values`` in order, in entries of exactly ``batch`` messages (or the rest).

        ``public_key``: a PEM file; the messages are encrypted for it.
        """
        sealed = (
            {}
            if public_key is None
            else {
                "encryption_key": "team",
                "crypto_key_reader": pulsar.CryptoKeyReader(str(public_key), ""),
            }
        )
        producer = self._client.create_producer(
            topic,
            **sealed,
            batching_enabled=batch > 1,
            chunking_enabled=chunking_enabled,
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

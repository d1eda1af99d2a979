"""Both data sources in a session of Spark Connect: ``format("headgate_tables")``, ``("pulsar")``.

The server is one of this machine. Its Python workers have the packages; a client needs them, too,
to register the tables.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pulsar
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.pipeline.source.data_source import register
from headgate.pipeline.store.scan import TableScan
from tests.service.process import BrokerProcess

TOPIC = "persistent://public/default/connect"


def check_tables(spark: SparkSession, root: str) -> None:
    """A table is read whole, by a filter, in SQL, and as a stream; a fault is one sentence."""
    register(spark)
    register(spark)
    read = spark.read.format("headgate_tables").option("path", root)
    minutes = read.option("table", "intervals").load()
    assert minutes.count() == TableScan(root, "intervals").row_count > 0
    pushed = read.option("table", "intervals").option("pushFilters", "true").load()
    assert pushed.where("kind = 'topic'").count() == minutes.where("kind = 'topic'").count() > 0
    read.option("table", "episodes").load().createOrReplaceTempView("episodes")
    assert spark.sql("SELECT count(*) AS n FROM episodes WHERE is_open").first()["n"] > 0
    stream = spark.readStream.format("headgate_tables").options(
        path=root, table="attribution", readChangeFeed="true"
    )
    query = (
        stream.load()
        .writeStream.format("memory")
        .queryName("changes")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert spark.table("changes").count() > 0
    with pytest.raises(PySparkException, match="option table='none' is no table: bronze_samples,"):
        read.option("table", "none").load().count()


def check_pulsar(spark: SparkSession, broker: BrokerProcess) -> None:
    """Messages of a topic are read; Spark's server finds the source by its name."""
    client = pulsar.Client(broker.service_url)
    producer = client.create_producer(TOPIC)
    for number in range(10):
        producer.send(f"m{number}".encode())
    client.close()
    messages = (
        spark.read.format("pulsar")
        .option("service.url", broker.service_url)
        .option("admin.url", broker.admin_url)
        .option("topic", TOPIC)
        .load()
    )
    found = sorted(bytes(row["value"]).decode() for row in messages.select("value").collect())
    assert found == [f"m{number}" for number in range(10)]


def main(root: str) -> int:
    """Start a server and play both."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert type(spark).__module__ == "pyspark.sql.connect.session"
    try:
        check_tables(spark, root)
        with tempfile.TemporaryDirectory() as folder:
            broker = BrokerProcess(Path(folder))
            broker.start()
            try:
                check_pulsar(spark, broker)
            finally:
                broker.close()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

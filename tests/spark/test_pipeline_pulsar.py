"""The pipeline's way from a real topic: published records, ``format("pulsar")``, judgements."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, play

if TYPE_CHECKING:
    from tests.spark.conftest import Cluster


@pytest.mark.usefixtures("spark")
def test_attribute_reads_the_topic_once_and_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, play(50))
    source = SourceOptions(
        str(tmp_path), (cluster.broker.service_url,), (cluster.broker.admin_url,), topic
    )
    seconds = []
    for more in ([], Broker(start_ns=T0 + 50 * S, boot="boot-2").window(10)):
        if more:
            cluster.publish(topic, more)
        out, err = io.StringIO(), io.StringIO()
        judged = jobs.run_attribute(AttributeOptions(source, format="json"), out, err)
        assert judged == len(SITUATIONS)
        rows = json.loads(out.getvalue())
        wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
        assert {(row["topic"], row["subscription"]): row["verdict"] for row in rows} == wanted
        seconds.append({row["seconds"] for row in rows})
        assert f"{50 + len(more)} batches" in err.getvalue()
    assert seconds == [{50.0}, {60.0}]

"""The commands over one folder: ``run`` fills it, the others read it."""

from __future__ import annotations

import io
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.store.table_leases import fill_leases
from tests.spark.telemetry_topic import Topic
from tests.unit.pipeline.play import SITUATIONS, Broker, play


def ran(root: Path, topic: Topic) -> str:
    err = io.StringIO()
    jobs.run_once(SourceOptions(str(root)), err, messages=topic.stream)
    return err.getvalue()


def pipeline(*words: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", *words])


@pytest.mark.usefixtures("spark")
def test_run_then_show_report_and_attribute(tmp_path: Path) -> None:
    root, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    topic.publish([*play(100), b"not a record"])
    said = ran(root, topic)
    assert "100 messages" in said
    assert "1 message in quarantine" in said

    out = ("--out", str(root))
    result = pipeline(
        "show", "attribution", *out, "--format", "json", "--where", "verdict=CONSUMER"
    )
    rows = json.loads(result.stdout)
    assert {row["topic"].rsplit("/", 1)[1] for row in rows} == {"slow", "busy"}
    assert pipeline("show", "bronze_quarantine", *out, "--format", "csv").stdout.count("\n") == 2

    page = tmp_path / "page.html"
    assert pipeline("report", *out, "--html", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    read = [s for s in SITUATIONS if s.consumers]
    growing = [s for s in read if s.published > s.acked]
    assert f"The backlogs of {len(growing)} of {len(read)} subscriptions grew" in text
    assert "1 more subscription, public/default/alone / " in text
    assert "In quarantine: 1 message." in text

    # Judging what is there waits for no writer.
    answer = io.StringIO()
    asked = AttributeOptions(SourceOptions(str(root)), format="json", reads=False)
    with fill_leases(str(root)):
        judged = jobs.run_attribute(asked, answer, io.StringIO())
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    assert {(row["topic"], row["subscription"]): row["verdict"] for row in judged} == wanted
    assert len(json.loads(answer.getvalue())) == len(judged)


@pytest.mark.usefixtures("spark")
def test_a_stream_serves_prometheus_metrics(tmp_path: Path) -> None:
    root, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    topic.publish(play(20))
    ran(root, topic)
    topic.publish(Broker(start_ns=1_763_719_220 * 10**9, boot="boot-2").window(10))
    err = io.StringIO()
    answers: list[str] = []

    def done() -> bool:
        if "batch 1:" not in err.getvalue():
            return False
        (url,) = re.findall(r"Metrics at (\S+)", err.getvalue())
        with urllib.request.urlopen(url, timeout=10) as answer:
            answers.append(answer.read().decode())
        return True

    options = StreamOptions(SourceOptions(str(root)), 0.1, 0)
    jobs.run_stream(options, err, messages=topic.stream, should_stop=done)
    (said,) = answers
    assert "headgate_pipeline_batches_total 1.0" in said
    assert "headgate_pipeline_input_messages_total 1.0" in said
    assert re.search(r'table_rows\{table="attribution"\} \d', said)
    assert re.search(r"batch 1: 1 message in \d+\.\d s", err.getvalue())
    assert err.getvalue().endswith("Stopped; the next run continues from here.\n")

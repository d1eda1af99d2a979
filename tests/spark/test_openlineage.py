"""Events of jobs, received by a server of this machine, or by none."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.lineage.event_sender import CLOSE_S
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.tables.intervals import INTERVALS
from tests.spark.telemetry_topic import Topic, computing
from tests.unit.pipeline.play import play


class Receiver:
    """Takes events as a lineage server does."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.requests: set[tuple[str, str | None]] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.events.append(json.loads(body))
                receiver.requests.add((self.path, self.headers["Authorization"]))
                self.send_response(201)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def names(self) -> list[str]:
        """States and jobs."""
        return [
            f"{each['eventType']} {each['job']['name'].removeprefix('headgate.pipeline.')}"
            for each in self.events
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_a_run_sends_its_tasks_schemas_and_checks(
    spark: SparkSession, receiver: Receiver, tmp_path: Path
) -> None:
    topic = Topic(tmp_path / "topic")
    topic.publish(play(60, 10))
    source = SourceOptions(str(tmp_path / "out"), lineage=LineageOptions(receiver.url, "key"))
    with computing(INTERVALS):
        assert jobs.run_once(source, io.StringIO(), messages=topic.stream) == 0
    assert receiver.names() == [
        "START run", "START run.bronze", "COMPLETE run.bronze", "START run.intervals",
        "COMPLETE run.intervals", "START run.quality", "COMPLETE run.quality", "COMPLETE run",
    ]  # fmt: skip
    assert receiver.requests == {("/api/v1/lineage", "Bearer key")}
    inputs = receiver.events[-2]["inputs"]
    assert [each["name"].rsplit("/", 1)[1] for each in inputs] == ["bronze_samples", "intervals"]
    checks = inputs[1]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {each["success"] for each in checks} == {True}
    fields = receiver.events[4]["outputs"][0]["facets"]["schema"]["fields"]
    assert [field["name"] for field in fields] == [*INTERVALS.column_names()]


def test_a_job_that_is_refused_says_so(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    source = SourceOptions(str(tmp_path), lineage=LineageOptions(receiver.url))
    with pytest.raises(InputError, match=r"holiday\.jpg"):
        jobs.run_once(source, io.StringIO(), messages=lambda _: pytest.fail("no message is read"))
    assert receiver.names() == ["START run", "FAIL run"]
    assert "holiday.jpg" in receiver.events[1]["run"]["facets"]["errorMessage"]["message"]


@pytest.mark.parametrize("listens", [False, True])
def test_a_url_that_does_not_answer_holds_no_job(tmp_path: Path, listens: bool) -> None:
    """Nobody listens there, or somebody who never answers."""
    (tmp_path / "holiday.jpg").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        if not listens:
            server.close()
        said, begin_s = io.StringIO(), time.monotonic()
        source = SourceOptions(str(tmp_path), lineage=LineageOptions(url))
        with pytest.raises(InputError, match=r"holiday\.jpg"):
            jobs.run_once(source, said, messages=lambda _: pytest.fail("no message is read"))
        assert time.monotonic() - begin_s < CLOSE_S + 5
    assert said.getvalue().count("OpenLineage: ") == 1
    assert f"{url} does not take events" in said.getvalue()

"""Events have schemas and checks from the declarations, in the library's form."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from openlineage.client.serde import Serde

from headgate.pipeline.kernels.quality import CheckOutcome
from headgate.pipeline.lineage.datasets import DataSet, table_set
from headgate.pipeline.lineage.events import State, http_emit, new_run, run_event
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS

TOPIC = DataSet("pulsar://b:6650", "persistent://headgate/telemetry/samples")
RUN = new_run("file:///t", "headgate.pipeline.run")


def as_json(*args: Any, **more: Any) -> dict[str, Any]:
    event = run_event(*args, wall_ns=lambda: 1_763_719_200_123_456_789, **more)
    found: dict[str, Any] = Serde.to_dict(event)
    return found


def test_a_run_with_its_schema() -> None:
    found = as_json(RUN, State.START, [TOPIC], [table_set("/t", INTERVALS)])
    assert (found["eventType"], found["eventTime"]) == ("START", "2025-11-21T10:00:00.123456+00:00")
    assert found["producer"] == "urn:headgate:pipeline"
    assert found["run"] == {"runId": RUN.run_id, "facets": {}}
    assert found["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert found["job"]["facets"]["jobType"]["jobType"] == "COMMAND"
    (topic,) = found["inputs"]
    assert (topic["namespace"], topic["name"]) == (TOPIC.namespace, TOPIC.name)
    assert topic["facets"] == {}
    fields = found["outputs"][0]["facets"]["schema"]["fields"]
    assert [field["name"] for field in fields] == [*INTERVALS.column_names()]
    by_name = {field["name"]: field for field in fields}
    assert by_name["from_ns"]["type"] == "LONG"
    assert by_name["from_ns"]["description"] == (
        "Start of the minute's account. [ns since the epoch]"
    )


def test_a_task_names_its_parent_and_its_error() -> None:
    task = new_run("file:///t", "headgate.pipeline.run.intervals", parent=RUN)
    found = as_json(task, State.FAIL, error="the disk is full")
    facets = found["run"]["facets"]
    assert facets["parent"]["run"]["runId"] == RUN.run_id
    assert facets["parent"]["job"]["name"] == "headgate.pipeline.run"
    assert facets["errorMessage"]["message"] == "the disk is full"
    assert found["job"]["facets"]["jobType"]["jobType"] == "TASK"
    assert RUN.run_id < task.run_id


def test_a_stream() -> None:
    run = new_run("file:///t", "headgate.pipeline.stream", is_streaming=True)
    found = as_json(run, State.RUNNING)
    assert found["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def test_checks_of_an_input() -> None:
    outcomes = {
        ("attribution", "values_in_range"): CheckOutcome(10, 3, "confidence"),
        ("attribution", "required_columns"): CheckOutcome(10, 1, "to_ns, verdict"),
        ("attribution", "unique_key"): CheckOutcome(10),
    }
    sets = [table_set("/t", ATTRIBUTION), table_set("/t", INTERVALS), TOPIC]
    found = as_json(RUN, State.COMPLETE, sets, outcomes=outcomes)
    assertions = found["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    by_name = {each["assertion"]: each for each in assertions}
    assert {name: each["success"] for name, each in by_name.items()} == {
        "required_columns": False, "values_in_range": False, "unique_key": True,
    }  # fmt: skip
    assert by_name["values_in_range"]["column"] == "confidence"
    assert by_name["values_in_range"]["actual"] == "3"
    assert "column" not in by_name["required_columns"]
    assert by_name["unique_key"]["description"].startswith("no two rows have the same cluster")
    assert [each["inputFacets"] for each in found["inputs"][1:]] == [{}, {}]


class Collector(BaseHTTPRequestHandler):
    """Takes events; the path says how it answers, without an end."""

    asked: list[tuple[str, str | None]]
    written_bytes: int

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        assert json.loads(self.rfile.read(int(self.headers["Content-Length"])))["producer"]
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Location", "/elsewhere/200")
        self.end_headers()
        with suppress(OSError):
            while type(self).written_bytes < 1 << 30:
                self.wfile.write(bytes(1 << 16))
                type(self).written_bytes += 1 << 16

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.asked, Collector.written_bytes = [], 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize("key", [None, "key"])
def test_a_token_is_a_bearer_token_and_an_answer_is_its_status(
    collector: str, key: str | None
) -> None:
    event = run_event(new_run("files", "job"), State.START)
    http_emit(LineageOptions(f"{collector}/x/200", key))(event)
    for status, why in ((302, "redirects are not followed"), (307, "307"), (500, "500")):
        with pytest.raises(OSError, match=why):
            http_emit(LineageOptions(f"{collector}/x/{status}", key))(event)
    sent = None if key is None else "Bearer key"
    assert Collector.asked == [(f"/x/{status}", sent) for status in (200, 302, 307, 500)]
    # What the kernel holds between the two is all that was written.
    assert Collector.written_bytes < 100_000_000


def repeating(head: bytes) -> Iterator[str]:
    """A server whose first answer is ``head`` with the request's key."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += peer.recv(65_536)
                key = asked.partition(b"Bearer ")[2].partition(b"\r\n")[0]
                peer.sendall(head.replace(b"KEY", key) + b"\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        thread.join(10)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 500 no: Bearer KEY",
        b"HTTP/1.1 Bearer KEY",
        b"Bearer KEY",
        b"HTTP/1.1 500 no\r\nAuthorization Bearer KEY",
    ],
)
def test_a_key_that_a_server_repeats_is_in_no_error_and_no_line(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("urllib3").setLevel(logging.NOTSET)
    event = run_event(new_run("files", "job"), State.START)
    for url in repeating(head):
        with pytest.raises(OSError, match=r"500|\*\*\*") as caught:
            http_emit(LineageOptions(url, "S3cret"))(event)
    assert "S3cret" not in str(caught.value) + caplog.text

"""A job says when it and each of its tasks start and end, and how."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.kernels.quality import CheckOutcome
from headgate.pipeline.lineage.datasets import DataSet
from headgate.pipeline.lineage.job_lineage import STREAM_PERIOD_S, JobLineage, job_lineage
from headgate.pipeline.lineage_options import NO_LINEAGE, LineageOptions
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.episodes import EPISODES

TOPIC = DataSet("pulsar://b:6650", "persistent://headgate/telemetry/samples")
OUTCOMES = {("attribution", "unique_key"): CheckOutcome(10, 1)}


class Events:
    """Keeps events as lines of text, and a clock."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.events: list[Any] = []
        self.is_closed = False
        self.now_s = 0.0

    def send(self, event: Any) -> None:
        """Keep it."""
        self.events.append(event)
        both = (event.inputs, event.outputs)
        names = [[each.name.rsplit("/", 1)[1] for each in sets] for sets in both]
        job = event.job.name.removeprefix("headgate.pipeline.")
        self.lines.append(
            f"{event.eventType.value} {job} {','.join(names[0])} > {','.join(names[1])}"
        )

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


def lineage(events: Events, command: str = "run", **more: Any) -> JobLineage:
    return JobLineage(
        "/tables", command, [TOPIC], [BRONZE_SAMPLES, ATTRIBUTION], sender=events,
        monotonic=lambda: events.now_s, **more,
    )  # fmt: skip


def test_a_run_and_its_tasks() -> None:
    events = Events()
    found = lineage(events)
    with found.running():
        with found.reading(BRONZE_SAMPLES, BRONZE_EVENTS):
            pass
        with found.filling(EPISODES):
            pass
        found.checked(OUTCOMES)
    assert events.lines == [
        "START run samples > bronze_samples,attribution",
        "START run.bronze samples > bronze_samples,bronze_events",
        "COMPLETE run.bronze samples > bronze_samples,bronze_events",
        "START run.episodes attribution,intervals > episodes",
        "COMPLETE run.episodes attribution,intervals > episodes",
        "START run.quality attribution > quality",
        "COMPLETE run.quality attribution > quality",
        "COMPLETE run samples > bronze_samples,attribution",
    ]
    assert events.is_closed
    assert "dataQualityAssertions" in events.events[-2].inputs[0].inputFacets
    assert len({event.run.runId for event in events.events}) == 4


@pytest.mark.parametrize(
    ("error", "state"), [(OSError("full"), "FAIL"), (KeyboardInterrupt(), "ABORT")]
)
def test_a_run_that_fails_or_is_stopped(error: BaseException, state: str) -> None:
    events = Events()
    found = lineage(events)
    with pytest.raises(type(error)), found.running(), found.filling(ATTRIBUTION):
        raise error
    assert [line.split(" >")[0] for line in events.lines[2:]] == [
        f"{state} run.attribution intervals,demonstrated_rates", f"{state} run samples",
    ]  # fmt: skip
    assert events.is_closed
    facets = events.events[-1].run.facets
    assert ("errorMessage" in facets) == (state == "FAIL")


def test_a_stream_reports_its_tables_from_time_to_time() -> None:
    events = Events()
    found = lineage(events, "stream", is_streaming=True)
    found.refreshed([ATTRIBUTION], OUTCOMES)
    states = [line.split(" ")[:2] for line in events.lines]
    assert states == [
        ["RUNNING", "stream"], ["START", "stream.attribution"], ["COMPLETE", "stream.attribution"],
        ["START", "stream.quality"], ["COMPLETE", "stream.quality"],
    ]  # fmt: skip
    events.now_s = STREAM_PERIOD_S - 1
    found.refreshed([ATTRIBUTION], OUTCOMES)
    assert len(events.lines) == 5
    events.now_s = STREAM_PERIOD_S
    found.refreshed([ATTRIBUTION], OUTCOMES)
    assert len(events.lines) == 10


def test_without_a_url_nothing_is_made_or_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headgate.pipeline.lineage.events", None)
    found = job_lineage(NO_LINEAGE, "/tables", "run", [TOPIC], [ATTRIBUTION], pytest.fail)
    with found.running(), found.reading(BRONZE_SAMPLES), found.filling(ATTRIBUTION):
        found.checked(OUTCOMES)
        found.refreshed([ATTRIBUTION], OUTCOMES)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> None:
        raise ModuleNotFoundError("no", name="openlineage.client")

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(InputError, match=r"pip install 'headgate\[lineage\]'"):
        job_lineage(LineageOptions("http://h:1"), "/tables", "run", [], [], pytest.fail)

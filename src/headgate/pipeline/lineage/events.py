"""Events of OpenLineage, made with its client library.

Nothing of the library's configuration is read: no file, no variable and no repository of git.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from openlineage.client import facet_v2, set_producer
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpConfig,
    HttpTransport,
    TokenProvider,
)
from openlineage.client.uuid import generate_new_uuid

from headgate.base.clock import SystemClock
from headgate.base.texts import without_secrets
from headgate.base.units import NS_PER_US
from headgate.pipeline.kernels.quality import CheckOutcome, Outcomes
from headgate.pipeline.lineage.datasets import DataSet
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.tables.columns import ColumnType, Table
from headgate.pipeline.tables.expectations import expectations
from headgate.pipeline.time_span import EPOCH

INTEGRATION: Final = "HEADGATE"
PRODUCER: Final = "urn:headgate:pipeline"
"""What made the events, a URI."""

TIMEOUT_S: Final = 3.0
"""Time to connect, and between two parts of an answer."""


class State(enum.Enum):
    """States of a run, by OpenLineage's names."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class RunName:
    """A run of a job."""

    namespace: str
    job: str
    run_id: str
    parent: RunName | None = None
    is_streaming: bool = False


def new_run(namespace: str, job: str, **more: Any) -> RunName:
    """A run with a new id, whose ids are in the order of time."""
    return RunName(namespace, job, str(generate_new_uuid()), **more)


def run_event(
    run: RunName,
    state: State,
    inputs: Sequence[DataSet] = (),
    outputs: Sequence[DataSet] = (),
    *,
    outcomes: Outcomes | None = None,
    error: str | None = None,
    wall_ns: Callable[[], int] = SystemClock.wall_ns,
) -> RunEvent:
    """One event of a run. ``outcomes``: how the rows of the inputs met their expectations."""
    set_producer(PRODUCER)
    time = EPOCH + timedelta(microseconds=wall_ns() // NS_PER_US)
    kind = facet_v2.job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if run.is_streaming else "BATCH",
        integration=INTEGRATION,
        jobType="COMMAND" if run.parent is None else "TASK",
    )
    return RunEvent(
        eventType=RunState[state.value],
        eventTime=time.isoformat(),
        run=Run(run.run_id, _run_facets(run, error)),
        job=Job(run.namespace, run.job, {"jobType": kind}),
        inputs=[_input(each, outcomes) for each in inputs],
        outputs=[
            OutputDataset(each.namespace, each.name, facets=_schema(each)) for each in outputs
        ],
        producer=PRODUCER,
    )


def http_emit(options: LineageOptions) -> Callable[[Any], Any]:
    """Posts one event; it raises :class:`ConnectionError` if that fails, and tries once.

    An answer is its status alone: its body, which may have no end, is not read, and a redirect is
    a failure. A server, or a proxy on the way, may repeat the key in its first line: no error has
    it, and none of the lines that urllib3 would have for an odd head.
    """
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    url, endpoint = options.base_and_endpoint
    key = options.api_key
    transport = HttpTransport(
        HttpConfig(
            url=url,
            endpoint=endpoint,
            timeout=TIMEOUT_S,
            auth=TokenProvider({}) if key is None else ApiKeyTokenProvider({"api_key": key}),
            retry={"total": 0},
        )
    )
    session: Any = transport.session
    session.stream = True
    session.get_redirect_target = lambda _response: None

    def emit(event: Any) -> None:
        try:
            response = transport.emit(event)
        except Exception as error:  # The library and what it calls raise many kinds.
            said = str(error) or type(error).__name__
            raise ConnectionError(without_secrets(said, (key or "",))) from None
        if response.is_redirect:
            raise ConnectionError(f"status {response.status_code}: redirects are not followed")

    return emit


def _run_facets(run: RunName, error: str | None) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if run.parent is not None:
        facets["parent"] = facet_v2.parent_run.ParentRunFacet(
            run=facet_v2.parent_run.Run(run.parent.run_id),
            job=facet_v2.parent_run.Job(run.parent.namespace, run.parent.job),
        )
    if error is not None:
        facets["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(
            message=error, programmingLanguage="PYTHON"
        )
    return facets


def _input(each: DataSet, outcomes: Outcomes | None) -> InputDataset:
    checks = None if outcomes is None or each.table is None else _checks(each.table, outcomes)
    facets = {} if checks is None else {"dataQualityAssertions": checks}
    return InputDataset(each.namespace, each.name, facets=_schema(each), inputFacets=facets)


def _output(each: DataSet) -> OutputDataset:
    return OutputDataset(each.namespace, each.name, facets=_schema(each))


def _schema(each: DataSet) -> dict[str, Any]:
    """The columns of a table, with their units."""
    if each.table is None:
        return {}
    fields = [
        facet_v2.schema_dataset.SchemaDatasetFacetFields(
            name=column.name,
            type=_type(column.type),
            description=column.documentation,
            ordinal_position=place,
        )
        for place, column in enumerate(each.table.columns, 1)
    ]
    return {"schema": facet_v2.schema_dataset.SchemaDatasetFacet(fields=fields)}


def _type(kind: ColumnType) -> str:
    return kind.value.upper()


def _checks(table: Table, outcomes: Outcomes) -> Any:
    """How a table's rows met its expectations; None if none was checked."""
    found = [
        _assertion(each.name, each.text, outcome)
        for each in expectations(table)
        if (outcome := outcomes.get((table.name, each.name))) is not None
    ]
    if not found:
        return None
    return facet_v2.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(found)


def _assertion(name: str, text: str, outcome: CheckOutcome) -> Any:
    is_of_one = bool(outcome.columns) and "," not in outcome.columns
    return facet_v2.data_quality_assertions_dataset.Assertion(
        assertion=name,
        success=outcome.rows_failed == 0,
        column=outcome.columns if is_of_one else None,
        severity="warn",
        description=text,
        expected="0",
        actual=str(outcome.rows_failed),
    )

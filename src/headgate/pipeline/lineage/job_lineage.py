"""The lineage of one job: its run, its tasks and their data sets.

A command is a job, and each table that it fills is a task of it, with a run of its own. So a
lineage tool shows which table follows from which.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from headgate.base.errors import InputError
from headgate.pipeline.kernels.quality import Outcomes
from headgate.pipeline.lineage.datasets import DataSet, job_namespace, table_set
from headgate.pipeline.lineage.event_sender import EventSender
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.tables.catalogue import CHECKED, TABLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.quality import QUALITY

STREAM_PERIOD_S: Final = 600.0
"""Time between two reports of a stream about its tables."""


class Sender(Protocol):
    """Takes events."""

    def send(self, event: Any) -> None:
        """Send an event soon."""

    def close(self) -> None:
        """Wait until all events are sent, for a bounded time."""


class JobLineage:
    """Says what a job does. Without a sender its methods do nothing."""

    def __init__(
        self,
        root: str,
        command: str,
        inputs: Sequence[DataSet],
        outputs: Sequence[Table],
        *,
        sender: Sender | None = None,
        is_streaming: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``root``: the resolved folder of the tables. ``inputs``: what the job itself reads."""
        self._root, self._sender = root, sender
        self._inputs, self._outputs = tuple(inputs), tuple(table_set(root, t) for t in outputs)
        self._monotonic, self._due_s = monotonic, monotonic()
        if sender is not None:
            self._events = _events()
            self._run = self._events.new_run(
                job_namespace(root), f"headgate.pipeline.{command}", is_streaming=is_streaming
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """The run of the job, from its start to its end."""
        if self._sender is None:
            yield
            return
        try:
            with self._reported(self._run, self._inputs, self._outputs):
                yield
        finally:
            self._sender.close()

    @contextmanager
    def reading(self, *tables: Table) -> Iterator[None]:
        """The task that fills the bronze tables from the job's inputs."""
        with self._task("bronze", self._inputs, tables):
            yield

    @contextmanager
    def filling(self, table: Table) -> Iterator[None]:
        """The task that computes a table from those that it follows from."""
        inputs = [table_set(self._root, TABLES[name]) for name in table.follows_from]
        with self._task(table.name, inputs, [table]):
            yield

    def checked(self, outcomes: Outcomes) -> None:
        """Say how the rows of the tables met their expectations."""
        if self._sender is None:
            return
        names = {name for name, _ in outcomes}
        inputs = [table_set(self._root, table) for table in CHECKED if table.name in names]
        run = self._child(QUALITY.name)
        outputs = [table_set(self._root, QUALITY)]
        self._send(run, "START", inputs, outputs)
        self._send(run, "COMPLETE", inputs, outputs, outcomes=outcomes)

    def refreshed(self, tables: Sequence[Table], outcomes: Outcomes) -> None:
        """Say what a stream's refresh filled, at most once in :data:`STREAM_PERIOD_S`."""
        if self._sender is None or self._monotonic() < self._due_s:
            return
        self._due_s = self._monotonic() + STREAM_PERIOD_S
        self._send(self._run, "RUNNING", self._inputs, self._outputs)
        for table in tables:
            with self.filling(table):
                pass
        self.checked(outcomes)

    @contextmanager
    def _task(
        self, name: str, inputs: Sequence[DataSet], outputs: Sequence[Table]
    ) -> Iterator[None]:
        if self._sender is None:
            yield
            return
        sets = [table_set(self._root, table) for table in outputs]
        with self._reported(self._child(name), inputs, sets):
            yield

    @contextmanager
    def _reported(
        self, run: Any, inputs: Sequence[DataSet], outputs: Sequence[DataSet]
    ) -> Iterator[None]:
        self._send(run, "START", inputs, outputs)
        try:
            yield
        except Exception as error:
            self._send(run, "FAIL", inputs, outputs, error=str(error))
            raise
        except BaseException:
            self._send(run, "ABORT", inputs, outputs)
            raise
        self._send(run, "COMPLETE", inputs, outputs)

    def _child(self, name: str) -> Any:
        job = f"{self._run.job}.{name}"
        return self._events.new_run(self._run.namespace, job, parent=self._run)

    def _send(self, run: Any, state: str, *sets: Sequence[DataSet], **more: Any) -> None:
        if self._sender is not None:
            state = self._events.State[state]
            self._sender.send(self._events.run_event(run, state, *sets, **more))


def job_lineage(
    options: LineageOptions,
    root: str,
    command: str,
    inputs: Sequence[DataSet],
    outputs: Sequence[Table],
    say: Callable[[str], None],
    *,
    is_streaming: bool = False,
) -> JobLineage:
    """The lineage of a job; it does nothing without a URL. ``say`` gets at most one warning.

    Raises:
        InputError: the client library is not installed.
    """
    sender = None
    if options.url is not None:
        sender = EventSender(_events().http_emit(options), options.url, say)
    return JobLineage(root, command, inputs, outputs, sender=sender, is_streaming=is_streaming)


def _events() -> Any:
    """The module that needs the client library.

    Raises:
        InputError: it is not installed.
    """
    try:
        return importlib.import_module("headgate.pipeline.lineage.events")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "openlineage":
            raise
        raise InputError(
            "--openlineage needs the package openlineage-python: pip install 'headgate[lineage]'"
        ) from error

"""The demo's Spark job, a separate process: ``python -m headgate.demo.spark_job SPEC``.

It runs the pipeline's structured streaming query over the telemetry topics of all brokers, and
refreshes the tables after every batch. One line of JSON on its input names the range to attribute:
then it reads the rest and writes the judgements. Each line of its output is a JSON object with the
finished ``stage``. It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import HeadgateError
from headgate.demo.spark import SparkSpec, with_retries
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions
from headgate.pipeline.derived.intervals import Intervals
from headgate.pipeline.jobs import bronze_counts, create_tables
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.output.attribution import judgement_document
from headgate.pipeline.queries.attribution import judge_range
from headgate.pipeline.refresh import refresh, refresh_all
from headgate.pipeline.session import create_session
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.streaming.query import run_until, start_query, telemetry_messages

_POLL_S: Final = 0.1


@dataclass
class _Request:
    """The request to judge, which comes from another thread."""

    arrived: threading.Event
    line: str = ""


def _write_stage(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


def _listen(request: _Request) -> None:
    request.line = sys.stdin.readline()
    request.arrived.set()
    if not request.line or not sys.stdin.readline():
        # The demo has ended or needs no more; Spark's Java process ends with this one.
        os._exit(0)


def source_of(spec: SparkSpec) -> SourceOptions:
    """The brokers and credentials of the job, as the pipeline takes them."""
    access = NO_ACCESS
    if spec.token_path:
        access = AccessOptions("token", Path(spec.token_path).as_uri())
    return SourceOptions(spec.out, spec.broker_urls, spec.web_urls, access=access)


class Job:
    """Streams until it is asked to judge, then judges."""

    def __init__(self, spec: SparkSpec, request: _Request) -> None:
        """``orders`` is filled from another thread."""
        self._source = source_of(spec)
        self._trigger_s = spec.trigger_s
        self._request = request
        self._root = str(Path(spec.out).resolve())
        self._checkpoint = checkpoint_path(self._source)

    def run(self) -> None:
        """Stream, read the rest and judge.

        Raises:
            InputError: Java is missing, or the folder is in use.
            Exception: whatever Spark raises.
        """
        begin_s = time.monotonic()
        with fill_leases(self._root):
            spark = create_session("headgate demo")
            _write_stage(stage="started", seconds=time.monotonic() - begin_s)
            create_tables(self._root)
            for step in (self._stream, self._read_the_rest, self._judge):
                with_retries(partial(step, spark), self._write_failure)

    def _write_failure(self, error: Exception) -> None:
        _write_stage(stage="again", reason=reason_of(str(error)))

    def _stream(self, spark: Any) -> None:
        """Read telemetry until the request; refresh the tables after every batch."""

        def after(session: Any, batch_id: int) -> None:
            if not self._request.arrived.is_set():
                refresh_all(session, self._root)
                _write_stage(stage="batch", number=batch_id + 1, rows=self._rows())

        query = start_query(
            telemetry_messages(spark, self._source),
            self._root,
            self._checkpoint,
            trigger_s=self._trigger_s,
            after=after,
        )
        run_until(query, self._request.arrived.is_set, poll_s=_POLL_S, last_batch_s=inf)

    def _read_the_rest(self, spark: Any) -> None:
        """Read what the topics hold now. The stream would never end: brokers go on publishing."""
        messages = telemetry_messages(spark, self._source)
        start_query(messages, self._root, self._checkpoint, trigger_s=None).awaitTermination()
        _write_stage(stage="read", rows=self._rows())

    def _judge(self, spark: Any) -> None:
        order = json.loads(self._request.line)
        refresh(spark, self._root, Intervals())
        _write_stage(stage="intervals", rows=self._rows())
        refresh_all(spark, self._root)
        found = judge_range(spark, self._root, order["since_ns"], order["until_ns"])
        documents = [judgement_document(row) for row in found]
        _write_stage(stage="judged", rows=self._rows(), found=documents)

    def _rows(self) -> int:
        """Samples in the tables."""
        return bronze_counts(self._root).samples


def main() -> None:
    """Run the process."""
    request = _Request(threading.Event())
    threading.Thread(target=_listen, args=(request,), daemon=True).start()
    try:
        Job(SparkSpec.from_json(sys.argv[1]), request).run()
    except HeadgateError as error:
        _fail(str(error))
    except Exception as error:
        _fail(reason_of(str(error)))


def _fail(reason: str) -> None:
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    # Nothing that Spark still does in the background may hold it up.
    os._exit(1)


if __name__ == "__main__":
    main()

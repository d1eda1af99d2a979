"""The demo's Spark job: ``python -m headgate.demo.spark_job SPEC`` in a process of its own.

It is the pipeline's structured-streaming query over the telemetry topics of all brokers: it brings
the tables up to date after every batch, until it is told the range to judge (one line of JSON).
Then it takes in what is left and writes the judgements. Each line that it writes is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headgate.demo.spark import SparkSpec
from headgate.pipeline.attribution_kernel import young_limit_ns
from headgate.pipeline.delta_log import ensure_table, table_files
from headgate.pipeline.folder import checkpoint_path, folder_lock
from headgate.pipeline.jobs import judge_range, start_query, telemetry_messages
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.refresh import refresh_attribution, refresh_intervals
from headgate.pipeline.render import judgement_document
from headgate.pipeline.session import create_session
from headgate.pipeline.tables import BRONZE_SAMPLES, TABLES

_YOUNG_S: Final = 2.0


@dataclass
class _Orders:
    """The one order that the process gets, and when."""

    given: threading.Event
    line: str = ""


def _tell(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


def _listen(orders: _Orders) -> None:
    orders.line = sys.stdin.readline()
    orders.given.set()
    if not orders.line or not sys.stdin.readline():
        # The demo is gone or has had enough; Spark's Java process ends with this one.
        os._exit(0)


def _samples(root: str) -> int:
    return sum(file.rows for file in table_files(ensure_table(root, BRONZE_SAMPLES)))


def run(spec: SparkSpec, orders: _Orders) -> None:
    """Stream until ordered to judge, then judge."""
    begin_s = time.monotonic()
    source = SourceOptions(spec.out, spec.broker_urls, spec.web_urls)
    root, young_ns = str(Path(spec.out).resolve()), young_limit_ns(_YOUNG_S)
    with folder_lock(root):
        spark = create_session("headgate demo")
        _tell(stage="started", seconds=time.monotonic() - begin_s)
        for table in TABLES.values():
            ensure_table(root, table)

        def after(session: Any, batch_id: int) -> None:
            refresh_intervals(session, root)
            refresh_attribution(session, root, young_ns)
            _tell(stage="batch", number=batch_id, rows=_samples(root))

        query = start_query(
            telemetry_messages(spark, source),
            root,
            checkpoint_path(source),
            trigger_s=spec.trigger_s,
            after=after,
        )
        while not orders.given.wait(0.2):
            if not query.isActive:
                break
        order = json.loads(orders.line)
        query.processAllAvailable()
        query.stop()
        found = judge_range(spark, root, order["since_ns"], order["until_ns"], young_ns)
        _tell(stage="judged", rows=_samples(root), found=[judgement_document(r) for r in found])


def main() -> None:
    """The process."""
    orders = _Orders(threading.Event())
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    run(SparkSpec.from_json(sys.argv[1]), orders)


if __name__ == "__main__":
    main()

"""The jobs ``attribute`` and ``run`` over a folder of scrapes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.pipeline.tables.columns import Table
from tests.spark.telemetry_topic import computing


def attribute_scrapes(out: Path, folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Run the job; its rows and what it said."""
    answer, progress = io.StringIO(), io.StringIO()
    asked = AttributeOptions(SourceOptions(str(out), scrapes=str(folder)), format="json")
    jobs.run_attribute(asked, answer, progress)
    return json.loads(answer.getvalue()), progress.getvalue()


def fill_from_scrapes(out: Path, folder: Path, *tables: Table) -> str:
    """Run the job ``run``, which computes these derived tables, or all; return what it said."""
    progress = io.StringIO()
    with computing(*tables):
        jobs.run_once(SourceOptions(str(out), scrapes=str(folder)), progress)
    return progress.getvalue()

"""Table definitions agree with the record; importing them starts nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.pipeline.tables.bronze import BRONZE_SAMPLES, SAMPLED_KINDS
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.intervals import INTERVALS, cumulative_columns, level_columns
from headgate.record.fields import FIELDS


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_names_are_unique_and_explained(table: Table) -> None:
    names = table.column_names()
    assert len(set(names)) == len(names)
    assert set(table.partition_by) <= set(names)
    assert set(table.statistics) <= set(names)
    assert all(column.comment for column in table.columns)


def test_every_field_of_the_record_has_its_column() -> None:
    for kind in SAMPLED_KINDS:
        assert {field.name for field in FIELDS[kind]} <= set(BRONZE_SAMPLES.column_names())
        assert {*cumulative_columns(kind), *level_columns(kind)} <= set(INTERVALS.column_names())


SOURCE = Path(__file__).parents[4] / "src"
KERNELS = sorted(
    f"headgate.pipeline.kernels.{path.stem}"
    for path in (SOURCE / "headgate/pipeline/kernels").glob("[a-z]*.py")
)
LIGHT = [
    "headgate.pipeline",
    *(
        f"headgate.pipeline.{name}"
        for name in ("tables.catalogue", "options", "time_span", "output.attribution")
    ),
    "headgate.pipeline.store.folder",
]


@pytest.mark.parametrize(
    ("names", "heavy"),
    [
        (LIGHT, {"pyspark", "pandas", "pyarrow", "numpy", "deltalake", "opentelemetry"}),
        # pyarrow takes pandas along where it is installed.
        (KERNELS, {"pyspark", "deltalake", "opentelemetry"}),
    ],
    ids=["package", "kernels"],
)
def test_importing_the_package_starts_nothing_heavy(names: list[str], heavy: set[str]) -> None:
    assert len(names) > 5
    code = f"import sys, {', '.join(names)}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == ""

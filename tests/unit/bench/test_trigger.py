"""Figures of triggers are added up by table, and their medians are taken by figure."""

from __future__ import annotations

from pathlib import Path

from bench.telemetry import Telemetry
from bench.trigger import Spent, added, append, median
from headgate.pipeline.store.delta_log import ensure_table, table_files
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES

FEW = Spent(wall_s=1.0, java_s=2.0, workers_s=3.0, python_s=4.0, jobs=1, tasks=5)
MORE = Spent(wall_s=3.0, java_s=1.0, workers_s=3.0, python_s=4.5, jobs=2, tasks=1)


def test_a_sum_and_a_median_are_of_each_figure() -> None:
    assert FEW.cpu_s == 9.0
    assert added([FEW, MORE]) == Spent(4.0, 3.0, 6.0, 8.5, 3, 6)
    assert median([FEW, MORE, MORE]) == MORE
    assert str(FEW) == (
        "CPU 9.00 s (Java 2.00, workers 3.00, driver 4.00), 1.00 s, 1 jobs, 5 tasks"
    )


def test_a_minute_is_appended_behind_the_others(tmp_path: Path) -> None:
    append(str(tmp_path), Telemetry(4, 2), 0)
    append(str(tmp_path), Telemetry(4, 3), 2)
    delta = ensure_table(str(tmp_path), BRONZE_SAMPLES)
    assert delta.version() == 2
    rows = {file.partition["kind"]: 0 for file in table_files(delta)}
    for file in table_files(delta):
        rows[file.partition["kind"]] += file.rows
    assert (rows["subscription"], rows["topic"]) == (3 * 6 * 4, 3 * 6 * 2)

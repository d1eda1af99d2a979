"""Growth from the first shape to the last, from figures of both."""

from __future__ import annotations

from typing import Any

from bench.scale import growth_table, heap_mib, shape_table, trigger_cpu


def figures(rows: int, cpu_s: float, heap_mib: float) -> dict[str, Any]:
    """One shape with two stages and a trigger of two."""
    stage = {"wall_s": 1.0, "cpu_s": cpu_s, "shuffled_bytes": 10 * rows, "heap_mib": heap_mib}
    names = ("generate", "intervals", "+1 min intervals", "+1 min attribution")
    return {
        "stages": {name: dict(stage) for name in names},
        "tables": {"bronze_samples": {"files": 2, "bytes": 20 * rows, "rows": rows}},
        "peaks": {"python": 200.0, "executor": 900.0, "worker": 300.0},
    }


FEW, MANY = figures(1_000, 4.0, 60.0), figures(2_000, 10.0, 75.0)


def test_growth_is_told_for_each_row() -> None:
    table = growth_table([(100, 60), (10_000, 1)], [FEW, MANY])
    rows = {row.name: row for row in table.rows}
    assert rows["CPU, intervals"].figure == "1.25 times"
    assert rows["bytes shuffled, intervals"].figure == "1.00 times"
    assert rows["CPU, all stages"].verdict == "not met"
    assert rows["driver's Java, live"].verdict == "not met"
    assert rows["driver's Python, peak"].verdict == "met"
    assert rows["+1 min of 10,000 subscriptions arrive"].figure == "CPU 20.0 s"


def test_a_shape_shows_its_stages_files_and_memory() -> None:
    rows = {row.name: row.figure for row in shape_table(100, 60, FEW).rows}
    assert rows["intervals"] == "1.00 s, CPU 4.00 s, shuffled 0.01 MB"
    assert rows["bronze_samples, files"] == "2 of 0.02 MB, 1,000 rows, 20.0 B/row"
    assert heap_mib(FEW) == 60.0
    assert trigger_cpu(FEW) == {"+1 min": 8.0}

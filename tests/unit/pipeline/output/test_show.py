"""``show``: rows, columns, order, and errors about options."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.output.show import _SHOWN, TABLE_ROWS_SHOWN, ShowOptions, show
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, backtest_row, quota_row, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(3)])
    write(tmp_path, "quota_usage", [quota_row(place, NS + "other") for place in range(70)])
    return tmp_path


def shown(root: Path, **options: Any) -> tuple[list[dict[str, Any]], str]:
    out, err = io.StringIO(), io.StringIO()
    asked = {"table": "quota_usage", "format": "json"} | options
    count = show(ShowOptions(str(root), **asked), out, err)
    rows = json.loads(out.getvalue())
    assert count == len(rows)
    return rows, err.getvalue()


def test_json_and_csv_have_every_row_and_column(root: Path) -> None:
    rows, said = shown(root)
    assert len(rows) == 73
    assert {"date", "hour", "sentence", "size_use"} <= set(rows[0])
    assert said == ""


def test_filters_columns_and_range_together(root: Path) -> None:
    rows, _ = shown(
        root,
        where=(("topic", NS + "other"), ("incarnation", "1")),
        columns=("minute", "size_use"),
        span=Span(T0 + 90_000_000_000, T0 + 4 * MINUTE_NS),
    )
    # The range begins inside the second minute, which therefore is in it.
    assert [row["minute"][11:16] for row in rows] == ["10:01", "10:02", "10:03"]
    assert set(rows[0]) == {"minute", "size_use"}


def test_several_values_of_a_column_are_any_of_them(root: Path) -> None:
    where = (("topic", NS + "other"), ("topic", NS + "filling"), ("hour", "10"))
    assert len(shown(root, where=where)[0]) == 63


def test_a_limit_selects_the_latest_rows_in_order(root: Path) -> None:
    rows, said = shown(root, limit=2, where=(("topic", NS + "other"),))
    assert [row["minute"][11:16] for row in rows] == ["11:08", "11:09"]
    assert said == "The latest 2 rows; --count shows more.\n"


def test_the_latest_rows_are_read_from_the_files_that_have_them(root: Path) -> None:
    """A file that the log knows to be older is not opened: here it is gone."""
    write(root, "quota_usage", [quota_row(200 + place) for place in range(3)])
    every = shown(root, limit=4)[0]
    older = [path for path in root.glob("quota_usage/**/*.parquet") if "hour=13" not in str(path)]
    assert older
    for path in older:
        path.unlink()
    rows, said = shown(root, limit=3)
    assert rows == every[1:]
    assert said == "The latest 3 of 76 rows; --count shows more.\n"
    assert shown(root, limit=2, where=(("topic", NS + "filling"),))[0] == every[2:]
    with pytest.raises(PipelineError, match="a file is gone"):
        shown(root, limit=4)


def test_a_table_has_selected_columns_and_a_bounded_number_of_rows(root: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert show(ShowOptions(str(root), "quota_usage", width=200), out, err) == TABLE_ROWS_SHOWN
    assert "seconds_to_breach" in out.getvalue()
    assert "sentence" in out.getvalue()
    assert "size_limit_bytes" not in out.getvalue()
    assert err.getvalue() == "The latest 50 of 73 rows; --count shows more.\n"


@pytest.mark.parametrize("name", sorted(_SHOWN.keys() & TABLES.keys()))
def test_a_table_shows_the_sentence_of_its_rows(name: str) -> None:
    assert ("sentence" in _SHOWN[name]) == ("sentence" in TABLES[name].column_names())


def test_backtest_rows_have_readable_settings(tmp_path: Path) -> None:
    write(tmp_path, "policy_backtest", [backtest_row(0, name="drain 1")], ("run_id",))
    out = io.StringIO()
    show(ShowOptions(str(tmp_path), "policy_backtest", width=200), out, io.StringIO())
    assert "drain 1   law: drain; target: 0.5" in out.getvalue()
    rows, _ = shown(tmp_path, table="policy_backtest", columns=("name", "settings"))
    assert rows == [{"name": "drain 1", "settings": '{"law": "drain", "target": 0.50}'}]


def test_without_telemetry_the_message_names_the_command_that_reads_it(tmp_path: Path) -> None:
    for name in ("bronze_samples", "evictions"):
        ensure_table(str(tmp_path), TABLES[name])
    rows, said = shown(tmp_path, table="evictions", limit=5)
    hint = f"before headgate pipeline run --out {tmp_path} has read telemetry"
    assert (rows, said) == ([], f"evictions has no rows {hint}.\n")
    other = tmp_path / "other"
    ensure_table(str(other), TABLES["evictions"])
    write(other, "bronze_samples", [quota_row(0)])
    assert shown(other, table="evictions", limit=5)[1] == "evictions has no rows.\n"


def test_a_message_says_that_no_row_was_found(root: Path) -> None:
    rows, said = shown(root, limit=5, where=(("topic", "x"),))
    assert (rows, said) == ([], "quota_usage has no such rows.\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "quota_use"}, "did you mean quota_usage? there are quota_usage"),
        ({"table": "attribution"}, "no table 'attribution': no run has made it yet"),
        ({"table": "x"}, "has no table 'x': there are quota_usage"),
        ({"columns": ("a", "minute", "b")}, "no column 'a', 'b'; it has date, hour"),
        ({"where": (("nix", "1"),)}, "no column 'nix'"),
        ({"where": (("hour", "noon"),)}, "--where hour=noon: hour is a whole number, such as 10"),
        ({"where": (("minute", "noon"),)}, "minute is an instant, such as 2026-11-21T10:00:00Z"),
        ({"columns": ("sise_use",)}, "no column 'sise_use' (did you mean size_use?); it has"),
        (
            {"columns": ("x",), "where": (("y", "1"), ("hour", "a"), ("size_use", "b"))},
            "sentence\n--where hour=a: hour is a whole number, such as 10\n--where size_use=b: ",
        ),
    ],
)
def test_invalid_options_give_one_sentence(root: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        shown(root, **options)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", sorted(_SHOWN.keys() & TABLES.keys()))
def test_the_selected_columns_exist(name: str) -> None:
    assert set(_SHOWN[name]) <= set(TABLES[name].column_names())

"""The page of a folder, from the command's options to the file."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import ReportOptions
from headgate.pipeline.report.job import _write, run_report
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.tables.catalogue import TABLES
from tests.unit.pipeline.report.folder import (
    backtest_row,
    eviction_row,
    held_row,
    limiter_row,
    played,
    quota_row,
    write,
)


@pytest.fixture(autouse=True)
def small_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.pipeline.report.page.get_plotlyjs", lambda: "")


def reported(root: Path, **options: Any) -> tuple[str, str]:
    err = io.StringIO()
    path = run_report(ReportOptions(str(root), **options), err)
    return path.read_text(encoding="utf-8"), err.getvalue()


def charts(page: str) -> list[dict[str, Any]]:
    found = re.search(r'id="charts">(.*?)</script>', page, re.S)
    assert found is not None
    return list(json.loads(found[1]).values())


def test_a_whole_folder(tmp_path: Path) -> None:
    root = tmp_path / "tables"
    root.mkdir()
    played(root)
    write(root, "quota_usage", [quota_row(place) for place in range(3)])
    write(root, "publish_attribution", [held_row(1, topic_rate=5)])
    write(root, "throttle_timeline", [limiter_row(1)])
    write(root, "evictions", [eviction_row(1)])
    write(root, "policy_backtest", [backtest_row(i) for i in range(3)], ("run_id",))
    page, said = reported(root, html=str(tmp_path / "p.html"))
    assert len(charts(page)) == 7 + 1 + 1 + 1 + 1 + 1 + 1
    assert "THROTTLED_TOPIC" in page
    assert "Held in minute 1." in page
    assert "Run r1" in page
    assert said.startswith(f"Reading the tables of {root} ... 2025-11-21 10:00:00 UTC to ")
    assert re.search(rf"Wrote {tmp_path}/p.html \(0\.\d MB\)\.\n$", said)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["p.html"]


def test_the_page_names_tables_that_an_older_folder_lacks(tmp_path: Path) -> None:
    played(tmp_path)
    page, _ = reported(tmp_path, top=2)
    assert (tmp_path / "report.html").is_file()
    for table in ("publish_attribution", "throttle_timeline", "quota_usage", "evictions"):
        assert f"has no table {table}" in page
    assert len(charts(page)) == 2 + 1


def test_the_range_is_cut_to_the_requested_one(tmp_path: Path) -> None:
    played(tmp_path, 120)
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(2)])
    page, _ = reported(tmp_path, since="2025-11-21T10:01:00Z")
    ranges = {tuple(chart["layout"]["xaxis"]["range"]) for chart in charts(page)}
    assert {begin for begin, _ in ranges} == {"2025-11-21 10:01:00"}
    assert "2025-11-21 10:02:00" in {end for _, end in ranges}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"since": "yesterday"}, "--since 'yesterday' is no time"),
        ({"since": "1h", "until": "2h"}, "does not lie before"),
        ({"until": "2020-01-01T00:00:00Z"}, "and none in this range"),
        ({"html": "/nonexistent/page.html"}, "/nonexistent/page.html cannot be written: No such"),
    ],
)
def test_invalid_options(tmp_path: Path, options: dict[str, str], said: str) -> None:
    played(tmp_path, 60)
    with pytest.raises(InputError) as caught:
        reported(tmp_path, **options)
    assert said in str(caught.value)
    assert list(tmp_path.glob("*.html")) == list(tmp_path.glob(".*html*")) == []


def test_tables_without_rows_have_no_page(tmp_path: Path) -> None:
    """A run makes them before it finds that no broker has published anything."""
    for name in ("intervals", "attribution"):
        ensure_table(str(tmp_path), TABLES[name])
    with pytest.raises(InputError, match="no telemetry yet: headgate pipeline run --out /"):
        reported(tmp_path)
    assert not list(tmp_path.glob("*html*"))


def test_the_range_ends_where_the_accounts_do(tmp_path: Path) -> None:
    played(tmp_path, 130)
    _, said = reported(tmp_path)
    assert "2025-11-21 10:00:00 UTC to 2025-11-21 10:02:10 UTC (2 min)" in said
    _, said = reported(tmp_path, since="2025-11-21T10:00:30Z", until="2025-11-21T10:01:30Z")
    assert "2025-11-21 10:00:00 UTC to 2025-11-21 10:02:00 UTC (2 min)" in said


def test_a_page_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    played(tmp_path, 60)
    (tmp_path / "report.html").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        reported(tmp_path)
    assert not list(tmp_path.glob(".report.html*"))


def test_folders_without_needed_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"headgate pipeline run --out {tmp_path} fills it"):
        reported(tmp_path)
    write(tmp_path, "quota_usage", [quota_row(0)])
    with pytest.raises(InputError, match="has no table intervals yet"):
        reported(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder .*none yet .* pipeline run --out"):
        reported(tmp_path / "none")
    assert not list(tmp_path.glob("*html*"))
    other = tmp_path / "other"
    other.mkdir()
    write(other, "intervals", [quota_row(0)], layout=2)
    write(other, "attribution", [quota_row(0)], layout=2)
    with pytest.raises(InputError, match="layout 2; this version reads and writes 1"):
        reported(other)


def test_a_page_is_not_written_through_a_link(tmp_path: Path) -> None:
    """In a folder of all users others know the name under which it is written first."""
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")
    (tmp_path / f".page.html.{os.getpid()}").symlink_to(victim)
    _write(tmp_path / "page.html", "<p>")
    assert victim.read_text() == "of somebody else"
    assert (tmp_path / "page.html").read_text() == "<p>"

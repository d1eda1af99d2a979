"""Queries are refused before Spark starts; ``tests/spark/test_sql.py`` runs them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import FolderOptions, SqlOptions
from headgate.pipeline.queries import sql
from tests.unit.pipeline.report.folder import quota_row, write


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlOptions:
    """A folder with one table, and no Java."""
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    write(tmp_path, "quota_usage", [quota_row(0)])
    return SqlOptions(FolderOptions(str(tmp_path)))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "the query is empty"),
        ("drop table quota_usage", "DROP is not for this command"),
        ("select 1", "JAVA_HOME=/nonexistent has no bin/java"),
    ],
)
def test_faults_that_need_no_spark(options: SqlOptions, query: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        sql.run_sql(query, options, io.StringIO(), io.StringIO())


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(InputError, match="there is no folder /nonexistent yet"):
        sql.run_sql(
            "select 1", SqlOptions(FolderOptions("/nonexistent")), io.StringIO(), io.StringIO()
        )

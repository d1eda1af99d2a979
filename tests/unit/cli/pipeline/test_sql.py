"""The command ``sql``: what it refuses, and where its query comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.queries import sql
from tests.unit.pipeline.report.folder import quota_row, write


def called(*words: str, typed: str = "") -> Any:
    return CliRunner().invoke(main, ["pipeline", "sql", *words], input=typed)


@pytest.fixture
def root(tmp_path: Path) -> str:
    write(tmp_path, "quota_usage", [quota_row(0)])
    return str(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["select 1"], "Missing option '--out'"),
        (["drop table x", "--out", "ROOT"], "DROP is not for this command, which only reads"),
        (["--out", "ROOT"], "the query is empty"),
        (["select 1", "--out", "/nonexistent"], "there is no folder /nonexistent"),
        (["select 1", "--out", "gs://b/t"], "tables cannot be in gs://"),
        (["select 1", "--out", "ROOT", "--count", "0"], "0 is not in the range x>=1"),
        (["select 1", "--out", "ROOT", "--since", "soon"], "--since 'soon' is no time"),
        (["select 1", "--out", "ROOT", "--cores", "0"], "--cores 0: 1 to"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(root: str, words: list[str], said: str) -> None:
    result = called(*(root if word == "ROOT" else word for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_query_of_the_standard_input(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    monkeypatch.setattr(sql, "run_sql", lambda *given: taken.append(given))
    assert called("--out", root, "--format", "json", typed="select 1\n").exit_code == 0
    assert called("select 2", "--out", root, "--count", "5").exit_code == 0
    assert [given[0] for given in taken] == ["select 1\n", "select 2"]
    assert [(given[1].folder.format, given[1].count) for given in taken] == [
        ("json", None),
        ("table", 5),
    ]

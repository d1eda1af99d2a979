"""The command ``show``, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.tables.catalogue import TABLES, VIEWS
from tests.unit.pipeline.report.folder import quota_row, write


def shown(*words: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", "show", *words])


@pytest.fixture
def root(tmp_path: Path) -> str:
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(3)])
    return str(tmp_path)


def test_rows_alone_on_the_standard_output(root: str) -> None:
    words = "--where hour=10 --columns minute,size_use --count 2 --since 2025-11-21T10:00:00Z"
    result = shown("quota_usage", "--out", root, "--format", "json", *words.split())
    assert result.exit_code == 0
    assert [row["size_use"] for row in json.loads(result.stdout)] == [0.1, 0.2]
    assert result.stderr == "The latest 2 of 3 rows; --count shows more.\n"


def test_csv(root: str) -> None:
    result = shown("quota_usage", "--out", root, "--format", "csv", "--columns", "method")
    assert result.stdout == "method\n" + 3 * "theil_sen\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quota"], "Missing option '--out'"),
        (["quota_usage", "--out", "ROOT", "--where", "hour"], "'hour' is not COLUMN=VALUE."),
        (["quota_usage", "--out", "ROOT", "--count", "0"], "0 is not in the range x>=1"),
        (["quota_usage", "--out", "ROOT", "--since", "soon"], "--since 'soon' is no time"),
        (["nothing", "--out", "ROOT"], "there are quota_usage"),
        (["quota_usage", "--out", "/nonexistent"], "headgate pipeline run --out"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(root: str, words: list[str], said: str) -> None:
    result = shown(*(root if word == "ROOT" else word for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def completions(*words: str, incomplete: str = "") -> list[str]:
    found = ShellComplete(main, {}, "headgate", "X").get_completions(
        ["pipeline", "show", *words], incomplete
    )
    return [item.value for item in found]


def test_names_of_tables_are_completed(root: str) -> None:
    assert completions() == sorted((*TABLES, *VIEWS))
    assert completions(incomplete="bronze_s") == ["bronze_samples"]
    assert completions("--out", root) == ["quota_usage"]

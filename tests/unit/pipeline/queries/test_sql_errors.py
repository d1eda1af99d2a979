"""What Spark says of a query becomes one sentence that names what exists."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException

from headgate.pipeline.queries.sql_errors import query_error

NAMES = ["attribution", "episodes"]
COLUMNS = {"episodes": ["topic", "cause"]}


class _Failed(AnalysisException):
    """With a condition and parameters, as Java gives them."""

    def __init__(self, text: str, condition: str, **parameters: str) -> None:
        super().__init__(text)
        self._found = condition, parameters

    def getCondition(self) -> str:  # noqa: N802
        return self._found[0]

    def getMessageParameters(self) -> Any:  # noqa: N802
        return self._found[1]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            _Failed("x", "TABLE_OR_VIEW_NOT_FOUND", relationName="`episode`"),
            "there is no table 'episode'; did you mean episodes? there are attribution, episodes",
        ),
        (
            _Failed("x", "TABLE_OR_VIEW_NOT_FOUND", relationName="`quite_another`"),
            "there is no table 'quite_another': there are attribution, episodes",
        ),
        (
            _Failed("x", "UNRESOLVED_COLUMN.WITH_SUGGESTION", objectName="`e`.`causes`"),
            "there is no column 'e.causes'; did you mean cause? episodes has topic, cause",
        ),
        (
            _Failed("x", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", objectName="`zzz`"),
            "there is no column 'zzz': episodes has topic, cause",
        ),
        (
            _Failed("Too\nmany. SQLSTATE: 42K09; line 3 pos 7;\n'Project", "A.B_C"),
            "the query cannot run: Too many (line 3)",
        ),
    ],
)
def test_sentences(error: PySparkException, said: str) -> None:
    assert str(query_error(error, NAMES, COLUMNS)) == said


def test_a_parser_s_error_without_a_condition() -> None:
    said = query_error(ParseException("odd"), NAMES, {})
    assert str(said) == "the query cannot run: odd"


def test_without_a_table_there_are_no_columns_to_name() -> None:
    error = _Failed("x", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", objectName="`zzz`")
    assert str(query_error(error, NAMES, {})) == "there is no column 'zzz'"


def test_a_failure_that_is_no_fault_of_the_query() -> None:
    assert query_error(PythonException("lost"), NAMES, COLUMNS) is None

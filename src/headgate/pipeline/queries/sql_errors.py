"""What Spark says of a query that cannot run, in one sentence that names what exists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.errors import AnalysisException, ParseException, PySparkException

from headgate.base.errors import InputError
from headgate.base.input_errors import did_you_mean

_SAID: Final = re.compile(
    r"\A\s*\[[A-Z0-9_.]+\]\s*(?P<said>.+?)[.\s]*(?:SQLSTATE: .*)?\Z", re.DOTALL
)
"""An error of Spark: its condition, what it says, and then a code, a position and the plan."""
_LINE: Final = re.compile(r"\bline (\d+),? pos \d+")


def query_error(
    error: PySparkException, names: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> InputError | None:
    """The error as a fault of the query; None if it is none, such as a lost file.

    ``names``: of tables and views. ``columns``: those of the ones that the query names.
    """
    if not isinstance(error, AnalysisException | ParseException):
        return None
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    missing = parameters.get("relationName", "").replace("`", "")
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND") and missing:
        return InputError(
            f"there is no table {missing!r}{did_you_mean(missing, names) or ':'} there are "
            f"{', '.join(names)}"
        )
    unknown = parameters.get("objectName", "").replace("`", "")
    if condition.startswith("UNRESOLVED_COLUMN") and unknown:
        return InputError(_unknown_column(unknown, columns))
    text = str(error)
    found = _SAID.match(text)
    said = " ".join((text if found is None else found["said"]).split())
    place = _LINE.search(text)
    where = "" if place is None else f" (line {place[1]})"
    return InputError(f"the query cannot run: {said}{where}")


def _unknown_column(unknown: str, columns: Mapping[str, Sequence[str]]) -> str:
    name = unknown.rpartition(".")[2]
    known = list(dict.fromkeys(column for each in columns.values() for column in each))
    have = "; ".join(f"{table} has {', '.join(each)}" for table, each in columns.items())
    text = f"there is no column {unknown!r}{did_you_mean(name, known)}"
    if not have:
        return text
    return f"{text} {have}" if text.endswith("?") else f"{text}: {have}"

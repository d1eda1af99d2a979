"""Sources are registered once; Spark itself is tested in ``tests/spark``."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from headgate.pipeline.spark_sources import register_source


class Session:
    """A session that answers each registration with an error of one condition, or with none."""

    def __init__(self, *conditions: str | None) -> None:
        self._conditions = [*conditions]
        self.dataSource = self
        self.has_rows = False

    def register(self, _: type[DataSource]) -> None:
        condition = self._conditions.pop(0)
        if condition is not None:
            error: Any = AnalysisException("refused")
            error.getCondition = lambda: condition
            raise error

    def createDataFrame(self, *_: object) -> None:  # noqa: N802  # as Spark names it
        self.has_rows = True

    @property
    def left(self) -> int:
        """How many registrations it still expects."""
        return len(self._conditions)


KNOWN = "DATA_SOURCE_ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("conditions", "is_active", "becomes_active"),
    [
        ([None], False, False),
        ([KNOWN], True, False),
        ([KNOWN, None], False, True),
        ([KNOWN, KNOWN], False, True),
    ],
)
def test_a_source_may_be_known_already(
    monkeypatch: pytest.MonkeyPatch,
    conditions: list[str | None],
    is_active: bool,  # a parameter of the cases
    becomes_active: bool,  # as above
) -> None:
    session: Any = Session(*conditions)
    active = session if is_active else Session()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: active)
    register_source(session, DataSource)
    assert session.left == 0
    assert session.has_rows is becomes_active


def test_another_refusal_is_told() -> None:
    session: Any = Session("DATA_SOURCE_NOT_FOUND")
    with pytest.raises(AnalysisException, match="refused"):
        register_source(session, DataSource)

"""Sources are registered once; Spark itself is tested in ``tests/spark``."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource

from headgate.pipeline.spark_sources import register_source


class Session:
    """A session that answers a registration with an error of this condition."""

    def __init__(self, condition: str | None) -> None:
        self._condition = condition
        self.registered: list[type[DataSource]] = []
        self.dataSource = self

    def register(self, source: type[DataSource]) -> None:
        self.registered.append(source)
        if self._condition is not None:
            error: Any = AnalysisException("refused")
            error.getCondition = lambda: self._condition
            raise error


@pytest.mark.parametrize("condition", [None, "DATA_SOURCE_ALREADY_EXISTS"])
def test_a_source_may_be_known_already(condition: str | None) -> None:
    session: Any = Session(condition)
    register_source(session, DataSource)
    assert session.registered == [DataSource]


def test_another_refusal_is_told() -> None:
    session: Any = Session("DATA_SOURCE_NOT_FOUND")
    with pytest.raises(AnalysisException, match="refused"):
        register_source(session, DataSource)

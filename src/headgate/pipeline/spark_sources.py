"""Sources in Python that a session of Spark knows by their names."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource


def register_source(session: SparkSession, source: type[DataSource]) -> None:
    """Make a source known to a session. A second call changes nothing.

    Spark asks the active session whether the name is taken, and adds the source to ``session``. So
    it refuses a session that ``newSession`` made, which yet does not find the source, while the one
    it was made of is active. After a refusal ``session`` is the active one.
    """
    if not _is_added(session, source) and SparkSession.getActiveSession() is not session:
        session.createDataFrame([], "value int")  # makes it active
        _is_added(session, source)


def _is_added(session: SparkSession, source: type[DataSource]) -> bool:
    """Whether Spark added the source now: not if the active session knows its name."""
    try:
        session.dataSource.register(source)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        return False
    return True

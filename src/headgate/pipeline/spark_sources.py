"""Sources in Python that a session of Spark knows by their names."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource


def register_source(session: SparkSession, source: type[DataSource]) -> None:
    """Make a source known to a session. A second call changes nothing.

    Spark refuses it in a session which ``newSession`` made of one that knows the source.
    """
    try:
        session.dataSource.register(source)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise

"""Rows are brought together by the columns that partition the table. What Spark makes of it is in
``tests/spark/test_pipeline_writes.py``."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
from pyspark.sql import DataFrame

from headgate.pipeline.store import clustering
from headgate.pipeline.store.clustering import clustered, messages_by_hour
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST


class Text:
    """A column as a text; Spark's own needs a session."""

    def __init__(self, text: str) -> None:
        self.text = text

    def cast(self, _: str) -> Text:
        return self

    def __mul__(self, other: int) -> Text:
        return Text(f"{self.text} * {other}")

    def __add__(self, other: Text) -> Text:
        return Text(f"{self.text} + {other.text}")


class Functions:
    """What the module uses of ``pyspark.sql.functions``."""

    col = expr = Text

    @staticmethod
    def unix_date(name: str) -> Text:
        return Text(f"days({name})")

    @staticmethod
    def date_trunc(unit: str, of: Text) -> Text:
        return Text(f"{unit} of {of.text}")


class Session:
    """A session that does not run everything in one task."""

    conf: ClassVar[dict[str, str]] = {}


class Frame:
    """Remembers what is asked of it."""

    sparkSession = Session()  # noqa: N815  # as Spark names it

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*values: Any) -> Frame:
            self.did.append((name, *(getattr(value, "text", value) for value in values)))
            return self

        return ask


@pytest.fixture(autouse=True)
def functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "F", Functions)


def test_rows_of_a_partition_are_in_one_task_hour_after_hour() -> None:
    frame = Frame()
    clustered(cast(DataFrame, frame), INTERVALS)
    assert frame.did == [
        ("hint", "rebalance", "date", "hour", "kind"),
        ("sortWithinPartitions", "days(date) * 24 + hour"),
    ]


def test_a_table_without_hours_is_not_sorted() -> None:
    frame = Frame()
    clustered(cast(DataFrame, frame), POLICY_BACKTEST)
    assert frame.did == [("hint", "rebalance", "run_id")]


def test_messages_are_brought_together_by_the_hour_of_their_window() -> None:
    frame = Frame()
    messages_by_hour(cast(DataFrame, frame))
    hour = "hour of __publishTime - interval 2 seconds"
    assert frame.did == [
        ("withColumn", "__publishHour", hour),
        ("hint", "rebalance", "__publishHour"),
        ("sortWithinPartitions", "__publishTime"),
        ("drop", "__publishHour"),
    ]

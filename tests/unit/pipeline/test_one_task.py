"""Settings inside one task are those of the session again behind it."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from headgate.pipeline.one_task import everywhere, in_one_task, is_one_task, one_task, together
from tests.unit.pipeline.test_session import Settings

ADAPTIVE = "spark.sql.adaptive.enabled"


def test_settings_are_restored_also_after_a_failure() -> None:
    settings = Settings(**{ADAPTIVE: "true", "spark.sql.codegen.wholeStage": "false"})
    before = dict(settings.values)
    session: Any = SimpleNamespace(conf=settings)
    with suppress(ArithmeticError), one_task(session):
        assert is_one_task(session)
        assert settings.get(ADAPTIVE) == "false"
        raise ArithmeticError
    assert settings.values == before
    assert not is_one_task(session)


def test_rows_are_in_one_partition_only_inside() -> None:
    session: Any = SimpleNamespace(conf=Settings())
    rows: Any = SimpleNamespace(
        sparkSession=session,
        coalesce=lambda count: ("rows", count),
        repartition=lambda *key: ("shuffled", key),
    )
    assert in_one_task(rows) is rows
    assert together(rows, ["topic", "minute"]) == ("shuffled", ("topic", "minute"))
    with one_task(session):
        assert in_one_task(rows) == together(rows, ["topic"]) == ("rows", 1)
        assert everywhere(rows) is rows

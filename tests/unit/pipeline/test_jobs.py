"""How failures of a job are told; the jobs themselves are played in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.jobs import _plain_errors


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DeltaError("Generic error: no room\nand a page of more"), "Generic error: no room"),
        (OSError(28, "No space left on device", "/t/x"), "[Errno 28] No space left on device"),
        (PySparkException("first line\nsecond line"), "first line"),
    ],
)
def test_what_the_engine_and_the_disk_refuse_is_one_sentence(
    error: Exception, said: str, tmp_path: Path
) -> None:
    log = tmp_path / "spark.log"
    with pytest.raises(PipelineError) as caught, _plain_errors(log):
        raise error
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(f"(all of it: {log})")
    assert "\n" not in str(caught.value)
    assert log.read_text(encoding="utf-8") == f"{error}\n"


def test_the_reason_survives_where_the_log_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught, _plain_errors(tmp_path / "none" / "spark.log"):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == "[Errno 28] No space left on device"


def test_a_table_that_is_not_there_is_told_as_well(tmp_path: Path) -> None:
    with pytest.raises(PipelineError), _plain_errors(tmp_path / "spark.log"):
        DeltaTable(str(tmp_path / "nothing"))

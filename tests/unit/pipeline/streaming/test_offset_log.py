"""The newest batch of Spark's checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.streaming.offset_log import PlannedBatch, discard_batch, newest_batch


def plan(checkpoint: Path, number: int, *offsets: str) -> None:
    folder = checkpoint / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *offsets]))
    (folder / f".{number}.crc").write_bytes(b"crc")


def commit(checkpoint: Path, number: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_checkpoint_without_batches(tmp_path: Path) -> None:
    assert newest_batch(str(tmp_path / "none")) is None
    (tmp_path / "offsets").mkdir()
    assert newest_batch(str(tmp_path)) is None


def test_the_newest_batch_by_number(tmp_path: Path) -> None:
    plan(tmp_path, 0, '{"a":1}', "-")
    assert newest_batch(str(tmp_path)) == PlannedBatch(0, False, (), ({"a": 1}, {}))
    for number in range(9, 11):
        plan(tmp_path, number, f'{{"a":{number}}}')
        commit(tmp_path, number)
    assert newest_batch(str(tmp_path)) == PlannedBatch(10, True, ({"a": 9},), ({"a": 10},))


def test_a_discarded_batch_is_planned_again(tmp_path: Path) -> None:
    plan(tmp_path, 0, '{"a":1}')
    commit(tmp_path, 0)
    plan(tmp_path, 1, '{"a":2}')
    discard_batch(str(tmp_path), 1)
    discard_batch(str(tmp_path), 1)
    assert newest_batch(str(tmp_path)) == PlannedBatch(0, True, (), ({"a": 1},))
    assert not list((tmp_path / "offsets").glob(".1*"))


@pytest.mark.parametrize("text", ["", "v2\n{}\n{}", "v1\n{}", "v1\n{}\nnot json", "v1\n{}\n[]"])
def test_another_format_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(text)
    with pytest.raises(InputError, match="offsets/0 has another format"):
        newest_batch(str(tmp_path))

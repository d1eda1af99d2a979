"""Largest values by text, from footers where these tell them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.store.largest_values import largest_by
from headgate.pipeline.store.table_store import store_of

Rows = list[tuple[str | None, int]]


def written(folder: Path, rows: Rows, group_rows: int = 1 << 20) -> Path:
    (folder / "t").mkdir(exist_ok=True)
    schema = pa.schema([("cluster", pa.string()), ("to_ns", pa.int64())])
    texts, numbers = [text for text, _ in rows], [number for _, number in rows]
    table = pa.table({"cluster": texts, "to_ns": numbers}, schema)
    path = folder / "t" / "part"
    pq.write_table(table, path, row_group_size=group_rows)
    return path


def largest(folder: Path) -> dict[str | None, int]:
    return largest_by(store_of(str(folder)), "t", "part", "cluster", "to_ns")


@given(
    rows=st.lists(st.tuples(st.sampled_from(["east", "west", None]), st.integers(0, 99))),
    group_rows=st.integers(1, 9),
    part_rows=st.integers(1, 9),
)
def test_it_is_the_largest_number_by_text(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, group_rows: int, part_rows: int
) -> None:
    folder = tmp_path_factory.mktemp("largest")
    written(folder, rows, group_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.pipeline.store.largest_values.PART_ROWS", part_rows)
        found = largest(folder)
    assert found == dict(sorted(rows, key=lambda row: row[1]))


@pytest.mark.parametrize("text", ["east", None])
def test_rows_of_one_text_are_not_read(tmp_path: Path, text: str | None) -> None:
    path = written(tmp_path, [(text, number) for number in range(1_000)])
    data = path.read_bytes()
    footer_bytes = int.from_bytes(data[-8:-4], "little") + 8
    # The rows are gone; the footer and both marks are there.
    path.write_bytes(data[:4] + bytes(len(data) - footer_bytes - 4) + data[-footer_bytes:])
    with pytest.raises(OSError, match=r".*"):
        pq.read_table(path)
    assert largest(tmp_path) == {text: 999}


def test_an_empty_file_has_none(tmp_path: Path) -> None:
    written(tmp_path, [])
    assert largest(tmp_path) == {}

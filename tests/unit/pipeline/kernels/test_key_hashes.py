"""Equal keys have equal hashes, others do not, however rows are cut into batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.key_hashes import SeenHashes, key_hashes

KEYS = st.tuples(st.none() | st.sampled_from(["", "a", "b", "é"]), st.none() | st.integers(-2, 2))
SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64())])
Key = tuple[str | None, int | None]


def table(keys: list[Key]) -> pa.Table:
    return pa.Table.from_pylist([{"name": n, "number": v} for n, v in keys], SCHEMA)


@given(st.lists(KEYS))
def test_hashes_are_equal_for_equal_keys_only(keys: list[Key]) -> None:
    hashes = key_hashes(table(keys), ["name", "number"]).tolist()
    assert len({*hashes}) == len({*keys})
    assert dict(zip(keys, hashes, strict=True)) == dict(
        zip(keys, key_hashes(table(keys[::-1]), ["name", "number"]).tolist()[::-1], strict=True)
    )


def test_the_order_of_columns_counts() -> None:
    rows = pa.table({"a": ["x", "y"], "b": ["y", "x"]})
    assert len({*key_hashes(rows, ["a", "b"]).tolist()}) == 2


@given(st.lists(st.lists(st.integers(0, 30), max_size=20)))
def test_repetitions_are_found_across_batches(batches: list[list[int]]) -> None:
    seen, known = SeenHashes(), set[int]()
    for batch in batches:
        expected = []
        for value in batch:
            expected.append(value in known)
            known.add(value)
        assert seen.add(np.array(batch, np.uint64)).tolist() == expected
    assert seen.smallest(5) == sorted(known)[:5]


def test_types_of_keys() -> None:
    rows = pa.table(
        {
            "t": pa.array([0, 1, None], pa.timestamp("us", tz="UTC")),
            "i": pa.array([0, 1, None], pa.int32()),
            "b": pa.array([b"", b"\x00", None], pa.binary()),
        }
    )
    for name in rows.column_names:
        assert len({*key_hashes(rows, [name]).tolist()}) == 3, name

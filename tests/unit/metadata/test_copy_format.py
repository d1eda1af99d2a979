"""The file format of the copy of the metadata: whole, grown, cut short, damaged at each byte."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.metadata.copy_format import (
    WINDOW_BYTES,
    CopiedRows,
    CopyEncoder,
    decode_copy,
    encode_change,
    encode_copy,
)
from headgate.metadata.store import Write

ROWS = {("topic", f"persistent://public/default/{n}"): b'{"number":%d}' % n for n in range(2_500)}
FEW = {("tenant", "acme"): b"{}", ("setting", "ä"): b"\xff\x00"}


def decoded(data: bytes, known: dict[tuple[str, str], bytes] | None = None) -> CopiedRows:
    return decode_copy(lambda at, size: data[at : at + size], len(data), "copy", known or {})


def grown(rows: dict[tuple[str, str], bytes], *changes: list[Write]) -> tuple[bytes, list[int]]:
    """A file with changes behind its rows, and the offsets behind each of them."""
    parts, crc = encode_copy(rows)
    data, ends = b"".join(parts), []
    for change in changes:
        part, crc = encode_change(change, crc)
        data += part
        ends.append(len(data))
    return data, ends


@pytest.mark.parametrize("rows", [{}, FEW, ROWS], ids=["none", "few", "many"])
def test_rows_come_back(rows: dict[tuple[str, str], bytes]) -> None:
    data, _ = grown(rows)
    found = decoded(data)
    assert (found.rows, found.end, found.rest_bytes) == (rows, len(data), 0)
    assert found.snapshot_bytes == len(data)
    assert found.crc == encode_copy(rows)[1]


def test_changes_apply_in_order() -> None:
    data, _ = grown(
        FEW,
        [Write("tenant", "acme", None), Write("tenant", "b", b"1")],
        [Write("tenant", "b", b"2"), Write("tenant", "none", None)],
    )
    found = decoded(data)
    assert found.rows == {("setting", "ä"): b"\xff\x00", ("tenant", "b"): b"2"}
    assert found.snapshot_bytes == len(grown(FEW)[0])


def test_a_file_cut_at_each_byte_has_the_changes_before() -> None:
    changes = [[Write("setting", str(n), b"x")] for n in range(3)]
    data, ends = grown(FEW, *changes)
    first = len(grown(FEW)[0])
    for cut in range(len(data)):
        if cut < first:
            with pytest.raises(CorruptionError, match="copy is damaged"):
                decoded(data[:cut])
            continue
        found = decoded(data[:cut])
        known = sum(end <= cut for end in ends)
        assert len(found.rows) == len(FEW) + known
        assert found.end == ([first, *ends])[known]
        assert found.rest_bytes == cut - found.end


def test_a_flipped_bit_is_found_and_costs_what_is_behind_it_at_most() -> None:
    data, ends = grown(FEW, [Write("setting", "1", b"x")], [Write("setting", "2", b"y")])
    first = len(grown(FEW)[0])
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 4
        if at < first:
            with pytest.raises(CorruptionError):
                decoded(bytes(damaged))
            continue
        found = decoded(bytes(damaged))
        assert found.rest_bytes
        assert len(found.rows) == len(FEW) + sum(end <= at for end in ends)


def test_a_record_of_another_copy_does_not_fit() -> None:
    data, _ = grown(FEW)
    other, _ = grown({}, [Write("setting", "1", b"x")])
    tail = other[len(grown({})[0]) :]
    assert decoded(data + tail).rows == FEW


def test_another_release_is_named_as_such() -> None:
    with pytest.raises(CorruptionError, match="of another release: headgate-metadata-copy 1"):
        decoded(b"headgate-metadata-copy 1\nrest")
    with pytest.raises(CorruptionError, match="first line"):
        decoded(b"")


@pytest.mark.parametrize("count", ["9" * 5_000, "1e3", "\u0663", "-1", "", "4"])
def test_a_number_of_rows_that_is_none_is_damage(count: str) -> None:
    encoder = CopyEncoder()
    encoder.add([("tenant", str(at), b"") for at in range(3)])
    encoder.add([("snapshot", count, None)])
    with pytest.raises(CorruptionError, match="it has 3 rows where it says"):
        decoded(b"".join(encoder.take()))


def test_a_file_is_read_a_part_at_a_time() -> None:
    rows = {("topic", f"t{at}"): bytes(200_000) for at in range(40)}
    rows["topic", "large"] = bytes(3 * WINDOW_BYTES)
    encoder = CopyEncoder()
    for (kind, key), value in rows.items():
        encoder.add([(kind, key, value)])
    encoder.end()
    data, reads = b"".join(encoder.take()), []

    def read(at: int, size: int) -> bytes:
        reads.append(size)
        return data[at : at + size]

    found = decode_copy(read, len(data), "copy", rows)
    assert found.rows == rows
    assert all(found.rows[key] is rows[key] for key in rows)
    assert sorted(reads)[-2:] <= [WINDOW_BYTES, 3 * WINDOW_BYTES + 100]


def test_the_parts_of_a_large_file_are_in_memory_once() -> None:
    """Three tenants with 49 MB of properties each made a save take all of it, beside what is
    kept."""
    encoder = CopyEncoder()
    parts: list[bytes] = []
    for number in range(16):
        encoder.add([("topic", f"t{number}", bytes(1 << 20))])
        assert encoder.held_bytes < 2 << 20
        parts += encoder.take()
    encoder.end()
    parts += encoder.take()
    assert len(decoded(b"".join(parts)).rows) == 16

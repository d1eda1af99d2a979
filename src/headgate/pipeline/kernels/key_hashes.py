"""64-bit hashes of the keys of rows, and which of them came before.

A hash stands for a key of several columns, most of them texts. Two keys of a file of a million rows
share a hash by chance once in forty million such files.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.array_types import Flags

Hashes: TypeAlias = npt.NDArray[np.uint64]

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))


def key_hashes(rows: pa.Table, names: Sequence[str]) -> Hashes:
    """The hash of some columns in each row; null is a value like others."""
    found = np.zeros(rows.num_rows, np.uint64)
    for name in names:
        found = _mixed(found ^ _column_hashes(rows.column(name).combine_chunks()))
    return found


class SeenHashes:
    """The hashes seen so far, each once, in sorted parts. A part is twice as long as the next."""

    def __init__(self) -> None:
        self._parts: list[Hashes] = []

    def add(self, hashes: Hashes) -> Flags:
        """Note some hashes; returns which of them were seen before, also among these."""
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        repeated = np.zeros(len(hashes), np.bool_)
        repeated[order[1:]] = ordered[1:] == ordered[:-1]
        for part in self._parts:
            places = np.minimum(np.searchsorted(part, hashes), len(part) - 1)
            repeated |= part[places] == hashes
        first = ordered[~repeated[order]]
        if len(first):
            self._parts.append(first)
        while len(self._parts) > 1 and len(self._parts[-2]) < 2 * len(self._parts[-1]):
            last = np.concatenate([self._parts.pop(), self._parts.pop()])
            last.sort()
            self._parts.append(last)
        return repeated

    def smallest(self, count: int) -> list[int]:
        """The smallest hashes, each once: a sample of the keys, whatever their order."""
        found = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._parts]))
        return [int(value) for value in found[:count]]


def _column_hashes(column: pa.Array) -> Hashes:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        encoded = column.dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        values = np.array([_text_hash(text) for text in texts], np.uint64)
        return values[encoded.indices.to_numpy(zero_copy_only=False)]
    numbers = column.cast(pa.int64()) if not pa.types.is_int64(column.type) else column
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).view(np.uint64)
    values = _mixed(values)
    if column.null_count:
        values = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, values)
    return values


def _text_hash(text: str | bytes | None) -> int:
    if text is None:
        return int(_NULL)
    data = text.encode() if isinstance(text, str) else text
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of SplitMix64: each bit of the result depends on all bits of a value."""
    mixed = values + _STEP
    mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FACTORS[0]
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _FACTORS[1]
    return np.asarray(mixed ^ (mixed >> _SHIFTS[2]), np.uint64)

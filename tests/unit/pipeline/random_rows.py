"""Rows with random values, of which many are equal, missing or at a limit, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.pipeline.play import T0, S

MINUTE = 60 * S

Draw = Callable[[Random], Any]
"""A random value."""


def among(*values: Any) -> Draw:
    """One of some values."""
    return lambda random: random.choice(values)


def minutes_of_subjects(
    seed: int,
    subjects: int,
    minutes: int,
    key: Callable[[int], Mapping[str, Any]],
    draws: Mapping[str, Draw],
    *,
    missing: float = 0.1,
    kept: float = 0.5,
) -> Iterator[dict[str, Any]]:
    """The minutes of some subjects in order, from an hour's last ten minutes on.

    ``missing`` is the share of minutes that are not there. With probability ``kept`` a value is
    that of the minute before.
    """
    random = Random(seed)
    for subject in range(subjects):
        values: dict[str, Any] = {}
        for number in range(minutes):
            if random.random() < missing:
                continue
            for name, draw in draws.items():
                if name not in values or random.random() >= kept:
                    values[name] = draw(random)
            from_ns = T0 + (50 + number) * MINUTE
            length_ns = random.choice((MINUTE, MINUTE, MINUTE, 30 * S))
            yield {
                **key(subject),
                **values,
                "from_ns": from_ns,
                "to_ns": from_ns + length_ns,
                "minute": datetime.fromtimestamp(from_ns // S, UTC),
            }


def assert_same_rows(found: pa.Table, expected: pa.Table, nearly: Sequence[str] = ()) -> None:
    """Both tables have the same rows; columns ``nearly`` may differ by a rounding."""
    assert found.schema == expected.schema
    assert found.num_rows == expected.num_rows
    for name in found.column_names:
        values, wanted = found.column(name).to_pylist(), expected.column(name).to_pylist()
        if name in nearly:
            assert values == [None if w is None else pytest.approx(w) for w in wanted], name
        else:
            assert values == wanted, name

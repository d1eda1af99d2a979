"""The bounds are checked when settings are made."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.ledger import LedgerSettings


def test_the_defaults_hold() -> None:
    assert LedgerSettings().segment_bytes == 64 << 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment_bytes", 100),
        ("segment_bytes", 1 << 31),
        ("extent_bytes", 1),
        ("checkpoint_records", 1),
        ("checkpoint_bytes", 1),
        ("ledger_entries_max", 0),
        ("ledger_bytes_max", 0),
        ("ledger_age_ms_min", -1),
        ("ledger_age_ms_max", 1),
        ("index_cache_bytes", -1),
        ("slice_items", 0),
    ],
)
def test_each_bound_is_named(name: str, value: int) -> None:
    with pytest.raises(InputError, match=rf"{name} is {value}; \d+ to \d+ is allowed"):
        LedgerSettings(**{name: value})

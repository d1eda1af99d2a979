"""Which files in a log's directory are its own."""

from __future__ import annotations

import pytest

from headgate.ledger.format.own_names import OWN_FILES, is_own, is_unfinished
from headgate.ledger.format.records import segment_name

SEGMENT = segment_name(255)
CHECKPOINTS = ("00000000000000ff.checkpoint", "00000000000000ff.checkpoint_copy")


@pytest.mark.parametrize("name", [*sorted(OWN_FILES), SEGMENT, *CHECKPOINTS])
def test_files_of_a_log_and_what_they_are_while_they_are_written(name: str) -> None:
    assert is_own(name)
    assert not is_unfinished(name)
    assert is_unfinished(f"{name}.tmp")
    assert not is_own(f"{name}.tmp")


@pytest.mark.parametrize(
    "name", ["thesis", "ff.log", "formats", "", f"x{SEGMENT}", f"{SEGMENT}.tmp"]
)
def test_files_of_others(name: str) -> None:
    assert not is_own(name)
    assert not is_unfinished(f"{name}.tmp")

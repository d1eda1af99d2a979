"""``python -m tests.service.small_segments``: ``headgate`` with small segments, of which seconds of
load fill many, so that seals, checkpoints and rewriting happen soon."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate.app import node
from headgate.base.units import KIB, NS_PER_S
from headgate.cli.group import main
from headgate.ledger import LedgerSettings
from headgate.policy.settings import Settings
from headgate.storage import log_rewriting

SEGMENT_BYTES: Final = 512 * KIB
CHECKPOINT_RECORDS: Final = 4_000
"""A checkpoint is written after half as many."""

_usual = node.ledger_settings


def _small(settings: Settings) -> LedgerSettings:
    return replace(
        _usual(settings), segment_bytes=SEGMENT_BYTES, checkpoint_records=CHECKPOINT_RECORDS
    )


if __name__ == "__main__":
    node.ledger_settings = _small
    log_rewriting.IDLE_NS = NS_PER_S  # type: ignore[misc]
    main(prog_name="headgate")

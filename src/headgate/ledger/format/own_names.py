"""The names of a log's own files. Its directory may be a link, and hold files of others."""

from __future__ import annotations

from typing import Final

from headgate.ledger.format.directory import (
    FORMAT_NAME,
    METADATA_COPY_NAME,
    TEMPORARY_SUFFIX,
)
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.identity import IDENTITY_NAME
from headgate.ledger.format.records import segment_of_checkpoint, segment_of_name

OWN_FILES: Final = frozenset(
    {"lock", FORMAT_NAME, IDENTITY_NAME, FLUSH_POSITION_NAME, METADATA_COPY_NAME}
)
"""Beside segments and checkpoints."""


def is_own(name: str) -> bool:
    """Whether a log has a file of that name."""
    return (
        name in OWN_FILES
        or segment_of_name(name) is not None
        or segment_of_checkpoint(name) is not None
    )


def is_unfinished(name: str) -> bool:
    """Whether it is the name of one of these files while it is written."""
    return name.endswith(TEMPORARY_SUFFIX) and is_own(name.removesuffix(TEMPORARY_SUFFIX))

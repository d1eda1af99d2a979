"""Reads the logs in Spark's checkpoint of a query: the offsets that it planned, and its commits.

``offsets/<n>`` is written before batch n runs, and ``commits/<n>`` when it is done. The first line
of an offset file is ``v1``, the second has Spark's own state, and each line after these is the
offset of one source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import InputError

_VERSION: Final = "v1"
_NO_OFFSET: Final = "-"
_OWN_LINES: Final = 2


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The newest batch that a query planned."""

    number: int
    is_committed: bool
    """Whether Spark knows that the batch is done."""
    starts: tuple[Mapping[str, Any], ...]
    """Where the batch begins, by source; empty for a query's first batch."""
    ends: tuple[Mapping[str, Any], ...]
    """Where the batch ends, by source."""


def newest_batch(checkpoint: str) -> PlannedBatch | None:
    """The newest batch of a checkpoint; None if there is none.

    Raises:
        InputError: a file has another format.
        OSError: a file cannot be read.
    """
    numbers = _numbers(Path(checkpoint, "offsets"))
    if not numbers:
        return None
    newest = max(numbers)
    starts = _offsets(checkpoint, newest - 1) if newest - 1 in numbers else ()
    is_committed = newest in _numbers(Path(checkpoint, "commits"))
    return PlannedBatch(newest, is_committed, starts, _offsets(checkpoint, newest))


def discard_batch(checkpoint: str, number: int) -> None:
    """Remove a planned batch, so that Spark plans it again with what the topics hold then.

    The query does not run, and nothing of the batch is in the tables.
    """
    for name in (f".{number}.crc", str(number)):
        with suppress(FileNotFoundError):
            Path(checkpoint, "offsets", name).unlink()


def _numbers(folder: Path) -> set[int]:
    try:
        return {int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()}
    except FileNotFoundError:
        return set()


def _offsets(checkpoint: str, number: int) -> tuple[Mapping[str, Any], ...]:
    path = Path(checkpoint, "offsets", str(number))
    lines = path.read_text(encoding="utf-8").split("\n")
    try:
        if lines[0] != _VERSION or len(lines) <= _OWN_LINES:
            raise ValueError
        found = [{} if line == _NO_OFFSET else json.loads(line) for line in lines[_OWN_LINES:]]
        if not all(isinstance(each, dict) for each in found):
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"{path} has another format than Spark's checkpoint of telemetry: it is damaged, or "
            "another version of Spark wrote it"
        ) from error
    return tuple(found)

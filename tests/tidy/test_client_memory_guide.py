"""The guide lists every kind of memory that clients make the broker hold, with its bounds."""

from __future__ import annotations

import re

from headgate.admin.body import BODY_BYTES_MAX
from headgate.app.http_bounds import HEAD_BYTES_MAX
from headgate.base.units import KIB, MIB
from headgate.broker.connection.bounds import (
    COMMAND_BYTES_MAX,
    COMMANDS_MAX,
    DESCRIPTION_BYTES_MAX,
    DESCRIPTIONS_BYTES_MAX,
    OBJECTS_MAX,
    UNREAD_BYTES_MAX,
)
from headgate.broker.held_memory import CONNECTION_BYTES, PENDING_ENTRY_BYTES, HeldMemory
from headgate.testing import World
from tests.tidy.tree import ROOT
from tests.unit.broker.playing import played

_TITLE = "### All that clients make the broker hold"
_KIND = re.compile(r"`(\w+)`")


def _rows() -> dict[str, list[str]]:
    """The cells of each row, by the kinds that it names."""
    text = (ROOT / "docs" / "guide" / "admin.md").read_text().partition(_TITLE)[2]
    table = text.partition("\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    kinds = [(_KIND.match(row[1]), row) for row in cells]
    found: dict[str, list[str]] = {}
    for kind, row in kinds:
        if kind is not None:
            found.setdefault(kind[1], row)
    return found


@played()
async def test_every_kind_that_is_measured_has_a_row(world: World) -> None:
    kinds = set(world.broker.client_memory.by_kind())
    assert set(HeldMemory._fields) < kinds
    assert set(_rows()) == kinds


def test_the_bounds_are_those_of_the_code() -> None:
    rows = _rows()
    assert f"{CONNECTION_BYTES // KIB} KiB each" in rows["connections"][1]
    assert f"{PENDING_ENTRY_BYTES} bytes each" in rows["pending"][1]
    assert f"{UNREAD_BYTES_MAX // MIB} MiB of answers" in rows["unsent"][2]
    assert f"{COMMANDS_MAX:,} or {COMMAND_BYTES_MAX // MIB} MiB" in rows["commands"][2]
    each, count = f"{DESCRIPTION_BYTES_MAX // KIB} KiB each", f"{OBJECTS_MAX:,} of a connection"
    together = f"may take {5 * DESCRIPTIONS_BYTES_MAX // MIB} MiB"
    assert all(text in rows["descriptions"][2] for text in (each, count, together))
    page = (ROOT / "docs" / "guide" / "admin.md").read_text()
    assert f"head {HEAD_BYTES_MAX // KIB} KiB, body {BODY_BYTES_MAX // MIB} MiB" in page

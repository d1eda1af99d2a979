"""The guide lists every kind of memory that clients make the broker hold, with its bounds."""

from __future__ import annotations

import re

from headgate.admin.body import BODY_BYTES_MAX
from headgate.admin.streaming import PART_BYTES
from headgate.admin.subscriptions import NAME_BYTES
from headgate.app.http_bounds import (
    HEAD_BYTES_MAX,
    HEADERS_MAX,
    READ_BYTES_PER_S_MIN,
    UNREAD_BODY_BYTES_MAX,
    WRITE_TIMEOUT_S,
)
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
from headgate.broker.http_memory import ANSWER_WAIT_S, REQUEST_BYTES
from headgate.facade.admin_facade import CLIENT_BYTES, SUBSCRIPTION_BYTES
from headgate.policy.settings import SETTINGS
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
    head = f"head {HEAD_BYTES_MAX // KIB} KiB, body {BODY_BYTES_MAX // MIB} MiB"
    behind = f"{UNREAD_BODY_BYTES_MAX // KIB} KiB behind the body"
    assert f"{head}, {HEADERS_MAX} headers, {behind}" in page


def test_the_bounds_of_the_web_port_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "guide" / "admin.md").read_text()
    request, making, unread = (
        line.split("|") for line in page.splitlines() if line.startswith("| a REST ")
    )
    assert f"{REQUEST_BYTES // KIB} KiB and its body" in request[2]
    each = f"{SUBSCRIPTION_BYTES // KIB} KiB for each subscription, {CLIENT_BYTES // KIB} KiB for"
    assert each in making[2]
    assert f"{NAME_BYTES} bytes for a name" in making[2]
    assert f"parts of {PART_BYTES // KIB} KiB" in making[3]
    assert f"it waits {ANSWER_WAIT_S:.0f} s, then 503" in making[4]
    assert (
        f"{WRITE_TIMEOUT_S:.0f} s, and one more for each {READ_BYTES_PER_S_MIN // KIB} KiB"
        in (unread[3])
    )
    assert f"`headgateHttpMemoryMB`, {SETTINGS['headgateHttpMemoryMB'].default} by default" in (
        page.replace("\n", " ")
    )

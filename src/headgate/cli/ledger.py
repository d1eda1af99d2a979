"""The commands ``headgate ledger``."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

import click
import msgspec

from headgate.app.options import DATA_DIRECTORY
from headgate.base.errors import HeadgateError
from headgate.base.units import KIB
from headgate.cli.group import SuggestingGroup

_Row = dict[str, Any]
EXIT_DAMAGED: Final = 1
EXIT_UNREADABLE: Final = 2
_COSTS_SHOWN_MAX: Final = 10
_PROGRESS_S: Final = 2.0

_data_dir = click.option(
    "--data-dir",
    "data_path",
    metavar="DIR",
    default=DATA_DIRECTORY,
    show_default=True,
    help="Data directory of the broker.",
)


class _UnreadableError(click.ClickException):
    """The directory cannot be read."""

    exit_code = EXIT_UNREADABLE


def _segment(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The number in a segment's file name."""
    try:
        return None if value is None else int(value.removesuffix(".log"), 16)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is no segment file, as 0000000000000007.log"
        ) from error


@click.group("ledger", cls=SuggestingGroup)
def ledger_group() -> None:
    """Check and list the stored messages of a stopped broker."""


@ledger_group.command("verify")
@_data_dir
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify_command(data_path: str, *, as_json: bool) -> None:
    """Read every byte and name what is damaged.

    Each damaged place has a file, an offset and what it costs: which messages of which topic, and
    which subscriptions. The command changes nothing. Stop the broker first.

    \b
    Exit status
    0  nothing is damaged
    1  something is damaged
    2  the directory cannot be read
    """
    from headgate.app.ledger_tools import verify_directory

    show = _Progress()
    try:
        found = verify_directory(data_path, show)
    except (HeadgateError, OSError) as error:
        raise _UnreadableError(str(error)) from error
    finally:
        show.end()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo(_text(found), nl=False)
    if not found["isSound"]:
        sys.exit(EXIT_DAMAGED)


@ledger_group.command("dump")
@_data_dir
@click.option("--log", "log", metavar="NAME", default="log", help="log or telemetry-log.")
@click.option("--topic", metavar="TOPIC", help="Only this topic: its full name or its number.")
@click.option("--segment", metavar="FILE", callback=_segment, help="Only this segment file.")
@click.option(
    "--from",
    "ordinal_min",
    metavar="ORDINAL",
    type=click.IntRange(0),
    default=0,
    help="Only messages with this ordinal or a higher one.",
)
@click.option("--bodies", "with_bodies", is_flag=True, help="Bodies of messages, in base64.")
def dump_command(
    data_path: str,
    log: str,
    topic: str | None,
    segment: int | None,
    ordinal_min: int,
    *,
    with_bodies: bool,
) -> None:
    """List the stored records as JSON, one a line.

    Sound and damaged records come in the order of their files. The command changes nothing. Stop
    the broker first.
    """
    from headgate.app.ledger_tools import dump_directory

    try:
        for row in dump_directory(
            data_path,
            log,
            topic=topic,
            segment=segment,
            ordinal_min=ordinal_min,
            with_bodies=with_bodies,
        ):
            click.echo(msgspec.json.encode(row))
    except BrokenPipeError:
        raise
    except (HeadgateError, OSError) as error:
        raise _UnreadableError(str(error)) from error


class _Progress:
    """Shows on a terminal how far a long check is."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + _PROGRESS_S
        self._shown = False

    def __call__(self, log: str, done_bytes: int, all_bytes: int) -> None:
        if time.monotonic() < self._next_s or not sys.stderr.isatty():
            return
        self._next_s = time.monotonic() + _PROGRESS_S
        self._shown = True
        part = 100 * done_bytes // max(all_bytes, 1)
        text = f"\r{log}: {_size_text(done_bytes)} of {_size_text(all_bytes)} ({part} %) "
        click.echo(text, nl=False, err=True)

    def end(self) -> None:
        """End the line, if one was shown."""
        if self._shown:
            click.echo(err=True)


def _text(found: _Row) -> str:
    """The result of ``verify`` as lines: each damaged place first, then notes and totals."""
    lines: list[str] = []
    if found["metadataProblem"]:
        lines += [
            f"metadata: {found['metadataProblem']}",
            "    lost: names of topics, policies",
            "",
        ]
    notes: list[str] = []
    damaged, refuses = bool(found["metadataProblem"]) + 0, False
    for log in found["logs"]:
        for finding in log["findings"]:
            where = f"{log['log']}/{_place(finding)}: {finding['what']}"
            if not finding["isDamage"]:
                notes.append(where)
                continue
            damaged += 1
            refuses |= finding["refusesStart"]
            lines += [where, *_cost_lines(finding), ""]
    if notes:
        lines += ["Notes, which are no damage:", *(f"    {note}" for note in notes), ""]
    lines += [
        f"{found['directory']}/{log['log']}: read {_size_text(log['readBytes'])} in "
        f"{log['files']:,} files, {log['soundEntries']:,} sound entries in {log['batches']:,} "
        "batches"
        for log in found["logs"]
    ]
    if not damaged:
        lines.append("Nothing is damaged.")
    else:
        lines.append(f"DAMAGED in {damaged:,} place{'' if damaged == 1 else 's'}.")
    if refuses:
        lines.append("A broker does not start on this directory as it is.")
    return "\n".join(lines) + "\n"


def _place(finding: _Row) -> str:
    name, offset, size_bytes = finding["file"], finding["offset"], finding["bytes"]
    if not size_bytes:
        return f"{name} offset {offset}" if offset else str(name)
    return f"{name} offset {offset} to {offset + size_bytes} ({size_bytes:,} bytes)"


def _cost_lines(finding: _Row) -> list[str]:
    costs = finding["costs"]
    lines = [f"    {_cost_text(cost)}" for cost in costs[:_COSTS_SHOWN_MAX]]
    if len(costs) > len(lines):
        lines.append(f"    and {len(costs) - len(lines):,} more; --json has all")
    if finding["refusesStart"]:
        lines.append("    a broker does not start with it")
    return lines or ["    costs no message"]


def _cost_text(cost: _Row) -> str:
    topic = cost.get("topic") or f"topic number {cost.get('topicNumber')} (of unknown name)"
    kind = cost["kind"]
    if kind == "lost":
        first = cost["firstMessageId"] or f"entry {cost['firstOrdinal']}"
        last = cost["lastMessageId"] or f"entry {cost['lastOrdinal']}"
        if cost["entries"] == 1:
            return f"lost: message {first} of {topic}"
        return f"lost: {cost['entries']:,} messages of {topic}, {first} to {last}"
    if kind == "may be lost":
        first = cost["firstMessageId"] or f"entry {cost['firstOrdinal']}"
        return f"may be lost: messages of {topic} near {first}"
    if kind == "acknowledgements":
        return (
            f"may be lost: acknowledgements of subscription {cost['subscription']} of {topic}, "
            "whose messages then come again"
        )
    if kind == "subscription":
        return "may be lost: a subscription of any topic that was created there"
    return "lost: the positions and subscriptions of all topics; records give back a part of them"


def _size_text(size_bytes: int) -> str:
    size, units = float(size_bytes), ["TiB", "GiB", "MiB", "KiB"]
    if size < KIB:
        return f"{size_bytes:,} bytes"
    size /= KIB
    while size >= KIB and len(units) > 1:
        size /= KIB
        units.pop()
    return f"{size:.1f} {units[-1]}"

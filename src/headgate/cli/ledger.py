"""The commands ``headgate ledger``."""

from __future__ import annotations

import sys
import time
from typing import Final

import click
import msgspec

from headgate.app.options import DATA_DIRECTORY
from headgate.base.errors import HeadgateError
from headgate.base.texts import size_text
from headgate.cli.group import SuggestingGroup
from headgate.cli.ledger_text import repair_text, verify_text

EXIT_DAMAGED: Final = 1
EXIT_UNREADABLE: Final = 2
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
            f"{value!r} is no segment file such as 0000000000000007.log"
        ) from error


@click.group("ledger", cls=SuggestingGroup)
def ledger_group() -> None:
    """Check, repair and list the stored messages of a stopped broker."""


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
        click.echo(verify_text(found), nl=False)
    if not found["isSound"]:
        sys.exit(EXIT_DAMAGED)


@ledger_group.command("repair")
@_data_dir
@click.option("--dry-run", is_flag=True, help="Only show what it would change.")
@click.option(
    "--rebuild-metadata",
    is_flag=True,
    help="Rebuild the metadata also if something stays lost.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    default="standalone",
    show_default=True,
    help="Cluster name, if the metadata is rebuilt without any copy.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def repair_command(
    data_path: str, *, dry_run: bool, rebuild_metadata: bool, cluster: str, as_json: bool
) -> None:
    """Repair what a checksum or a second copy proves to have been there.

    It invents nothing: what has no copy stays damaged, and is listed with what to do next. Lost or
    damaged metadata is rebuilt from its copy in the log. Before each change the bytes go to the
    folder repaired-TIME of the data directory. If a crash ends the command, run it again. Stop the
    broker first.

    \b
    Exit status
    0  nothing is damaged now
    1  something is damaged, or would be changed
    2  the directory cannot be read or written
    """
    from headgate.app.ledger_tools import repair_directory

    try:
        found = repair_directory(
            data_path, dry_run=dry_run, rebuild_metadata=rebuild_metadata, cluster=cluster
        )
    except (HeadgateError, OSError) as error:
        raise _UnreadableError(str(error)) from error
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo(repair_text(found), nl=False)
    if not found["isSound"]:
        sys.exit(EXIT_DAMAGED)


@ledger_group.command("dump")
@_data_dir
@click.option(
    "--log", "log", metavar="NAME", default="log", show_default=True, help="log or telemetry-log."
)
@click.option("--topic", metavar="TOPIC", help="Only this topic: its full name or its number.")
@click.option("--segment", metavar="FILE", callback=_segment, help="Only this segment file.")
@click.option(
    "--from-ordinal",
    "ordinal_min",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    help="Only messages with this ordinal or a higher one.",
)
@click.option(
    "--bodies", "with_bodies", is_flag=True, help="Print the bodies of messages too, in base64."
)
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
        text = f"\r{log}: {size_text(done_bytes)} of {size_text(all_bytes)} ({part} %) "
        click.echo(text, nl=False, err=True)

    def end(self) -> None:
        """End the line, if one was shown."""
        if self._shown:
            click.echo(err=True)

"""The commands ``headgate backup`` and ``headgate restore``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from headgate.access.admin_api import AdminApi
from headgate.base.texts import size_text
from headgate.base.units import GIB, KIB, MIB
from headgate.cli.connection.options import api_options, is_given

_RATE = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)")
_UNITS: Final = {"": 1, "K": KIB, "M": MIB, "G": GIB}
_PRIVATE_UMASK: Final = 0o077
"""A backup has every message, and the key of hashed names: it is readable by its owner alone."""


def _rate(_: click.Context, __: click.Parameter, value: str | None) -> float:
    """Bytes per second; 0 without a bound."""
    if value is None:
        return 0
    found = _RATE.fullmatch(value.upper())
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is no rate such as 20M (bytes per second; K, M or G)")
    return float(found[1]) * _UNITS[found[2]]


_rate_option = click.option(
    "--rate",
    "bytes_per_s",
    metavar="RATE",
    callback=_rate,
    help="Read at most this many bytes per second, such as 20M.  [default: no bound]",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.command("backup")
@click.option("--to", "target", metavar="DIR", required=True, help="Backup folder.")
@api_options
@click.option(
    "--data-dir",
    "data_path",
    metavar="DIR",
    help="Data directory of a stopped broker, in place of a URL.",
)
@_rate_option
@click.option(
    "--generations",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Generations to keep, this one included.",
)
@click.option("--check", is_flag=True, help="Read stored files again and replace damaged ones.")
@_json_option
def backup_command(
    target: str,
    connect: Callable[[], AdminApi],
    data_path: str | None,
    bytes_per_s: float,
    generations: int,
    *,
    check: bool,
    as_json: bool,
) -> None:
    """Back up the data of a running or a stopped broker.

    A running broker must be on this host. It goes on serving, but frees no disk space until the
    backup ends. The backup has everything that was acknowledged when it began.

    Each run adds a generation, a complete state, and copies only the segments that the folder does
    not have. If it fails or is killed, the former generations stay restorable.
    """
    if data_path is not None and is_given("admin_url"):
        raise click.UsageError("give --admin-url for a running broker, or --data-dir for a stopped")
    from headgate.app.backup.run import BackupOptions, back_up_running, back_up_stopped
    from headgate.cli.backup_hold import RunningHold

    with _private_files(), _progress("Backup") as progress:
        options = BackupOptions(target, bytes_per_s, generations, check)
        if data_path is not None:
            row = back_up_stopped(data_path, options, progress)
        else:
            held = RunningHold.begin(connect(), time.monotonic, time.sleep, _say_waiting)
            try:
                row = back_up_running(held, options, progress, held.tick)
            except BaseException:
                held.abandon()
                raise
    if as_json:
        _print_json(row)
        return
    click.echo(
        f"Generation {row['generation']}: {size_text(row['bytes'])} in {row['files']} files, of "
        f"which {size_text(row['copiedBytes'])} were copied."
    )


@click.command("restore")
@click.option("--from", "source", metavar="DIR", required=True, help="Backup folder.")
@click.option(
    "--data-dir", "data_path", metavar="DIR", help="New data directory, empty or missing."
)
@click.option(
    "--generation", metavar="N", type=int, help="Generation to restore.  [default: the newest]"
)
@click.option("--list", "as_list", is_flag=True, help="List the generations; restore nothing.")
@_rate_option
@_json_option
def restore_command(
    source: str,
    data_path: str | None,
    generation: int | None,
    bytes_per_s: float,
    *,
    as_list: bool,
    as_json: bool,
) -> None:
    """Restore a generation of a backup into a new data directory.

    Every file is checked. If the command is killed, no broker starts on the directory, and the same
    command begins anew.
    """
    from headgate.app.backup.run import list_generations, restore_into

    if as_list:
        _print_list(list_generations(source), as_json=as_json)
        return
    if data_path is None:
        raise click.UsageError("give the new data directory as --data-dir, or --list")
    with _private_files(), _progress("Restore") as progress:
        row = restore_into(source, generation, data_path, bytes_per_s, progress)
    if as_json:
        _print_json(row)
        return
    click.echo(
        f"Restored generation {row['generation']} of {row['created']} into {data_path}. Start it "
        f"with: headgate standalone --data-dir {data_path}"
    )


def _say_waiting(reason: str) -> None:
    from headgate.cli.backup_hold import BEGIN_S_MAX

    until = datetime.now(UTC) + timedelta(seconds=BEGIN_S_MAX)
    click.echo(f"Waiting until {until:%H:%M:%S} UTC to begin: {reason}.", err=True)


def _print_list(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        _print_json(rows)
        return
    if not rows:
        click.echo("No generations.")
    for row in rows:
        state = "running" if row["running"] else "stopped"
        click.echo(
            f"{row['generation']:>8}  {row['created']}  {size_text(row['bytes']):>10}  "
            f"{row['files']} files of a {state} broker"
        )


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


@contextmanager
def _private_files() -> Iterator[None]:
    """Make new files readable by their owner alone."""
    before = os.umask(_PRIVATE_UMASK)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, and nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None)

        def show(done_bytes: int, all_bytes: int) -> None:
            bar.update(task, completed=done_bytes, total=all_bytes)

        yield show

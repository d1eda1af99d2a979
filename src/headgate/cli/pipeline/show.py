"""The command ``headgate pipeline show``, which prints rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from headgate.base.clock import SystemClock
from headgate.cli import terminal
from headgate.cli.pipeline.common import folder_option, format_option, load, range_options
from headgate.pipeline.tables.catalogue import TABLES, VIEWS
from headgate.pipeline.time_span import parse_span


def _completed(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Names of tables for the shell: those of the folder, or all where none is named yet."""
    folder = ctx.params.get("out")
    names = sorted((*TABLES, *VIEWS))
    if folder and Path(folder).is_dir():
        tables = {path.parent.name for path in Path(folder).glob("*/_delta_log")}
        names = sorted((*tables, *(view for view, table in VIEWS.items() if table in tables)))
    return [name for name in names if name.startswith(incomplete)]


def _pairs(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = []
    for value in values:
        name, equals, text = value.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{value!r} is not COLUMN=VALUE.")
        pairs.append((name, text))
    return tuple(pairs)


def _names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


_HELP: Final = f"""Print rows of TABLE, without Spark.

The format table prints the latest 50 rows and the main columns; json and csv print all.

TABLE is {", ".join(TABLES)}, or a view: {", ".join(VIEWS)}.

Example: headgate pipeline show attribution --out tables --since 1h
"""


@click.command("show", short_help="Print rows of a table.", help=_HELP)
@click.argument("table", shell_complete=_completed)
@folder_option
@range_options
@click.option(
    "--count", metavar="N", type=click.IntRange(1),
    help="Print only the latest N rows; by default 50 as a table, all as json or csv.",
)  # fmt: skip
@click.option(
    "--where", metavar="COLUMN=VALUE", multiple=True, callback=_pairs,
    help="Print only rows with this value, such as verdict=CONSUMER. May be repeated: all columns"
    " must match, each with one of its values.",
)  # fmt: skip
@click.option(
    "--columns", metavar="A,B", callback=_names, help="Print only these columns, in this order."
)
@format_option
def show_command(
    table: str,
    out: str,
    since: str | None,
    until: str | None,
    count: int | None,
    where: tuple[tuple[str, str], ...],
    columns: tuple[str, ...],
    format_: Any,
) -> None:
    """Print the rows that the options select."""
    show = load("output.show")
    span = parse_span(since, until, SystemClock.wall_ns())
    options = show.ShowOptions(
        out, table, span, count, where, columns, format_, terminal.width(), terminal.has_color()
    )
    show.show(options, sys.stdout, sys.stderr)

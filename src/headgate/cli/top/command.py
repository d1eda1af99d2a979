"""The command ``headgate top``."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from headgate.access.admin_api import AdminApi
from headgate.cli import terminal
from headgate.cli.connection.options import api_options
from headgate.cli.explain.command import COUNT_MAX, EXPLAIN_PATH, fetch
from headgate.cli.explain.printing import EVERY_S, EVERY_S_MIN, first_answer
from headgate.cli.live.watch import watch
from headgate.cli.top.view import TopView


@click.command("top")
@click.option(
    "--interval",
    "every_s",
    metavar="SECONDS",
    type=click.FloatRange(EVERY_S_MIN),
    default=EVERY_S,
    show_default=True,
    help="Time from an answer to the next request.",
)
@click.option(
    "--rows",
    "count",
    metavar="N",
    type=click.IntRange(1, COUNT_MAX),
    default=100,
    show_default=True,
    help="Number of largest backlogs to ask for.",
)
@api_options
def top_command(connect: Callable[[], AdminApi], every_s: float, count: int) -> None:
    """Show the largest backlogs and their causes, live; ? lists the keys.

    Into a pipe or file the table is printed once.

    The exit status is 0 after q, 1 if no broker answers at the start, and 2 if it refuses. A
    broker that goes away later is no end: the last line says so, and figures stay until it is back.
    """
    api = connect()
    path = f"{EXPLAIN_PATH}?count={count}&timeline=true"
    ask = functools.partial(fetch, api)
    view = TopView(api.url, path, first_answer(ask, path), is_drawn=terminal.has_color())
    if terminal.can_redraw():
        watch(view, ask, every_s)
    else:
        click.echo("\n".join(line.plain.rstrip() for line in view.table(terminal.width())))

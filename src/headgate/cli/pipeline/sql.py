"""The command ``headgate pipeline sql``, which queries the tables in SQL."""

from __future__ import annotations

import sys
from typing import Any

import click

from headgate.cli import terminal
from headgate.cli.pipeline.common import (
    folder_option,
    format_option,
    load,
    range_options,
    spark_options,
)
from headgate.pipeline.options import FolderOptions, SqlOptions
from headgate.pipeline.spark_options import SparkOptions


@click.command("sql", short_help="Query the tables in SQL.")
@click.argument("query", required=False)
@folder_option
@range_options
@click.option(
    "--count", metavar="N", type=click.IntRange(1),
    help="Print only the first N rows; by default 50 as a table, all as json or csv.",
)  # fmt: skip
@format_option
@spark_options
def sql_command(
    query: str | None,
    out: str,
    since: str | None,
    until: str | None,
    count: int | None,
    format_: Any,
    spark: SparkOptions,
) -> None:
    """Run a query of Spark's SQL over the tables and views of the folder.

    Without QUERY a prompt asks for queries, with completion and history; if the standard input is
    no terminal, it has the query. The tables are read as they are, without a lock; with --since or
    --until the query sees only rows of the range, and files of other hours are not read.

    Example: headgate pipeline sql --out tables "SELECT topic, sum(growth_messages) AS grew FROM
    attribution GROUP BY topic ORDER BY grew DESC"
    """
    folder = FolderOptions(
        out, since, until, format_, terminal.width(), terminal.has_color(), spark
    )
    options = SqlOptions(folder, count)
    if query is None and sys.stdin.isatty():
        prompt = load("sql.prompt")
        with load("queries.sql").open_queries(options, sys.stderr) as queries:
            prompt.ask_for_queries(queries, options, sys.stdout, sys.stderr)
        return
    text = sys.stdin.read() if query is None else query
    load("queries.sql").run_sql(text, options, sys.stdout, sys.stderr)

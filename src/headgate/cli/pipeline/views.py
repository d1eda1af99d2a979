"""The command ``headgate pipeline views``, which prints the views' SQL for an engine."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import folder_option, load


@click.command("views", short_help="Print CREATE VIEW statements for an engine.")
@folder_option
@click.option(
    "--engine", type=click.Choice(["spark", "duckdb", "delta"]), required=True,
    help="spark: a session with headgate; duckdb: its extension delta; delta: Spark with a Delta"
    " connector and without headgate.",
)  # fmt: skip
def views_command(out: str, engine: str) -> None:
    """Print the statements that make the tables and views of the folder in SQL, without Spark.

    Beside nanoseconds there are timestamps and seconds, and JSON texts are arrays and maps.

    Example: headgate pipeline views --out tables --engine duckdb > views.sql
    """
    script, dialect = load("sql.script"), load("sql.dialect")
    sys.stdout.write(script.view_script(out, dialect.DIALECTS[engine]))

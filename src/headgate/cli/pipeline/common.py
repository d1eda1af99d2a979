"""What the pipeline's commands share: options, exit statuses, and how modules are loaded."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from headgate.base.errors import HeadgateError
from headgate.pipeline.options import BROKER_URL, TELEMETRY_TOPIC, WEB_URL

EXIT_FOUND: Final = 3
"""Exit status when ``--fail-on`` or ``--fail-within`` found what it looks for."""

_EXTRA_MODULES: Final = frozenset(
    {
        "pyspark", "pyspark_pulsar", "pyarrow", "pandas", "numpy", "numba", "deltalake", "pulsar",
        "plotly", "jinja2", "prometheus_client",
    }
)  # fmt: skip

Command = Callable[..., None]


class SparkMissingError(HeadgateError):
    """What the pipeline runs on is not installed."""


def load(module: str) -> Any:
    """A module of the pipeline, which imports what only ``headgate[spark]`` has.

    Raises:
        SparkMissingError: something that it needs is not installed.
    """
    try:
        return importlib.import_module(f"headgate.pipeline.{module}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA_MODULES:
            raise
        raise SparkMissingError(
            f"the pipeline needs Spark, and the package {missing!r} is not installed: "
            "pip install 'headgate[spark]', and have Java 17 or newer"
        ) from error


def source_options(command: Command) -> Command:
    """``--broker-url``, ``--web-url``, ``--out``, ``--topic``: what is read and to where."""
    for option in (
        click.option(
            "--topic", default=TELEMETRY_TOPIC, show_default=True, help="The telemetry topic."
        ),
        click.option(
            "--out", metavar="DIR", required=True, type=click.Path(file_okay=False),
            help="Folder of the tables; made when missing, gone on with when not.",
        ),
        click.option(
            "--web-url", "web_urls", metavar="URL", multiple=True, default=(WEB_URL,),
            show_default=True, help="Admin API of a broker; one for each --broker-url.",
        ),
        click.option(
            "--broker-url", "broker_urls", metavar="URL", multiple=True, default=(BROKER_URL,),
            show_default=True, help="A broker to read telemetry from; may be repeated.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def folder_option(command: Command) -> Command:
    """``--out``, of commands that only look at what is there."""
    return click.option(
        "--out", metavar="DIR", required=True, type=click.Path(file_okay=False),
        help="Folder of the tables.",
    )(command)  # fmt: skip


def range_options(command: Command) -> Command:
    """``--since`` and ``--until``."""
    until = click.option("--until", metavar="T", help="End, written as --since; now by default.")
    since = click.option(
        "--since", metavar="T", help="Begin: ISO 8601 with offset, or an age such as 2h."
    )
    return since(until(command))


def format_option(command: Command) -> Command:
    """``--format``."""
    return click.option(
        "--format", "format_", type=click.Choice(["table", "json", "csv"]), default="table",
        show_default=True, help="For people; or an array of objects, or lines with a header.",
    )(command)  # fmt: skip


@contextmanager
def interruptible() -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted; the next run goes on from here.", err=True)
        raise

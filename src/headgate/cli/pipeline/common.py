"""Options and exit statuses that the commands of ``headgate pipeline`` share."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
from click.core import ParameterSource

from headgate.access.client_config import ClientConfig
from headgate.base.errors import HeadgateError
from headgate.cli.connection.options import ACCESS_PARAMETERS, access_options, is_given, warn
from headgate.cli.connection.sources import warn_of_open_tls
from headgate.cli.pipeline.access import access_of
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.options import (
    BROKER_URL,
    RETAIN_DAYS_MIN,
    TELEMETRY_TOPIC,
    WEB_URL,
    SourceOptions,
)
from headgate.pipeline.spark_options import SparkOptions, check_no_connect

EXIT_FOUND: Final = 3
"""Exit status when ``--fail-on``, ``--fail-within`` or ``--fail-on-quality`` found what it looks
for."""

_EXTRA_MODULES: Final = frozenset(
    {
        "pyspark", "pyspark_pulsar", "pyarrow", "pandas", "numpy", "numba", "deltalake", "pulsar",
        "plotly", "jinja2", "prometheus_client", "prompt_toolkit",
    }
)  # fmt: skip

LINEAGE_KEY_VARIABLE: Final = "OPENLINEAGE_API_KEY"
"""Environment variable of the token for lineage events, as for OpenLineage's own clients."""

Command = Callable[..., None]


class SparkMissingError(HeadgateError):
    """A package that the pipeline needs is not installed."""


def load(module: str) -> Any:
    """A module of the pipeline, which imports packages of ``headgate[spark]``.

    Raises:
        SparkMissingError: such a package is not installed.
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


def spark_options(command: Command) -> Command:
    """Options of the Spark session; the command receives them as one ``spark``."""

    @functools.wraps(command)
    def with_spark(
        *args: Any,
        cores: int | None,
        driver_memory: str | None,
        spark_conf: tuple[str, ...],
        **others: Any,
    ) -> None:
        check_no_connect(os.environ)
        command(*args, spark=SparkOptions(cores, driver_memory, spark_conf), **others)

    decorated: Command = with_spark
    for option in (
        click.option(
            "--spark-conf", metavar="KEY=VALUE", multiple=True,
            help="A setting of Spark, such as spark.sql.shuffle.partitions=64; may be repeated.",
        ),
        click.option(
            "--driver-memory", metavar="SIZE",
            help="Heap of Spark's Java process, such as 4g; a fourth of the memory by default, from"
            " 1g to 16g.",
        ),
        click.option(
            "--cores", metavar="N", type=int,
            help="Cores of this machine that Spark uses; all by default.",
        ),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated


def lineage_option(command: Command) -> Command:
    """``--openlineage``; the command receives it as ``lineage``."""

    @functools.wraps(command)
    def with_lineage(*args: Any, openlineage: str | None, **others: Any) -> None:
        key = None if openlineage is None else os.environ.get(LINEAGE_KEY_VARIABLE) or None
        command(*args, lineage=LineageOptions(openlineage, key), **others)

    return click.option(
        "--openlineage", metavar="URL",
        help="Send OpenLineage events of this job to the URL, such as http://localhost:5000; a"
        f" token in {LINEAGE_KEY_VARIABLE} goes with them. None are sent by default.",
    )(with_lineage)  # fmt: skip


def source_options(command: Command) -> Command:
    """Options of what to read and where to write; the command receives them as one ``source``."""

    @functools.wraps(command)
    def with_source(
        broker_urls: tuple[str, ...],
        web_urls: tuple[str, ...],
        out: str,
        topic: str,
        connect: Callable[[], ClientConfig],
        work: str | None,
        fail_on_data_loss: bool,
        spark: SparkOptions,
        lineage: LineageOptions,
        scrapes: str | None = None,
        files: str | None = None,
        **others: Any,
    ) -> None:
        if scrapes is not None:
            check_no_brokers("--scrapes")
        if files is not None:
            check_no_brokers("--files")
        is_asking = scrapes is None and files is None and not others.get("no_read")
        config = connect() if is_asking else ClientConfig()
        if config.broker_url and not is_given("broker_urls"):
            broker_urls = (config.broker_url,)
        if not is_given("web_urls"):
            web_urls = (config.admin_url,)
        warn_of_open_tls(config, [*broker_urls, *web_urls], warn)
        source = SourceOptions(
            out, broker_urls, web_urls, topic, fail_on_data_loss,
            access_of(config, os.environ, warn), scrapes=scrapes, files=files, work=work,
            spark=spark, lineage=lineage,
        )  # fmt: skip
        command(source, **others)

    decorated = access_options(lineage_option(spark_options(with_source)))
    for option in _SOURCE_OPTIONS:
        decorated = option(decorated)
    return decorated


_SOURCE_OPTIONS: Final = (
    click.option(
        "--fail-on-data-loss", is_flag=True,
        help="End with status 1 if telemetry expired before it was read; by default the job"
        " prints the missing range and continues.",
    ),
    click.option(
        "--topic", metavar="TOPIC", default=TELEMETRY_TOPIC, show_default=True,
        help="The telemetry topic."
    ),
    click.option(
        "--work", metavar="DIR", type=click.Path(file_okay=False),
        help="Folder of checkpoints and Spark's log; --out by default, and required if --out is"
        " in S3. Use the same in all runs: with a new one the job reads everything again.",
    ),
    click.option(
        "--out", metavar="DIR", required=True, type=click.Path(file_okay=False),
        help="Folder of the tables, or s3://BUCKET/PREFIX. The first run creates it; later runs"
        " continue it.",
    ),
    click.option(
        "--admin-url", "web_urls", metavar="URL", multiple=True, default=(WEB_URL,),
        show_default=True, help="Admin API of a broker; one for each --broker-url.",
    ),
    click.option(
        "--broker-url", "broker_urls", metavar="URL", multiple=True, default=(BROKER_URL,),
        show_default=True, help="A broker to read telemetry from; may be repeated.",
    ),
)  # fmt: skip
"""Of what to read and where to write; the last one is the first in the help."""


def scrapes_option(command: Command) -> Command:
    """``--scrapes``, for commands that read once; used with :func:`source_options`."""
    return click.option(
        "--scrapes", metavar="DIR", type=click.Path(file_okay=False),
        help="Read /metrics texts of a Pulsar cluster instead of telemetry topics: files named"
        " <milliseconds since 1970>.prom, in one folder for each of several brokers.",
    )(command)  # fmt: skip


def files_option(command: Command) -> Command:
    """``--files``, for commands that read once; used with :func:`source_options`."""
    return click.option(
        "--files", metavar="DIR", type=click.Path(file_okay=False),
        help="Read files of telemetry records, as headgate agent writes them, instead of telemetry"
        " topics: in one folder for each cluster.",
    )(command)  # fmt: skip


def folder_option(command: Command) -> Command:
    """``--out``, for commands that only read existing tables."""
    return click.option(
        "--out", metavar="DIR", required=True, type=click.Path(file_okay=False),
        help="Folder of the tables, or s3://BUCKET/PREFIX.",
    )(command)  # fmt: skip


def retention_option(command: Command) -> Command:
    """``--retain``."""
    return click.option(
        "--retain", "retain_days", metavar="DAYS", type=click.IntRange(RETAIN_DAYS_MIN),
        help="Delete rows older than this many days; by default none.",
    )(command)  # fmt: skip


def range_options(command: Command) -> Command:
    """``--since`` and ``--until``."""
    until = click.option(
        "--until", metavar="TIME", help="End of the range, written as --since; now by default."
    )
    since = click.option(
        "--since", metavar="TIME",
        help="Start of the range: a time with its offset, such as 2026-11-21T10:00:00Z, or an age,"
        " such as 30s, 15m, 2h or 1d; by default the start of the tables.",
    )  # fmt: skip
    return since(until(command))


def format_option(command: Command) -> Command:
    """``--format``."""
    return click.option(
        "--format", "format_", type=click.Choice(["table", "json", "csv"]), default="table",
        show_default=True,
        help="table for the terminal, json as an array of objects, csv with a header line.",
    )(command)  # fmt: skip


def check_needed(name: str, needed: str, *, is_given: bool) -> None:
    """Refuse an option that has no effect without another one.

    ``name`` is the parameter's name, ``needed`` the other option, which ``is_given`` or not.
    Raises :class:`click.UsageError`.
    """
    source = click.get_current_context().get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE and not is_given:
        raise click.UsageError(f"--{name.replace('_', '-')} has no effect without {needed}.")


_OF_BROKERS: Final = (
    "broker_urls", "web_urls", "topic", "fail_on_data_loss", *ACCESS_PARAMETERS
)  # fmt: skip
"""Parameters of :func:`source_options` that only apply if brokers are asked."""


def check_no_brokers(option: str, *more: str) -> None:
    """Refuse options about brokers, which ``option`` does not ask, and the parameters ``more``.

    One error names all of them.

    Raises :class:`click.UsageError`.
    """
    context = click.get_current_context()
    given = [
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name in (*_OF_BROKERS, *more)
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        verb = "has" if len(given) == 1 else "have"
        raise click.UsageError(
            f"{' and '.join(given)} {verb} no effect with {option}, which asks no broker."
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Print after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted; the next run continues from here.", err=True)
        raise

"""``headgate pipeline``: Spark over the telemetry of brokers."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import click

from headgate.base.errors import HeadgateError
from headgate.cli import terminal
from headgate.pipeline.options import (
    BROKER_URL,
    TELEMETRY_TOPIC,
    WEB_URL,
    AttributeOptions,
    SourceOptions,
    StreamOptions,
)

TOKEN_VARIABLE = "HEADGATE_TOKEN"
"""Environment variable of the token: a command line is seen by everybody on the machine."""

_SPARK_MODULES = frozenset(
    {
        "pyspark", "pyspark_pulsar", "pyarrow", "pandas", "deltalake", "pulsar", "plotly",
        "jinja2", "prometheus_client",
    }
)  # fmt: skip


class SparkMissingError(HeadgateError):
    """What the pipeline runs on is not installed."""


@click.group("pipeline")
def pipeline_group() -> None:
    """Say why backlogs grew, from what brokers publish about themselves.

    Needs headgate[spark] and Java 17.
    """


def _source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a source; the command gets them as one ``source``."""

    @functools.wraps(command)
    def with_source(
        broker_urls: tuple[str, ...],
        web_urls: tuple[str, ...],
        out: str,
        topic: str,
        token_file: str | None,
        tls_trust_certs: str | None,
        tls_insecure: bool,
        **others: Any,
    ) -> None:
        token = None if token_file is not None else os.environ.get(TOKEN_VARIABLE) or None
        source = SourceOptions(
            out, broker_urls, web_urls, topic, token=token, token_path=token_file,
            trust_path=tls_trust_certs, allow_insecure=tls_insecure,
        )  # fmt: skip
        command(source, **others)

    decorated: Callable[..., None] = with_source
    for option in (
        click.option(
            "--tls-insecure", is_flag=True, help="Trust any certificate: for tests alone."
        ),
        click.option(
            "--tls-trust-certs", metavar="PATH", type=click.Path(exists=True, dir_okay=False),
            help="PEM file of the certificate authorities to trust; else the public ones.",
        ),
        click.option(
            "--token-file", metavar="PATH", type=click.Path(exists=True, dir_okay=False),
            help="File of the token for the brokers; else the variable HEADGATE_TOKEN.",
        ),
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
        decorated = option(decorated)
    return decorated


@pipeline_group.command("attribute", short_help="Judge each subscription over a time range.")
@_source_options
@click.option("--since", metavar="T", help="Begin: ISO 8601 with offset, or an age such as 2h.")
@click.option("--until", metavar="T", help="End, written as --since; now when left out.")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json"]), default="table",
    show_default=True, help="json: rows alone on the standard output.",
)  # fmt: skip
def attribute_command(
    source: SourceOptions,
    since: str | None,
    until: str | None,
    format_: Any,
) -> None:
    """Read what the telemetry topics hold and judge each subscription over a time range."""
    options = AttributeOptions(
        source, since, until, format_, terminal.width(), terminal.has_color()
    )
    jobs = _jobs()
    try:
        jobs.run_attribute(options, sys.stdout, sys.stderr)
    except KeyboardInterrupt:
        click.echo("Interrupted; the next run goes on from here.", err=True)
        raise


@pipeline_group.command("stream", short_help="Keep the tables up to date until interrupted.")
@_source_options
@click.option(
    "--trigger", "trigger_s", metavar="SECONDS", type=float, default=5.0, show_default=True,
    help="Time between two looks at the topics.",
)  # fmt: skip
def stream_command(source: SourceOptions, trigger_s: float) -> None:
    """Keep the tables up to date until interrupted; the next run goes on from there."""
    options = StreamOptions(source, trigger_s)
    jobs = _jobs()
    streaming = stopping = False

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal stopping
        if not streaming:
            raise KeyboardInterrupt
        stopping = True
        signal.signal(number, signal.SIG_DFL)

    def should_stop() -> bool:
        nonlocal streaming
        streaming = True
        return stopping

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        jobs.run_stream(options, sys.stderr, should_stop=should_stop)
    except KeyboardInterrupt:
        click.echo("Interrupted; the next run goes on from here.", err=True)
        raise


def _jobs() -> Any:
    """The module of the jobs, which imports Spark.

    Raises:
        SparkMissingError: something that it needs is not installed.
    """
    try:
        from headgate.pipeline import jobs
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _SPARK_MODULES:
            raise
        raise SparkMissingError(
            f"the pipeline needs Spark, and the package {missing!r} is not installed: "
            "pip install 'headgate[spark]', and have Java 17 or newer"
        ) from error
    return jobs

"""The commands ``headgate pipeline run`` and ``stream``, which read telemetry into tables."""

from __future__ import annotations

import signal
import sys
from datetime import date
from types import FrameType

import click

from headgate.base.units import PORT_MAX
from headgate.cli.pipeline.common import (
    EXIT_FOUND,
    check_needed,
    files_option,
    interruptible,
    load,
    retention_option,
    scrapes_option,
    source_options,
)
from headgate.pipeline.options import METRICS_HOST, TRIGGER_S_MIN, SourceOptions, StreamOptions


def _days(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[date, ...]:
    days = []
    for value in values:
        try:
            days.append(date.fromisoformat(value))
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is no day; use one such as 2026-11-21.") from error
    return tuple(days)


@click.command("run", short_help="Bring all tables up to date, then end.")
@source_options
@scrapes_option
@files_option
@click.option(
    "--recompute", "days", metavar="DAY", multiple=True, callback=_days,
    help="Recompute this day (UTC, such as 2026-11-21) in every derived table; given twice, all"
    " days from the first to the last.",
)  # fmt: skip
@click.option(
    "--fail-on-quality", is_flag=True,
    help="End with status 3 if new rows do not meet the expectations of their table, as the table"
    " quality says.",
)  # fmt: skip
def run_command(source: SourceOptions, days: tuple[date, ...], fail_on_quality: bool) -> None:
    """Read the telemetry topics up to now, bring all tables up to date, and end.

    Made for a schedule: it continues where the last run stopped and reads nothing twice.

    Example: headgate pipeline run --out tables
    """
    jobs = load("jobs")
    recompute_days = (min(days), max(days)) if days else None
    with interruptible():
        unmet = jobs.run_once(source, sys.stderr, recompute_days=recompute_days)
    if fail_on_quality and unmet:
        sys.exit(EXIT_FOUND)


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is no number of seconds; use one such as 5 or 0.5."
        ) from error


@click.command("stream", short_help="Keep the tables up to date until interrupted.")
@source_options
@click.option(
    "--trigger", "trigger_s", metavar="SECONDS", default="5", show_default=True,
    callback=_seconds, help=f"Time between two reads of the topics, at least {TRIGGER_S_MIN:g}.",
)  # fmt: skip
@click.option(
    "--metrics-port", metavar="N", type=click.IntRange(0, PORT_MAX),
    help="Serve Prometheus metrics at this port; 0 takes a free one and prints it.",
)  # fmt: skip
@click.option(
    "--metrics-host", metavar="HOST", default=METRICS_HOST, show_default=True,
    help="Address that --metrics-port listens at.",
)  # fmt: skip
@retention_option
def stream_command(
    source: SourceOptions,
    trigger_s: float,
    metrics_port: int | None,
    metrics_host: str,
    retain_days: int | None,
) -> None:
    """Keep the tables up to date until interrupted; the next run continues from there.

    Each batch with new telemetry prints one line to the standard error. The stream also merges
    small files and, with --retain, deletes old rows once an hour.

    Example: headgate pipeline stream --out tables --metrics-port 9101
    """
    check_needed("metrics_host", "--metrics-port", is_given=metrics_port is not None)
    options = StreamOptions(source, trigger_s, metrics_port, metrics_host, retain_days)
    jobs = load("jobs")
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
    with interruptible():
        jobs.run_stream(options, sys.stderr, should_stop=should_stop)

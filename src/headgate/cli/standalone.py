"""The command ``headgate standalone``."""

from __future__ import annotations

import gc

import click

from headgate.app.options import DATA_DIRECTORY, LOG_LEVELS, StandaloneOptions

PORT = click.IntRange(0, 65_535)


@click.command("standalone")
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    help="Settings, with the syntax and the keys of Pulsar's broker.conf.",
)
@click.option(
    "--data-dir",
    "data_path",
    metavar="DIR",
    default=DATA_DIRECTORY,
    show_default=True,
    help="Directory of messages and metadata.",
)
@click.option(
    "--broker-port",
    metavar="N",
    type=PORT,
    help="Port of the binary protocol, in place of brokerServicePort; 0 takes a free one.",
)
@click.option(
    "--web-port",
    metavar="N",
    type=PORT,
    help="Port of the admin API and /metrics, in place of webServicePort; 0 takes a free one.",
)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="One setting, which overrides the file; may be repeated.",
)
@click.option(
    "--insecure-listen",
    is_flag=True,
    help="Let other machines reach the broker although it asks clients for no credentials. Each "
    "start warns.",
)
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS),
    default="info",
    show_default=True,
    help="Lowest level to log. Log lines go to the standard error.",
)
@click.option(
    "--log-file",
    "log_path",
    metavar="FILE",
    help="Also append log lines to this file. It may be moved away while the broker runs.",
)
@click.option(
    "--audit-log",
    "audit_path",
    metavar="FILE",
    help="Append who changed what, and who was refused, to this file, one JSON object a line. "
    "Without it these lines are part of the log. It may be moved away while the broker runs.",
)
def standalone_command(
    config_path: str | None,
    data_path: str,
    broker_port: int | None,
    web_port: int | None,
    assignments: tuple[str, ...],
    log_level: str,
    log_path: str | None,
    audit_path: str | None,
    *,
    insecure_listen: bool,
) -> None:
    """Run a broker until it is interrupted.

    The broker speaks Pulsar's binary protocol and admin REST. When it is ready, it prints one line
    with its addresses.
    """
    # Modules are never garbage; app.run switches the collector on when the broker serves.
    gc.disable()
    from headgate.app.log_lines import start_logging
    from headgate.app.run import run_standalone

    ports = (("brokerServicePort", broker_port), ("webServicePort", web_port))
    all_assignments = [
        *assignments,
        *(f"{key}={port}" for key, port in ports if port is not None),
    ]
    start_logging(log_level, log_path, audit_path)
    options = StandaloneOptions(data_path, config_path, all_assignments, insecure_listen)
    run_standalone(options, click.echo)

"""The command ``headgate pipeline alerts``, which sends alerts about the tables."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from headgate.cli.pipeline.common import folder_option, interruptible, load
from headgate.pipeline.alerts.options import (
    COUNT_DEFAULT,
    KINDS,
    AlertOptions,
    Credentials,
)

TOKEN_VARIABLE: Final = "HEADGATE_ALERTS_TOKEN"
PASSWORD_VARIABLE: Final = "HEADGATE_ALERTS_PASSWORD"
WEBHOOK_VARIABLE: Final = "HEADGATE_ALERTS_WEBHOOK"
"""Environment variables of secrets: every user of the machine can see a command line."""


def _labels(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = []
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
        pairs.append((name, text))
    return tuple(pairs)


def _webhook(url: str | None, path: str | None, *, is_needed: bool) -> str | None:
    """The webhook's URL: of the command line, of a file, or of the environment."""
    if url is not None and path is not None:
        raise click.UsageError("--webhook and --webhook-file exclude each other.")
    if path is not None:
        found: str = load("alerts.delivery").read_secret(path, "--webhook-file")
        return found
    return url or (os.environ.get(WEBHOOK_VARIABLE) or None if is_needed else None)


@click.command("alerts", short_help="Send open backlogs and quotas to Alertmanager or a webhook.")
@folder_option
@click.option(
    "--alertmanager", "alertmanagers", metavar="URL", multiple=True,
    help="An Alertmanager, such as http://localhost:9093; repeat it for each of a cluster.",
)  # fmt: skip
@click.option(
    "--webhook", metavar="URL",
    help="A receiver of Alertmanager's webhooks, instead of an Alertmanager.",
)  # fmt: skip
@click.option(
    "--webhook-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="File with the webhook's URL, if the URL is a secret; HEADGATE_ALERTS_WEBHOOK may have it,"
    " too.",
)  # fmt: skip
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS, show_default=True,
    help="What to send alerts about; may be repeated.",
)  # fmt: skip
@click.option(
    "--after", metavar="DURATION", default="5m", show_default=True,
    help="Send an alert about a backlog that is open for so long.",
)  # fmt: skip
@click.option(
    "--within", metavar="DURATION", default="1h", show_default=True,
    help="Send an alert about a quota that is likely reached within this time.",
)  # fmt: skip
@click.option(
    "--alerts-max", "count", metavar="N", type=int, default=COUNT_DEFAULT, show_default=True,
    help="Most alerts, the most severe first; one more says how many are left out. Alerts that are"
    " open stay until they are over.",
)  # fmt: skip
@click.option(
    "--label", "labels", metavar="NAME=VALUE", multiple=True, callback=_labels,
    help="A label of all alerts, such as env=prod; may be repeated.",
)  # fmt: skip
@click.option(
    "--report-url", metavar="URL",
    help="Where headgate pipeline report is served; alerts link to its sections.",
)  # fmt: skip
@click.option(
    "--every", metavar="DURATION", help="Repeat until interrupted, such as 60s; once by default."
)
@click.option(
    "--expires", metavar="DURATION", default="15m", show_default=True,
    help="Alertmanager ends an alert that is not sent again within this time: at least twice the"
    " time between two runs.",
)  # fmt: skip
@click.option(
    "--repeat", metavar="DURATION", default="4h", show_default=True,
    help="Send a webhook an alert again that stays open for so long.",
)  # fmt: skip
@click.option(
    "--token-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="File with a bearer token for the target; by default HEADGATE_ALERTS_TOKEN has it.",
)  # fmt: skip
@click.option("--user", metavar="NAME", help="User for basic authentication.")
@click.option(
    "--password-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="File with that user's password; by default HEADGATE_ALERTS_PASSWORD has it.",
)  # fmt: skip
@click.option(
    "--tls-trust-cert-path", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
    help="PEM file of the certificate authorities to trust; the public ones by default.",
)  # fmt: skip
@click.option(
    "--work", metavar="DIR", type=click.Path(file_okay=False),
    help="Folder of the state, which says what was sent; --out by default, and required if --out"
    " is in S3. Use the same in all runs.",
)  # fmt: skip
@click.option(
    "--dry-run", "is_dry_run", is_flag=True,
    help="Print the requests for all open alerts as JSON and send nothing.",
)  # fmt: skip
def alerts_command(
    out: str,
    alertmanagers: tuple[str, ...],
    webhook: str | None,
    webhook_file: str | None,
    kinds: tuple[str, ...],
    after: str,
    within: str,
    count: int,
    labels: tuple[tuple[str, str], ...],
    report_url: str | None,
    every: str | None,
    expires: str,
    repeat: str,
    token_file: str | None,
    user: str | None,
    password_file: str | None,
    tls_trust_cert_path: str | None,
    work: str | None,
    is_dry_run: bool,
) -> None:
    """Send an alert for each open backlog, each quota that is reached or soon will be, and each
    fault of the tables; and its end when it is over.

    Without --every it runs once, for cron or a scheduler. It starts no Spark, and the tables stay
    as they are. The exit status is 1 if a target did not accept everything; the next run sends the
    rest.

    Example: headgate pipeline alerts --out tables --alertmanager http://localhost:9093 --every 60s
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    password = os.environ.get(PASSWORD_VARIABLE) or None
    credentials = Credentials(
        token=None if token_file is not None or user is not None else token,
        token_path=token_file,
        user=user,
        password=None if password_file is not None or user is None else password,
        password_path=password_file,
        trust_path=tls_trust_cert_path,
    )
    options = AlertOptions(
        out, alertmanagers, _webhook(webhook, webhook_file, is_needed=not alertmanagers), kinds,
        after, within, count, labels, report_url, every, expires, repeat, work, credentials,
        is_dry_run,
    )  # fmt: skip
    job = load("alerts.job")
    with interruptible():
        is_well = job.run_alerts(options, sys.stdout, sys.stderr)
    if not is_well:
        sys.exit(1)

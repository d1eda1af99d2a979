"""The command ``headgate accept-loss``."""

from __future__ import annotations

import click

from headgate.app.options import DATA_DIRECTORY


@click.command("accept-loss")
@click.argument("loss", metavar="metadata|log", type=click.Choice(["metadata", "log"]))
@click.option(
    "--data-dir",
    "data_path",
    metavar="DIR",
    default=DATA_DIRECTORY,
    show_default=True,
    help="Data directory of the broker.",
)
def accept_loss_command(loss: str, data_path: str) -> None:
    """Accept a loss of data that keeps the broker from starting.

    A broker does not start if its metadata and its log do not match. If you can, restore both from
    the same backup. If you cannot, accept the loss:

    \b
    metadata  the metadata is older than the log: messages of topics that were
              created later are deleted
    log       the log is missing or older than the metadata: its messages and
              subscriptions are gone, the topics stay

    Stop the broker first. The command accepts only a loss that the last start reported.
    """
    from headgate.app.accept_loss import accept_loss

    click.echo(accept_loss(loss, data_path))
    click.echo("Noted: the next start accepts this loss.")

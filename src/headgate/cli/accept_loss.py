"""``headgate accept-loss``."""

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
    help="The data directory whose start is refused.",
)
def accept_loss_command(loss: str, data_path: str) -> None:
    """Give up what a refused start would lose, so that the next start succeeds.

    A start is refused when metadata and log are not of the same state. Put both back from the same
    backup if you can. If you cannot, this gives up what is not there:

    \b
    metadata  the metadata are older than the log: messages of topics that were
              made later are deleted
    log       the log is missing or older than the metadata: its messages and
              subscriptions are gone, the topics stay

    Only what the start refuses can be given up; the broker must not run.
    """
    from headgate.app.accept_loss import accept_loss

    click.echo(accept_loss(loss, data_path))
    click.echo("Noted: the next start gives it up.")

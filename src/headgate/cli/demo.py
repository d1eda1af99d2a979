"""The command ``headgate demo``."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import sys
from types import FrameType

import click
from rich.console import Console

_WIDTH = 100
_SIGNALLED = 128
"""Added to a signal's number, it is the exit status that shells give to a signalled program."""


@click.command("demo")
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=float,
    default=60.0,
    show_default=True,
    help="How long the situations develop before the demo judges them.",
)
@click.option(
    "--spark/--no-spark",
    default=True,
    show_default=True,
    help="Run the pipeline too; the demo leaves it out if Spark or Java is missing.",
)
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False),
    help="Folder of the pipeline's tables; by default a new temporary folder.",
)  # fmt: skip
@click.option(
    "--keep", is_flag=True,
    help="Leave the brokers running at the end, to look at their pages, until Ctrl-C; their clients"
    " run for 15 minutes more.",
)  # fmt: skip
@click.option(
    "--secured", is_flag=True,
    help="Run the brokers with authentication and authorization, and every client with a token.",
)  # fmt: skip
def demo_command(seconds: float, spark: bool, out: str | None, keep: bool, secured: bool) -> None:
    """Build ten situations, explain each one, and repair one.

    The demo needs headgate[demo] and takes about 80 seconds. headgate[spark] and Java 17 add the
    pipeline. The exit status is 1 if a verdict differs from the situation that was built, if the
    relative limit does not follow the publish rate, or if adaptive publish throttling lets a
    backlog quota fill up or slows another producer than the one that fills it.
    """
    if importlib.util.find_spec("pulsar") is None:
        # The clients' processes import it.
        raise click.ClickException(
            "the demo needs the package pulsar-client: pip install 'headgate[demo]'"
        )
    from headgate.demo.run import DemoOptions, run_demo

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=shutil.get_terminal_size((_WIDTH, 0)).columns)
    try:
        status = run_demo(DemoOptions(seconds, spark, out, keep, secured), console)
    except KeyboardInterrupt:
        console.print("\nInterrupted: the brokers and their clients have ended.")
        raise
    sys.exit(status)


def _end(number: int, _: FrameType | None) -> None:
    """Exit through the clean-up of brokers, clients and temporary files."""
    sys.exit(_SIGNALLED + number)

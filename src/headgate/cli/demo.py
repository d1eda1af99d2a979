"""``headgate demo``."""

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
"""An exit status above says which signal ended the program, as shells have it."""


@click.command("demo")
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="How long the situations develop before they are judged.",
)
@click.option(
    "--spark/--no-spark",
    default=True,
    show_default=True,
    help="Run the pipeline too; without Spark or Java it is left out by itself.",
)
@click.option(
    "--out", metavar="DIR", type=click.Path(file_okay=False),
    help="Folder of the pipeline's tables; a new one among the temporary files when left out.",
)  # fmt: skip
def demo_command(seconds: float, spark: bool, out: str | None) -> None:
    """Build ten situations, explain each one, and repair one.

    Needs headgate[demo]; headgate[spark] and Java 17 add the pipeline. Takes about 80 seconds.
    The exit status is 1 when a verdict is not what its situation was built to be, when the relative
    limit does not follow what is published, or when adaptive publish throttling lets a backlog
    quota be reached or slows another producer than the one that fills it.
    """
    if importlib.util.find_spec("pulsar") is None:
        # What starts the clients' processes imports it, too.
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
        status = run_demo(DemoOptions(seconds, spark, out), console)
    except KeyboardInterrupt:
        console.print("\nInterrupted: the brokers and their clients have ended.")
        raise
    sys.exit(status)


def _end(number: int, _: FrameType | None) -> None:
    """Leave by way of what cleans up: brokers, clients and temporary files go."""
    sys.exit(_SIGNALLED + number)

"""A view on the terminal of the process."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from headgate.cli import terminal
from headgate.cli.live.poller import Answer, Poller
from headgate.cli.live.screen import Screen, View
from headgate.cli.live.terminal import LiveTerminal


def watch(view: View, fetch: Callable[[str], Answer], every_s: float) -> None:
    """Show ``view`` until the user ends it, with a newer answer of ``fetch`` every ``every_s``."""
    console = Console(no_color=not terminal.has_color())
    with LiveTerminal(console) as screen:
        Screen(view, screen, Poller(fetch), every_s, time.monotonic).run()

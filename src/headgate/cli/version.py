"""The command ``headgate version``."""

from __future__ import annotations

import platform

import click

from headgate import __version__


@click.command("version")
def version_command() -> None:
    """Print the versions of Headgate and of Python."""
    click.echo(f"headgate {__version__} (Python {platform.python_version()})")

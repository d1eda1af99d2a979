"""Failures of ``headgate admin``, with ``pulsar-admin``'s texts and its exit status 1.

Headgate's other commands end with 2 on a wrong command line; scripts that were written for
``pulsar-admin`` know 1 alone.
"""

from __future__ import annotations

from typing import IO, Any

import click


class AdminUsageError(click.ClickException):
    """The command line is wrong; how to use the command follows the sentence."""

    exit_code = 1

    def __init__(self, message: str, ctx: click.Context | None = None) -> None:
        """``ctx`` is the command that was misused; the running one when left out."""
        super().__init__(message)
        self._ctx = ctx or click.get_current_context(silent=True)

    def show(self, file: IO[Any] | None = None) -> None:
        """Write it to the standard error."""
        click.echo(self.format_message(), file, err=True)
        if self._ctx is None:
            return
        if isinstance(self._ctx.command, click.Group):
            click.echo(self._ctx.get_help(), file, err=True)
        else:
            click.echo(self._ctx.get_usage(), file, err=True)
            click.echo(f"Try '{self._ctx.command_path} --help' for help.", file, err=True)


class AbsentError(AdminUsageError):
    """``pulsar-admin`` has the command and Headgate does not; a list of others would bury that."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the sentence to the standard error."""
        click.echo(self.format_message(), file, err=True)


class RefusedError(click.ClickException):
    """The broker refused, or the request cannot be sent at all."""

    exit_code = 1

    def __init__(self, message: str, advice: str = "") -> None:
        """``advice`` stands behind the message."""
        super().__init__(message)
        self._advice = advice

    def show(self, file: IO[Any] | None = None) -> None:
        """Write it to the standard error as ``pulsar-admin`` does: the reason twice."""
        click.echo(f"{self.message}\n\nReason: {self.message}", file, err=True)
        if self._advice:
            click.echo(f"\n{self._advice}", file, err=True)


class NotConnectedError(click.ClickException):
    """The broker does not answer."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Write it to the standard error, ending as ``pulsar-admin`` does."""
        click.echo(f"{self.message}\n\nError connecting to Pulsar", file, err=True)

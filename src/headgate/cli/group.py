"""The group ``headgate``: a table of commands, loaded when they are called.

Help texts stand in the table, so that the list of commands costs no import. A row whose module is
not installed is not offered.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import click

from headgate import __version__
from headgate.base.errors import CorruptionError, HeadgateError, InputError
from headgate.base.input_errors import did_you_mean

EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


class SuggestingGroup(click.Group):
    """A group that says which of its commands may be meant by one that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, which in some versions does not say it, and never of commands not loaded."""
        name, known = args[0], self.list_commands(ctx)
        hint = "" if name in known else did_you_mean(name, known)
        if hint and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group whose commands are named by ``module:attribute`` until somebody calls one."""

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        """``table`` has for each name where its command is, and one line of help."""
        super().__init__(**attributes)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of the table."""
        return [name for name in self._table if self._is_installed(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in self._table or not self._is_installed(cmd_name):
            return None
        module, _, attribute = self._table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._table[name][1]) for name in self.list_commands(ctx)])

    def _is_installed(self, name: str) -> bool:
        return importlib.util.find_spec(self._table[name][0].partition(":")[0]) is not None


class _WrongInputError(click.ClickException):
    """As click's own errors about usage, without the line of usage."""

    exit_code = click.UsageError.exit_code


class _Main(LazyGroup):
    """The top group: turns expected failures into one sentence each.

    The exit status is 2 for input that cannot be, as for options that click itself refuses, and 1
    for everything else.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CorruptionError as error:
            raise click.ClickException(f"stored data is damaged: {error}") from error
        except InputError as error:
            raise _WrongInputError(str(error)) from error
        except HeadgateError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)


main = _Main(
    name="headgate",
    help="Flow control that explains itself, for Apache Pulsar.",
    table={
        "standalone": ("headgate.cli.standalone:standalone_command", "Run a broker."),
        "accept-loss": (
            "headgate.cli.accept_loss:accept_loss_command",
            "Give up what a refused start would lose.",
        ),
        "explain": (
            "headgate.cli.explain:explain_command",
            "Say what holds a backlog back, and which limit.",
        ),
        "admin": (
            "headgate.cli.admin.command:admin_group",
            "Ask and change a broker, with pulsar-admin's verbs.",
        ),
        "pipeline": (
            "headgate.cli.pipeline.command:pipeline_group",
            "Say with Spark why backlogs grew, from telemetry.",
        ),
        "demo": (
            "headgate.cli.demo:demo_command",
            "Build several kinds of backlog and explain each one.",
        ),
        "version": ("headgate.cli.version:version_command", "Print the version."),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
click.version_option(__version__, prog_name="headgate")(main)

"""The group ``headgate``, whose commands are loaded when they are called.

The table of commands has their help texts, so that listing them imports nothing. A command whose
module is not installed is not listed.
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
from headgate.cli import terminal

EXIT_INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


class SuggestingGroup(click.Group):
    """A group that suggests a command for a name that it does not have."""

    synonyms: Mapping[str, str] = {}
    """Names that people try, with the command of each."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, which suggests nothing in some versions, and no command that is not loaded."""
        name, known = args[0], self.list_commands(ctx)
        hint = "" if name in known else did_you_mean(self.synonyms.get(name, name), known)
        if hint and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group whose commands are ``module:attribute`` until one is called."""

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **attributes: Any) -> None:
        """``table`` has the place and one line of help for each name."""
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
    """As click's errors about usage, without the line of usage."""

    exit_code = click.UsageError.exit_code


class _Main(LazyGroup):
    """The top group, which turns each expected failure into one sentence.

    The exit status is 2 for input that is not allowed, as for options that click refuses, and 1
    for everything else.
    """

    synonyms = dict.fromkeys(("serve", "server", "start", "broker"), "standalone")

    def invoke(self, ctx: click.Context) -> Any:
        terminal.guard()
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
            "Accept a loss of data that keeps the broker from starting.",
        ),
        "ledger": (
            "headgate.cli.ledger:ledger_group",
            "Check, repair and list the stored messages of a stopped broker.",
        ),
        "backup": ("headgate.cli.backup:backup_command", "Back up the data of a broker."),
        "restore": (
            "headgate.cli.backup:restore_command",
            "Restore a backup into a new data directory.",
        ),
        "explain": (
            "headgate.cli.explain.command:explain_command",
            "Show what holds a backlog or a producer, and which limit.",
        ),
        "top": (
            "headgate.cli.top.command:top_command",
            "Show the largest backlogs and their causes, live.",
        ),
        "agent": (
            "headgate.cli.agent:agent_command",
            "Watch Pulsar clusters, and explain them as a broker does.",
        ),
        "tokens": (
            "headgate.cli.tokens:tokens_group",
            "Make keys and tokens for clients of any Pulsar cluster.",
        ),
        "certs": (
            "headgate.cli.certs:certs_group",
            "Make certificates for a trial of TLS.",
        ),
        "admin": (
            "headgate.cli.admin.command:admin_group",
            "Administer a broker with pulsar-admin's verbs.",
        ),
        "pipeline": (
            "headgate.cli.pipeline.command:pipeline_group",
            "Find out from telemetry, with Spark, why backlogs grew.",
        ),
        "demo": (
            "headgate.cli.demo:demo_command",
            "Build ten kinds of backlog and explain each one.",
        ),
        "version": ("headgate.cli.version:version_command", "Print the version."),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
click.version_option(__version__, prog_name="headgate")(main)

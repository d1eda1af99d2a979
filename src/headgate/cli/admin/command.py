"""The command line of ``headgate admin``: groups of verbs, made from their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from headgate.access.admin_api import AdminApi, AdminUrlError, split_url
from headgate.cli.admin.errors import AbsentError, AdminUsageError
from headgate.cli.admin.pulsar_verbs import missing_group, missing_verb
from headgate.cli.admin.verbs import Parameter, Server, Verb
from headgate.cli.connection.options import api_options
from headgate.cli.group import LazyGroup, SuggestingGroup

REQUEST_TIMEOUT_S: Final = 60
"""As ``pulsar-admin`` has it."""


_NAME_COLUMNS_MAX: Final = 40


class VerbCommand(click.Command):
    """One verb."""

    def __init__(self, verb: Verb) -> None:
        super().__init__(
            verb.name,
            params=[_click_parameter(parameter) for parameter in verb.parameters],
            callback=self._run,
            help=verb.summary,
        )
        self.verb = verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click, with the texts of ``pulsar-admin`` for what is wrong.

        Raises:
            AdminUsageError: what is given cannot be, or something is missing.
        """
        with _usage_errors(ctx, tuple(args), self.verb.parameters):
            rest = super().parse_args(ctx, args)
        missing = [
            parameter
            for parameter in self.verb.parameters
            if parameter.required and ctx.params[_key(parameter)] is None
        ]
        if missing and not ctx.resilient_parsing:
            raise AdminUsageError(_missing(missing), ctx)
        return rest

    def _run(self, **given: Any) -> None:
        server: Server = click.get_current_context().obj
        values = {
            parameter.label: _value(parameter, given[_key(parameter)])
            for parameter in self.verb.parameters
        }
        self.verb.run(server, values)


class _Group(SuggestingGroup):
    """A group that ends with status 1 on a wrong command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _usage_errors(ctx, tuple(args)):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_errors(ctx):
            return super().invoke(ctx)


class VerbGroup(_Group):
    """The verbs of one group of ``pulsar-admin``."""

    def __init__(self, name: str, summary: str, verbs: Sequence[Verb]) -> None:
        super().__init__(
            name,
            commands=[VerbCommand(verb) for verb in verbs],
            help=summary,
            no_args_is_help=False,
            subcommand_metavar="VERB ...",
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As every group, but a verb of ``pulsar-admin`` is no typing error."""
        if not ctx.resilient_parsing and args[0] not in self.commands:
            _refuse_absent(ctx, missing_verb(self.name or "", args[0], self.commands))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs, each with its whole summary."""
        with formatter.section("Verbs"):
            formatter.write_dl(
                [(name, command.help or "") for name, command in self.commands.items()],
                col_max=_NAME_COLUMNS_MAX,
            )


class _AdminGroup(_Group, LazyGroup):
    """The groups, each loaded when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As every group, but a group of ``pulsar-admin`` is no typing error."""
        if not ctx.resilient_parsing and args[0] not in self.list_commands(ctx):
            _refuse_absent(ctx, missing_group(*args[:2]))
        return super().resolve_command(ctx, args)


def _refuse_absent(ctx: click.Context, text: str) -> None:
    if text:
        raise AbsentError(text, ctx)


_MODULES: Final = "headgate.cli.admin"


@click.group(
    "admin",
    cls=_AdminGroup,
    help="Administer a broker with pulsar-admin's verbs and flags.\n\n"
    "The exit status is that of pulsar-admin: 0 on success, 1 on every failure. Headgate's other "
    "commands end with 2 if the command line is wrong.\n\n"
    "Write a namespace as tenant/namespace, and a topic as persistent://tenant/namespace/topic, as "
    "tenant/namespace/topic, or as topic if it is in public/default.",
    table={
        "tenants": (f"{_MODULES}.tenants:GROUP", "Create, change and delete tenants."),
        "clusters": (f"{_MODULES}.clusters:GROUP", "Show the cluster's name and addresses."),
        "brokers": (f"{_MODULES}.brokers:GROUP", "Show the broker, change its dynamic settings."),
        "broker-stats": (f"{_MODULES}.broker_stats:GROUP", "Show figures of the whole broker."),
        "namespaces": (f"{_MODULES}.namespaces:GROUP", "Manage namespaces and their policies."),
        "topics": (f"{_MODULES}.topics:GROUP", "Manage topics, subscriptions and messages."),
        "topicPolicies": (f"{_MODULES}.topic_policies:GROUP", "Manage policies of single topics."),
        "schemas": (f"{_MODULES}.schemas:GROUP", "Show and change the schemas of topics."),
        "permissions": (f"{_MODULES}.permissions:GROUP", "Show what roles may do."),
    },
    no_args_is_help=False,
    subcommand_metavar="GROUP VERB ...",
)
@api_options
@click.option(
    "--request-timeout", metavar="SECONDS", type=click.IntRange(min=1), default=REQUEST_TIMEOUT_S,
    show_default=True, help="Longest wait for an answer.",
)  # fmt: skip
def admin_group(connect: Callable[[], AdminApi], request_timeout: int) -> None:
    """Keep what verbs need to ask the broker. The help is above."""
    ctx = click.get_current_context()
    try:
        split_url(ctx.params["admin_url"])
    except AdminUrlError as error:
        raise AdminUsageError(f"Invalid value for option '--admin-url': {error}", ctx) from error
    ctx.obj = Server(connect, request_timeout)


def _click_parameter(parameter: Parameter) -> click.Parameter:
    metavar = f"<{parameter.label}>"
    if not parameter.names:
        return click.Argument(
            [_key(parameter)], type=parameter.read, required=False, metavar=metavar
        )
    if parameter.read is None:
        return click.Option([_key(parameter), *parameter.names], is_flag=True, help=parameter.help)
    has_default = parameter.default is not None
    return click.Option(
        [_key(parameter), *parameter.names],
        type=parameter.read,
        metavar=metavar,
        default=parameter.default,
        show_default=has_default,
        multiple=parameter.multiple,
        help=parameter.help + (" [required]" if parameter.required else ""),
    )


def _key(parameter: Parameter) -> str:
    """The parameter's name inside click, which has arguments in small letters."""
    return parameter.label.lower()


def _value(parameter: Parameter, given: Any) -> Any:
    if parameter.read is None:
        return parameter.given if given else parameter.default
    return given


def _missing(parameters: Sequence[Parameter]) -> str:
    """The options before the arguments, as picocli lists them."""
    options = [f"'{p.longest_name}=<{p.label}>'" for p in parameters if p.names]
    arguments = [f"'<{p.label}>'" for p in parameters if not p.names]
    plural = "s" if len(parameters) > 1 else ""
    kinds = [f"option{plural}"] * bool(options) + [f"parameter{plural}"] * bool(arguments)
    return f"Missing required {' and '.join(kinds)}: {', '.join([*options, *arguments])}"


def _place_of(option: str, ctx: click.Context) -> str:
    """Where an option belongs that a command around this one has; empty if none has it."""
    inner, outer = ctx, ctx.parent
    while outer is not None:
        if any(option in parameter.opts for parameter in outer.command.params):
            return f". It goes before '{inner.info_name}': {outer.command_path} {option} ..."
        inner, outer = outer, outer.parent
    return ""


@contextmanager
def _usage_errors(
    ctx: click.Context, words: Sequence[str] = (), parameters: Sequence[Parameter] = ()
) -> Iterator[None]:
    """Turn click's errors about usage into ``pulsar-admin``'s; ``words`` are what was given."""
    names = {name: parameter for parameter in parameters for name in parameter.names}
    try:
        yield
    except click.NoSuchOption as error:
        # Click names the first letter of ``-abc`` alone.
        name = error.option_name
        whole = next((word for word in words if word.startswith(name)), name)
        raise AdminUsageError(f"Unknown option: '{whole}'{_place_of(name, ctx)}", ctx) from error
    except click.BadOptionUsage as error:
        known = names.get(error.option_name)
        if known is None or known.read is None:
            raise AdminUsageError(error.message, ctx) from error
        raise AdminUsageError(
            f"Missing required parameter for option '{known.longest_name}' (<{known.label}>)", ctx
        ) from error
    except click.BadParameter as error:
        where = ""
        if isinstance(error.param, click.Option):
            where = f"Invalid value for option '{max(error.param.opts, key=len)}': "
        raise AdminUsageError(where + error.message, ctx) from error
    except click.UsageError as error:
        raise AdminUsageError(error.format_message(), ctx) from error

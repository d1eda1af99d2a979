"""The page of all commands, for ``generate_reference.py``: written from click's own objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from headgate.cli.admin.command import VerbCommand, VerbGroup, admin_group
from headgate.cli.admin.pulsar_verbs import PULSAR_VERBS
from headgate.cli.admin.verbs import Parameter, Verb
from headgate.cli.group import main

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

_HELP = "`-h`, `--help`"


def cli_page(table: Table) -> str:
    """Every command with its options; ``table`` makes a table in Markdown."""
    text = (
        "# Commands\n\n"
        f"This page lists every command with its options; {_HELP} prints the same. The exit\n"
        "status is 0 on success, 1 for a failure, 2 for a wrong command line, and 130 after\n"
        "Ctrl-C; `headgate admin` has 1 instead of 2, as `pulsar-admin`. In a checkout, write\n"
        "`./dev headgate ...`.\n"
    )
    return text + "".join(_command_text(main, table, "headgate", "##")) + _absent_text(table)


def _absent_text(table: Table) -> str:
    """The verbs of ``pulsar-admin`` that ``headgate admin`` lacks."""
    context = click.Context(admin_group)
    rows = []
    for group, verbs in PULSAR_VERBS.items():
        own = admin_group.get_command(context, group)
        present = own.commands if isinstance(own, click.Group) else {}
        absent = sorted(verbs - set(present))
        if absent or not verbs:
            names = ", ".join(f"`{verb}`" for verb in absent)
            rows.append((f"`{group}`", "all: " * (not present) + names))
    return (
        "\n## What pulsar-admin has and headgate admin lacks\n\n"
        "`headgate admin` says so, and ends with 1. The names are those of `pulsar-admin` 4.0.8;\n"
        "[what the admin API lacks](../guide/admin-coverage.md) has the answers of the broker.\n\n"
        + table(("group", "verbs"), rows)
    )


def _command_text(group: click.Group, table: Table, path: str, heading: str) -> Iterable[str]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(f"{path} {name} is in no table of commands")
        whole = f"{path} {name}"
        yield f"\n{heading} {whole}\n\n{_paragraphs(command)}"
        if isinstance(command, VerbGroup):
            yield _verbs_text(command, table)
            continue
        options = [p for p in command.params if isinstance(p, click.Option)]
        if not isinstance(command, click.Group):
            pieces = command.collect_usage_pieces(click.Context(command, info_name=whole))
            yield f"\n    {' '.join([whole, *pieces])}\n"
        if options:
            yield "\n" + table(("option", "default", "meaning"), map(_option_row, options))
        if isinstance(command, click.Group):
            yield from _command_text(command, table, whole, heading + "#")


def _paragraphs(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "")
    return "\n\n".join(map(_paragraph, text.split("\n\n"))) + "\n"


def _paragraph(text: str) -> str:
    """A paragraph on one line. click's mark before one that keeps its lines makes it a block."""
    lines = text.strip().splitlines()
    if lines[0].strip() != "\b":
        return " ".join(text.split())
    return "\n".join(f"    {line}" for line in lines[1:])


def _option_row(option: click.Option) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else _metavar(option)
    text, _, default = (option.help or "").partition("[default: ")
    return f"{names}{value}", default.removesuffix("]") or _default(option), text.strip()


def _metavar(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " " + " or ".join(f"`{choice}`" for choice in option.type.choices)
    return f" {option.metavar or option.type.name.upper()}"


def _default(option: click.Option) -> str:
    default: Any = option.default
    if option.required:
        return "required"
    if option.is_flag:
        return f"`{option.opts[0]}`" if default is True else ""
    if isinstance(default, tuple):
        return ", ".join(f"`{item}`" for item in default)
    return f"`{default}`" if isinstance(default, str | int | float) else ""


def _verbs_text(group: VerbGroup, table: Table) -> str:
    verbs = [
        command.verb for command in group.commands.values() if isinstance(command, VerbCommand)
    ]
    text = "\n" + table(("verb", "takes", "effect"), map(_verb_row, verbs))
    rows = list(_parameter_rows(verbs))
    return text + ("\n" + table(("option", "default", "meaning"), rows) if rows else "")


def _verb_row(verb: Verb) -> tuple[str, ...]:
    takes = [f"`<{p.label}>`" for p in verb.parameters if not p.names]
    takes += [f"`{p.longest_name}`" for p in verb.parameters if p.names]
    return f"`{verb.name}`", " ".join(takes), verb.summary


def _parameter_rows(verbs: Sequence[Verb]) -> Iterable[tuple[str, ...]]:
    """Each option once; with its verbs where the same name means different things."""
    found: dict[Parameter, list[str]] = {}
    for verb in verbs:
        for parameter in verb.parameters:
            if parameter.names:
                found.setdefault(parameter, []).append(verb.name)
    names = [parameter.names for parameter in found]
    for parameter, users in found.items():
        shown = ", ".join(f"`{name}`" for name in parameter.names)
        if parameter.read is not None:
            shown += f" `<{parameter.label}>`"
        if names.count(parameter.names) > 1:
            shown += f" of {', '.join(users)}"
        written = parameter.default if isinstance(parameter.default, str) else ""
        default = "required" if parameter.required else f"`{written}`" * bool(written)
        yield shown, default, parameter.help

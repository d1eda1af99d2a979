"""Commands on the pages are ones that the command line takes, word for word."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from headgate.cli.group import main
from tests.tidy.tree import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")))
_COMMAND = re.compile(r"^ +(?:\$ |\./dev )headgate ((?:.*\\\n)*.*)$", re.MULTILINE)
_ENDS_COMMAND = {"|", ">", "&&", "&"}


def documented() -> list[tuple[str, str]]:
    """Each command once, after the page on which it stands first."""
    seen: dict[str, str] = {}
    for page in PAGES:
        for text in _COMMAND.findall(page.read_text()):
            seen.setdefault(" ".join(text.replace("\\\n", " ").split()), page.name)
    return [(page_name, text) for text, page_name in seen.items()]


def test_there_are_commands_to_look_at() -> None:
    assert len(documented()) > 30


@pytest.mark.parametrize(("page", "text"), documented())
def test_the_command_line_takes_it(page: str, text: str) -> None:
    words = shlex.split(text, comments=True)
    ends = [number for number, word in enumerate(words) if word in _ENDS_COMMAND]
    take(main, "headgate", words[: ends[0]] if ends else words, None)


def take(command: click.Command, name: str, words: list[str], parent: click.Context | None) -> None:
    """Parse a command line as far as it goes, and carry nothing out."""
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name, parent=parent)
        _, rest, _ = command.make_parser(context).parse_args(words)
        if rest:
            found, inner, rest = command.resolve_command(context, rest)
            assert inner is not None
            take(inner, found or "", rest, context)
    else:
        command.make_context(name, words, parent=parent)

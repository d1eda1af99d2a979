"""Answers of the admin API as they are printed: once, or again and again."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click

from headgate.cli import terminal
from headgate.cli.explain.errors import EXIT_NOT_ANSWERED, ExplainError, NotHeadgateError
from headgate.cli.explain.text import explain_text

EVERY_S: Final = 2.0
EVERY_S_MIN: Final = 0.2
"""Least time in seconds between an answer and the next request."""

Fetch = Callable[[str], dict[str, Any]]
"""Gives the answer to a path, or raises an :class:`ExplainError`."""


def watched(topic: str | None, watch_s: str | None) -> tuple[str | None, float | None]:
    """TOPIC and the seconds of ``--watch``; None for one answer.

    In ``--watch orders`` the word is the topic, although the option may have a value.
    """
    if watch_s is None:
        return topic, None
    try:
        every_s = float(watch_s)
    except ValueError:
        if topic is not None:
            raise click.UsageError(f"--watch {watch_s!r} is no number of seconds.") from None
        return watch_s, EVERY_S
    if not EVERY_S_MIN <= every_s < float("inf"):
        raise click.UsageError(f"--watch takes {EVERY_S_MIN:g} seconds or more, not {watch_s}.")
    return topic, every_s


def print_answer(url: str, answer: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one answer of ``url``."""
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo(answer_text(url, answer, terminal.width()), nl=False)


def watch_answer(url: str, fetch: Fetch, path: str, every_s: float, *, as_json: bool) -> None:
    """Redraw the answer to ``path`` until the user ends it.

    Into a pipe, or as JSON, print one after the other until the process ends.
    """
    answer = first_answer(fetch, path)
    if as_json or not terminal.can_redraw():
        _print_again(url, fetch, path, answer, every_s, as_json=as_json)
        return
    answer_text(url, answer, terminal.width())
    # They load what a single answer, during an incident, need not wait for.
    from headgate.cli.live.text_view import TextView
    from headgate.cli.live.watch import watch

    watch(TextView(path, answer, functools.partial(answer_text, url)), fetch, every_s)


def first_answer(fetch: Fetch, path: str) -> dict[str, Any]:
    """The first of many answers, of a broker or agent of Headgate.

    Raises:
        ExplainError: there is none.
    """
    try:
        return fetch(path)
    except NotHeadgateError as error:
        raise ExplainError(
            f"{error.format_message()}; headgate agent watches an Apache Pulsar cluster and answers"
            " for it",
            EXIT_NOT_ANSWERED,
        ) from error


def _print_again(
    url: str, fetch: Fetch, path: str, answer: dict[str, Any], every_s: float, *, as_json: bool
) -> None:
    """Each answer is a line of JSON, or text; a failure goes to the standard error."""
    while True:
        if as_json:
            click.echo(json.dumps(answer))
        else:
            click.echo(answer_text(url, answer, terminal.width()))
        while True:
            time.sleep(every_s)
            try:
                answer = fetch(path)
                break
            except ExplainError as error:
                error.show()


def answer_text(url: str, answer: Mapping[str, Any], width: int) -> str:
    """An answer of ``url`` as text for the terminal.

    Raises:
        ExplainError: it is of an older release.
    """
    with reading_answer(url):
        return explain_text(answer, width, color=terminal.has_color())


@contextmanager
def reading_answer(url: str) -> Iterator[None]:
    """A context in which a field that an answer lacks means an older broker, and a value of
    another type no broker at all: what is shown live goes on with the next answer."""
    try:
        yield
    except KeyError as error:
        raise ExplainError(
            f"{url} runs an older release of Headgate, whose answer has no {error}: use that "
            "release's headgate explain, or --json",
            EXIT_NOT_ANSWERED,
        ) from error
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ExplainError(
            f"{url} answers with values that no release of Headgate has: what answers there is no "
            "broker, or damaged on its way",
            EXIT_NOT_ANSWERED,
        ) from error

"""The command ``headgate explain``, which asks a running broker what holds its backlogs.

Operators run it during an incident, so it loads little: no library for tables.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import click

from headgate.access.admin_api import AccessRefusedError, AdminApi, AdminUrlError, UnreachableError
from headgate.base.names import InvalidNameError, TopicName, parse_topic
from headgate.cli import terminal
from headgate.cli.connection.options import api_options
from headgate.cli.explain.text import explain_text

EXPLAIN_PATH: Final = "/admin/v2/headgate/explain"
STORAGE_PATH: Final = "/admin/v2/headgate/storage"
TIMEOUT_S: Final = 10.0
COUNT_MAX: Final = 1_000

NO_SUCH_TOPIC: Final = ("Topic ", "Partitioned Topic ")
"""How the reason begins if a Headgate broker does not have the topic."""

EXIT_NOT_ANSWERED: Final = 1
"""No Headgate broker of this release answers at the URL."""
EXIT_REFUSED: Final = 2
"""The request is wrong: no such topic, or a name or option that is not allowed."""


class ExplainError(click.ClickException):
    """One sentence for the operator, with an exit status."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        # Click has it as an attribute of the class.
        self.__dict__["exit_code"] = exit_status


@click.command("explain")
@click.argument("topic", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--storage", is_flag=True, help="Show what takes the disk, and which topics keep it.")
@click.option("--per-partition", is_flag=True, help="Show each partition of a partitioned topic.")
@api_options
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(1, COUNT_MAX),
    default=10,
    show_default=True,
    help="Number of backlogs to list without TOPIC, or of topics with --storage.",
)
def explain_command(
    topic: str | None,
    as_json: bool,
    storage: bool,
    per_partition: bool,
    connect: Callable[[], AdminApi],
    count: int,
) -> None:
    """Show what holds TOPIC back: the cause, the limit, where it is set, since when.

    Without TOPIC, list the largest backlogs; with --storage, the topics that keep most disk.
    A short name means a topic of public/default.

    The exit status is 0 if the broker answered, 1 if no broker did, and 2 if the request is wrong,
    for example because the topic does not exist.
    """
    if storage and (topic is not None or per_partition):
        raise click.UsageError("--storage is about the whole broker: it takes no TOPIC.")
    if storage:
        path = f"{STORAGE_PATH}?count={count}"
    elif topic is None:
        if per_partition:
            raise click.UsageError("--per-partition needs a TOPIC.")
        path = f"{EXPLAIN_PATH}?count={count}"
    else:
        try:
            path = topic_path(parse_topic(topic), per_partition=per_partition)
        except InvalidNameError as error:
            raise ExplainError(str(error), EXIT_REFUSED) from error
    api = connect()
    answer = fetch(api, path)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    try:
        text = explain_text(answer, terminal.width(), color=terminal.has_color())
    except KeyError as error:
        raise ExplainError(
            f"{api.url} runs an older release of Headgate, whose answer has no {error}: use that "
            "release's headgate explain, or --json",
            EXIT_NOT_ANSWERED,
        ) from error
    click.echo(text, nl=False)


def topic_path(topic: TopicName, *, per_partition: bool) -> str:
    """Where the admin API answers for ``topic``."""
    local = quote(topic.local, safe="")
    path = f"{EXPLAIN_PATH}/{topic.domain}/{topic.namespace}/{local}"
    return f"{path}?perPartition=true" if per_partition else path


def fetch(api: AdminApi, path: str) -> dict[str, Any]:
    """The admin API's JSON answer.

    Raises:
        ExplainError: the broker does not answer (status 1), or refuses (status 2).
        HeadgateError: a file of credentials cannot be used, or there is no token.
    """
    try:
        reply, body = api.ask(path, timeout_s=TIMEOUT_S)
    except AdminUrlError as error:
        raise ExplainError(str(error), EXIT_REFUSED) from error
    except UnreachableError as error:
        raise _unreachable(str(error)) from error
    except AccessRefusedError as error:
        raise ExplainError(str(error), EXIT_REFUSED) from error
    return _answer(api.url, reply.status, body)


def _unreachable(sentence: str) -> ExplainError:
    return ExplainError(f"{sentence} (--admin-url names the admin API)", EXIT_NOT_ANSWERED)


def _answer(url: str, status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    known = isinstance(answer, dict)
    if known and status == http.client.OK and ("subscriptions" in answer or "logs" in answer):
        return dict(answer)
    if known and "reason" in answer:
        if status == http.client.NOT_FOUND and not str(answer["reason"]).startswith(NO_SUCH_TOPIC):
            raise ExplainError(
                f"{url} is no Headgate broker (Apache Pulsar?): explain needs Headgate's own "
                "account (--admin-url names the admin API)",
                EXIT_NOT_ANSWERED,
            )
        asked_wrongly = status < http.client.INTERNAL_SERVER_ERROR
        code = EXIT_REFUSED if asked_wrongly else EXIT_NOT_ANSWERED
        raise ExplainError(f"{answer['reason']} (status {status})", code)
    raise _unreachable(f"{url} does not answer as a Headgate broker does (status {status})")

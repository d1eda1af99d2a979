"""The command ``headgate explain``, which asks a running broker or cluster what holds its backlogs.

Operators run it during an incident, so it loads little: no library for tables.
"""

from __future__ import annotations

import functools
import http.client
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import click

from headgate.access.admin_api import AccessRefusedError, AdminApi, AdminUrlError, UnreachableError
from headgate.access.json_bounds import decoded
from headgate.base.names import InvalidNameError, NamespaceName, TopicName, parse_topic
from headgate.base.units import S_PER_HOUR, S_PER_MINUTE
from headgate.cli.connection.options import api_options
from headgate.cli.explain.errors import (
    EXIT_NOT_ANSWERED,
    EXIT_REFUSED,
    ExplainError,
    NotHeadgateError,
)
from headgate.cli.explain.printing import EVERY_S, print_answer, watch_answer, watched

EXPLAIN_PATH: Final = "/admin/v2/headgate/explain"
STORAGE_PATH: Final = "/admin/v2/headgate/storage"
TIMEOUT_S: Final = 10.0
COUNT_MAX: Final = 1_000

NO_SUCH_TOPIC: Final = ("Topic ", "Partitioned Topic ")
"""How the reason begins if a Headgate broker does not have the topic."""

_PAGE_BYTES: Final = 64
"""How much of an answer shows whether it is a web page."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_WHERE_MAX: Final = 200

FOR_S_MIN: Final = 3
FOR_S_MAX: Final = S_PER_HOUR
_FOR: Final = re.compile(r"([1-9][0-9]{0,4})(s|m|h|min)?")
_UNITS_S: Final = {"s": 1, "m": S_PER_MINUTE, "min": S_PER_MINUTE, "h": S_PER_HOUR}


def _seconds(_: click.Context, __: click.Parameter, value: str) -> int:
    """``30s``, ``5m``; a number alone means seconds."""
    match = _FOR.fullmatch(value)
    seconds = int(match[1]) * _UNITS_S[match[2] or "s"] if match else 0
    if not FOR_S_MIN <= seconds <= FOR_S_MAX:
        raise click.BadParameter(f"{value!r} is no time such as 30s or 5m, from 3s to 1h")
    return seconds


def _namespaces(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(str(NamespaceName.parse(value)) for value in values)
    except InvalidNameError as error:
        raise click.BadParameter(str(error)) from error


@click.command("explain")
@click.argument("topic", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.option("--storage", is_flag=True, help="Show what takes the disk, and which topics keep it.")
@click.option("--per-partition", is_flag=True, help="Show each partition of a partitioned topic.")
@click.option(
    "--watch",
    "watch_s",
    metavar="[SECONDS]",
    is_flag=False,
    flag_value=str(EVERY_S),
    help=f"Ask a Headgate broker or agent again every so many seconds ({EVERY_S:g} by default) and"
    " redraw the answer until q is pressed.",
)
@api_options
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(1, COUNT_MAX),
    default=10,
    show_default=True,
    help="Number of backlogs to list without TOPIC, or of topics with --storage.",
)
@click.option(
    "--for",
    "seconds",
    metavar="TIME",
    default="30s",
    show_default=True,
    callback=_seconds,
    help="How long to look at an Apache Pulsar cluster: 30s, 5m. The longer, the surer.",
)
@click.option(
    "--namespace",
    "namespaces",
    metavar="TENANT/NAMESPACE",
    multiple=True,
    callback=_namespaces,
    help="Of an Apache Pulsar cluster, list the backlogs of this namespace alone; needs no"
    " superuser. May be given several times.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    default="",
    help="Cluster to ask about, if the URL is that of a headgate agent that watches several.",
)
@click.option(
    "--record",
    "record_path",
    metavar="FILE",
    default="",
    help="Keep the looks at an Apache Pulsar cluster in a new file, for --replay.",
)
@click.option(
    "--hash-names",
    is_flag=True,
    help="With --record, replace all names and addresses by hashes.",
)
@click.option(
    "--replay",
    "replay_path",
    metavar="FILE",
    default="",
    help="Judge the looks in a file of --record again; asks no broker.",
)
def explain_command(
    topic: str | None,
    as_json: bool,
    storage: bool,
    per_partition: bool,
    watch_s: str | None,
    connect: Callable[[], AdminApi],
    count: int,
    **others: Any,
) -> None:
    """Show what holds TOPIC back: the cause, the limit, where it is set, since when.

    Without TOPIC, list the largest backlogs; with --storage, the topics that keep most disk.
    A short name means a topic of public/default.

    A Headgate broker answers from its own account. At an Apache Pulsar cluster the command looks
    for --for TIME, reads only, and infers the answer.

    The exit status is 0 if the broker answered, 1 if no broker did, and 2 if the request is wrong,
    for example because the topic does not exist. With --watch this is about the first answer;
    later ones may fail, which the last line then says. Without a terminal --watch prints one answer
    after the other.
    """
    topic, every_s = watched(topic, watch_s)
    if storage and (topic is not None or per_partition):
        raise click.UsageError("--storage is about the whole broker: it takes no TOPIC.")
    if per_partition and topic is None:
        raise click.UsageError("--per-partition needs a TOPIC.")
    if others["hash_names"] and not others["record_path"]:
        raise click.UsageError("--hash-names needs --record FILE.")
    if every_s is not None and (others["replay_path"] or others["record_path"]):
        raise click.UsageError("--watch goes with neither --record nor --replay.")
    try:
        name = None if topic is None else parse_topic(topic)
    except InvalidNameError as error:
        raise ExplainError(str(error), EXIT_REFUSED) from error
    if others["replay_path"]:
        if storage or per_partition or others["record_path"]:
            raise click.UsageError("--replay goes with TOPIC, --count and --json alone.")
        from headgate.cli.explain.look import replayed

        answer = replayed(others["replay_path"], "" if name is None else name.full, count)
        print_answer(others["replay_path"], answer, as_json=as_json)
        return
    if storage:
        path = f"{STORAGE_PATH}?count={count}"
    elif name is None:
        path = f"{EXPLAIN_PATH}?count={count}"
    else:
        path = topic_path(name, per_partition=per_partition)
    if others["cluster"]:
        path += f"{'&' if '?' in path else '?'}cluster={quote(others['cluster'], safe='')}"
    api = connect()
    if every_s is not None:
        watch_answer(api.url, functools.partial(fetch, api), path, every_s, as_json=as_json)
        return
    try:
        answer = fetch(api, path)
    except NotHeadgateError as error:
        if storage or per_partition:
            raise
        answer = _look(api, name, count, others, error)
    print_answer(api.url, answer, as_json=as_json)


def _look(
    api: AdminApi,
    topic: TopicName | None,
    count: int,
    options: dict[str, Any],
    not_headgate: NotHeadgateError,
) -> dict[str, Any]:
    """Look at what is perhaps an Apache Pulsar cluster."""
    from headgate.cli.explain.look import LookRequest, answer_of_cluster
    from headgate.cli.explain.progress import progress

    if topic is not None and not topic.is_persistent:
        raise ExplainError(
            f"{topic} is not persistent: it has no backlog that could wait", EXIT_REFUSED
        ) from not_headgate
    request = LookRequest(
        topic="" if topic is None else topic.full,
        namespaces=options["namespaces"],
        count=count,
        seconds=options["seconds"],
        record_path=options["record_path"],
        is_hashed=options["hash_names"],
    )
    with progress(request.seconds) as show:
        return answer_of_cluster(api, request, show)


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
    if reply.status in _REDIRECTS:
        where = api.without_secrets(reply.getheader("location") or "")[:_WHERE_MAX]
        raise _unreachable(f"{api.url} sends the request on to {where!r}, where no credentials go")
    return _answer(api, reply.status, body)


def _unreachable(sentence: str) -> ExplainError:
    return ExplainError(f"{sentence} (--admin-url names the admin API)", EXIT_NOT_ANSWERED)


def _answer(api: AdminApi, status: int, body: bytes) -> dict[str, Any]:
    url = api.url
    try:
        answer = decoded(body)
    except ValueError:
        answer = None
    known = isinstance(answer, dict)
    if known and status == http.client.OK and ("subscriptions" in answer or "logs" in answer):
        return dict(answer)
    if known and "reason" in answer:
        if status == http.client.NOT_FOUND and not str(answer["reason"]).startswith(NO_SUCH_TOPIC):
            raise _not_headgate(url)
        asked_wrongly = status < http.client.INTERNAL_SERVER_ERROR
        code = EXIT_REFUSED if asked_wrongly else EXIT_NOT_ANSWERED
        reason = api.without_secrets(str(answer["reason"]))
        raise ExplainError(f"{reason} (status {status})", code)
    if status == http.client.NOT_FOUND:
        raise _not_headgate(url)
    if body[:_PAGE_BYTES].lstrip()[:1] == b"<":
        raise _unreachable(f"{url} answers with a web page, as a proxy or another server does")
    if status >= http.client.BAD_REQUEST:
        raise _unreachable(f"{url} answers with status {status}")
    raise _unreachable(
        f"{url} answers as neither Headgate nor Apache Pulsar does (status {status})"
    )


def _not_headgate(url: str) -> NotHeadgateError:
    return NotHeadgateError(
        f"{url} is no Headgate broker: this needs Headgate's own account (--admin-url names the "
        "admin API)",
        EXIT_NOT_ANSWERED,
    )

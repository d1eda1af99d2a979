"""A verb of ``headgate admin`` as a row of a table."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import click

from headgate.access.admin_api import (
    JSON,
    AccessRefusedError,
    AdminApi,
    UnreachableError,
    reason_in,
)
from headgate.access.json_bounds import decoded
from headgate.base.errors import HeadgateError
from headgate.base.names import NamespaceName, TopicName
from headgate.base.texts import encodable
from headgate.cli.admin.errors import NotConnectedError, RefusedError
from headgate.cli.admin.output import as_json
from headgate.cli.admin.values import namespace, topic

Values = Mapping[str, Any]
"""Values of the command line, by the parameters' labels."""

_SUCCESSES: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Server:
    """The admin API that the verbs talk to."""

    connect: Callable[[], AdminApi]
    timeout_s: float

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "") -> Answer:
        """Send one request. ``path`` is encoded; ``body`` is sent as JSON, ``None`` not at all.

        Raises:
            NotConnectedError: the broker does not answer.
            RefusedError: the answer is no success.
        """
        sent = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        try:
            api = self.connect()
            reply, data = api.ask(
                path, timeout_s=self.timeout_s, method=method, body=sent,
                content_type=content_type or JSON,
            )  # fmt: skip
        except UnreachableError as error:
            raise NotConnectedError(f"{error} (--admin-url names the admin API)") from error
        except AccessRefusedError as error:
            raise RefusedError(error.reason, error.advice) from error
        except HeadgateError as error:
            raise NotConnectedError(str(error)) from error
        if reply.status not in _SUCCESSES:
            reason = reason_in(data) or f"HTTP {reply.status} {reply.reason}"
            raise RefusedError(api.without_secrets(reason))
        return Answer(api.url, data, dict(reply.headers))

    def get(self, path: str) -> Any:
        """The JSON value at ``path``; ``None`` if nothing is set there.

        Raises:
            NotConnectedError: the broker does not answer.
            RefusedError: the answer is no success, or no JSON.
        """
        return self.ask("GET", path).json()


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful reply."""

    url: str
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        """The body decoded; ``None`` if it is empty.

        Raises:
            RefusedError: it is not JSON.
        """
        try:
            return decoded(self.body) if self.body else None
        except ValueError as error:
            raise RefusedError(f"{self.url} does not answer as a Pulsar admin API does") from error

    def text(self) -> str:
        """The body as text, whatever it holds."""
        return self.body.decode(errors="replace")


Read = Callable[[str], Any]
"""Makes a value of a text, or raises ``click.BadParameter``."""

Action = Callable[[Server, Values], None]
Query = Sequence[str]
"""Parts of a query, as templates; one whose value is ``None`` is left out."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument or option of a verb."""

    label: str
    """Its name in ``pulsar-admin``'s texts, and in templates and ``Values``."""
    read: Read | None
    """Reads its value; ``None``: a switch, which takes none."""
    help: str
    names: tuple[str, ...] = ()
    """As an option is written; none for an argument."""
    default: str | bool | None = None
    """As it would be written; of a switch, its value."""
    given: Any = True
    """The value of a switch that is given."""
    required: bool = False
    multiple: bool = False
    """Whether it may be repeated; the value is then a tuple."""

    @property
    def longest_name(self) -> str:
        """The name that texts about an option use."""
        return max(self.names, key=len)


@dataclass(frozen=True, slots=True)
class Verb:
    """One command of a group."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    run: Action


def argument(label: str, read: Read, meaning: str) -> Parameter:
    """A required argument. Its place is among the other parameters' before it."""
    return Parameter(label, read, meaning, required=True)


def option(
    names: str,
    label: str,
    read: Read,
    meaning: str,
    *,
    default: str | None = None,
    required: bool = False,
    multiple: bool = False,
) -> Parameter:
    """An option with a value. ``names`` are separated by spaces."""
    return Parameter(
        label, read, meaning, tuple(names.split()), default, required=required, multiple=multiple
    )


def switch(
    names: str, label: str, meaning: str, *, default: bool | None = False, given: bool = True
) -> Parameter:
    """An option without a value. ``default=None`` leaves it out of a query unless it is given."""
    return Parameter(label, None, meaning, tuple(names.split()), default, given)


CLUSTER_NAME: Final = argument("cluster", str, "cluster-name")
NAMESPACE_NAME: Final = argument("namespaceName", namespace, "tenant/namespace")
TOPIC_NAME: Final = argument("topicName", topic, "persistent://tenant/namespace/topic")

NAMESPACE_PATH: Final = "/admin/v2/namespaces/{namespaceName}"
TOPIC_PATH: Final = "/admin/v2/{topicName}"


def show(path: str, form: Callable[[Any], str] = as_json, query: Query = ()) -> Action:
    """Ask for a JSON value and print it in a form."""

    def run(server: Server, values: Values) -> None:
        echo(form(server.get(target(path, values, query))))

    return run


def show_text(path: str, query: Query = ()) -> Action:
    """Ask for bare text and print it."""

    def run(server: Server, values: Values) -> None:
        echo(server.ask("GET", target(path, values, query)).text())

    return run


def send(
    method: str, path: str, query: Query = (), body: Callable[[Values], Any] | None = None
) -> Action:
    """Change something; nothing is printed."""

    def run(server: Server, values: Values) -> None:
        sent = None if body is None else body(values)
        server.ask(method, target(path, values, query), sent)

    return run


def target(path: str, values: Values, query: Query = ()) -> str:
    """Fill in the templates of a path and its query, encoded.

    A slash in a value is encoded, but for those of a namespace's and a topic's full name.
    """
    parts = [_fill(part, values) for part in query if not _is_left_out(part, values)]
    filled = _fill(path, values)
    return f"{filled}?{'&'.join(parts)}" if parts else filled


def echo(text: str) -> None:
    """Print an answer; nothing for an empty list or map."""
    if text:
        click.echo(encodable(text))


def _fill(template: str, values: Values) -> str:
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return template.format_map({name: _segment(values[name]) for name in names})


def _is_left_out(template: str, values: Values) -> bool:
    fields = string.Formatter().parse(template)
    return any(name and values[name] is None for _, name, _, _ in fields)


def _segment(value: Any) -> str:
    if isinstance(value, TopicName):
        return f"{value.domain}/{value.namespace}/{_encoded(value.local)}"
    if isinstance(value, NamespaceName):
        return str(value)
    return _encoded(str(value).lower() if isinstance(value, bool) else str(value))


def _encoded(text: str) -> str:
    """``text`` as it stands in a path; bytes of the command line that are no UTF-8 as they are."""
    return quote(text, safe="", errors="surrogateescape")

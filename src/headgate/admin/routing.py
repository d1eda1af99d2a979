"""The routes of the admin API and their matching.

A path is split at ``/`` *before* its segments are percent-decoded: topic and subscription names
may hold an encoded slash. A fixed segment is preferred to a parameter. One trailing slash is
ignored (the Go client sends some).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from headgate.admin import body as bodies
from headgate.admin.absent import refusal_of
from headgate.admin.operations import Operation
from headgate.admin.shared_answers import SharedAnswers
from headgate.base.clock import Clock
from headgate.base.identity import NOBODY, Identity
from headgate.base.names import TopicName
from headgate.base.units import INT64_MAX, NS_PER_MS
from headgate.facade.protocol import Facade
from headgate.metadata.catalog import Change
from headgate.metadata.errors import RefusalError

JSON = "application/json"
BYTES = "application/octet-stream"

NAMESPACE_PATH = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC_PATH = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"

_DIGITS_MAX = 40
"""Longer texts are refused: Python refuses to read numbers of thousands of digits."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a handler."""

    status: int = 200
    body: bytes = b""
    content_type: str = ""
    """Empty: no Content-Type header, as Pulsar sends none without a body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, of plain ASCII."""
    parts: AsyncIterator[bytes] | None = None
    """The body of a long reply, made while it is sent."""
    discard: Callable[[], Awaitable[None]] | None = None
    """Frees what ``parts`` still hold, in slices, when the client is gone."""
    check: Callable[[], None] = lambda: None
    """Raises a refusal if the client may not get further parts: they are made for as long as it
    takes to read them, which may be an hour."""
    reason: str = ""
    """Why the request was refused or failed, for the audit log; the body has it, too."""


NO_CONTENT = Reply(204)
"""Most successful writes."""

EMPTY = Reply(200)
"""A policy that is not set, and writes of dynamic settings."""


def as_json(value: Any) -> Reply:
    """``value`` (anything that msgspec can encode) as the reply."""
    return Reply(200, msgspec.json.encode(value), JSON)


def as_text(text: str) -> Reply:
    """Bare text, which Pulsar nevertheless calls JSON."""
    return Reply(200, text.encode(), JSON)


Reserved = list[tuple[int, str]]
"""Bytes that are charged for an answer, and the tenants that it is about."""


@dataclass(slots=True)
class Progress:
    """How far a request has got, for the audit log."""

    is_begun: bool = False
    """Whether it was allowed and its handler has begun."""
    is_partly_done: bool = False
    """Whether something is carried out of a request about several partitions or subscriptions, one
    of which may be refused later."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as a handler gets it."""

    facade: Facade
    clock: Clock
    params: Mapping[str, str]
    """Decoded path segments by the names in the route's path."""
    query: Mapping[str, str]
    """Query parameters; the last one of a name. Unknown ones are ignored."""
    body: bytes
    reserved: Reserved = field(default_factory=list)
    """What is charged for the answer, and released once it is sent."""
    identity: Identity = NOBODY
    """Who asks."""
    operation: str = ""
    """The operation of the route."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the request, by their names in small letters."""
    shared: SharedAnswers = field(default_factory=SharedAnswers)
    """Answers that other clients get, too."""
    changes: list[Change] = field(default_factory=list)
    """The changes of the metadata that it has made."""
    progress: Progress = field(default_factory=Progress)
    check: Callable[[], None] = lambda: None
    """Raises a refusal if the client may not have the request carried out any more."""

    async def commit(self, change: Change) -> None:
        """Make a planned change of the metadata, and return when it is in effect.

        Raises:
            StorageError: it could not be stored.
        """
        await self.facade.commit(change)
        self.changes.append(change)

    def may(self, operation: Operation, resource: str, subscription: str = "") -> bool:
        """Whether the client may also perform another operation."""
        decision = self.facade.decide(self.identity, operation, resource, subscription)
        return decision.allowed

    def check_subscription(self, topic: TopicName, subscription: str) -> None:
        """Check that the client may perform the operation of the route also on a subscription that
        the path does not name.

        Raises:
            RefusalError: it may not.
        """
        self.facade.check_allowed(self.identity, self.operation, topic.full, subscription)

    async def reserve(self, size_bytes: int) -> None:
        """Wait for memory for an answer of about that size in the making.

        Raises:
            RefusalError: 503, there is none; or the client has lost its right meanwhile.
        """
        owner = self.params.get("tenant", "")
        await self.facade.reserve_answer(size_bytes, owner)
        self.reserved.append((size_bytes, owner))
        self.check()

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean query parameter; anything but ``true`` is false, as in Java."""
        text = self.query.get(name)
        return default if text is None or text == "" else text.lower() == "true"

    def number(self, name: str) -> int:
        """A path segment that is an integer.

        Raises:
            RefusalError: 404, since no route has anything else there.
        """
        return _read_number(name, self.params[name])

    def query_number(self, name: str, default: int) -> int:
        """A query parameter that is an integer.

        Raises:
            RefusalError: 404 for anything else, as Pulsar's server answers.
        """
        text = self.query.get(name)
        return default if text is None or text == "" else _read_number(name, text)

    def decoded(self, type_: Any) -> Any:
        """The body as ``type_``, or ``None`` if there is none.

        Raises:
            RefusalError: 400.
        """
        return None if bodies.is_empty(self.body) else bodies.decode(self.body, type_)

    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch."""
        return self.clock.wall_ns() // NS_PER_MS


def _read_number(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    if not is_number or int(digits) > INT64_MAX:
        raise RefusalError(404, f"{name} is {text[:80]!r}: a 64-bit integer is allowed")
    return int(text)


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter, for the description."""

    name: str
    type: Any
    """Its type, in msgspec's terms."""
    default: Any
    """Its value when it is left out."""
    summary: str


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the API."""

    method: str
    path: str
    """``/admin/v2/tenants/{tenant}``: fixed segments and parameters."""
    operation: Operation
    handler: Handler
    summary: str
    body: Any = None
    """Type of the request body, for the description; ``None`` without one."""
    reply: Any = None
    """Type of a 200 reply's body, for the description; ``None`` if it is empty."""
    query: tuple[Query, ...] = ()
    """Query parameters, for the description."""
    resource_in: str = ""
    """The query parameter that names the resource of the operation, if the path does not."""


@dataclass(slots=True)
class _Node:
    fixed: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)


class RouteTable:
    """Finds the route of a method and a raw path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._root
            for segment in route.path.strip("/").split("/"):
                if segment.startswith("{"):
                    if node.parameter is None:
                        node.parameter = _Node()
                    node = node.parameter
                else:
                    node = node.fixed.setdefault(segment, _Node())
            node.routes[route.method] = route

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """The route and its decoded parameters.

        Raises:
            RefusalError: 404 for a path that no route has, 405 for another method.
        """
        segments = _segments(raw_path)
        found = self._nodes(segments)
        for node in found:
            if method in node.routes:
                route = node.routes[method]
                names = route.path.strip("/").split("/")
                return route, {
                    name[1:-1]: unquote(segment)
                    for name, segment in zip(names, segments, strict=True)
                    if name.startswith("{")
                }
        if found:
            allowed = ", ".join(_methods(found))
            raise RefusalError(405, f"Method {method} is not allowed here. Allowed: {allowed}")
        raise refusal_of(raw_path, segments)

    def methods(self, raw_path: str) -> list[str]:
        """The methods that some route has for this path, sorted; empty for an unknown path."""
        return _methods(self._nodes(_segments(raw_path)))

    def _nodes(self, segments: list[str]) -> list[_Node]:
        return [node for node in _walk(self._root, segments, 0) if node.routes]


def _segments(raw_path: str) -> list[str]:
    return raw_path.removesuffix("/").removeprefix("/").split("/")


def _methods(nodes: Iterable[_Node]) -> list[str]:
    return sorted({method for node in nodes for method in node.routes})


def _walk(node: _Node, segments: list[str], index: int) -> Iterable[_Node]:
    if index == len(segments):
        yield node
        return
    segment = segments[index]
    if segment in node.fixed:
        yield from _walk(node.fixed[segment], segments, index + 1)
    if node.parameter is not None and segment:
        yield from _walk(node.parameter, segments, index + 1)

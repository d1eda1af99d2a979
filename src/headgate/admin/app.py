"""The ASGI application of the admin API: one reply to each request, one shape for each failure.

It runs in the broker's event loop, so no handler may block or walk all topics at once. An
unexpected failure answers 500 with the type of the error, and the log has its traceback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Final, Protocol
from urllib.parse import parse_qsl, quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from headgate.admin.auditing import READS, Asked, audit_entry, is_change
from headgate.admin.body import BODY_BYTES_MAX
from headgate.admin.routing import JSON, Call, Reply, Reserved, Route, RouteTable
from headgate.admin.shared_answers import SharedAnswers
from headgate.admin.streaming import send_parts
from headgate.admin.table import ROUTES
from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.bounded_lines import BoundedLines
from headgate.base.clock import Clock
from headgate.base.errors import InputError, InvariantError, StorageError
from headgate.base.identity import Identity, client_host, identity_of, why_lapsed
from headgate.base.names import PERSISTENT
from headgate.base.units import KIB
from headgate.base.work_owner import NO_TENANT, WORK_OWNER
from headgate.facade.protocol import Facade
from headgate.metadata.errors import RefusalError, UnauthorizedError

_log = logging.getLogger("headgate.admin")

CREDENTIALS_REFUSED = "Authentication required or failed"
"""The text for a client whose credentials are not accepted, whatever the reason."""

QUERY_PARAMETERS_MAX = 100
"""Most query parameters of one request."""

QUERY_BYTES_MAX: Final = 16 * KIB
"""Longest query. Names may have thousands of characters, of three bytes each as they are sent."""

BODY_BYTES_AT_ONCE: Final = 8 * KIB
"""Bytes of a body that are decoded in a quarter of a millisecond, whatever they are."""

NAMES_AT_ONCE: Final = 128
"""Names of partitions that are made without a pause: a quarter of a millisecond."""
_OF_SUBSCRIPTION: Final = "subscription."
_OF_SCHEMA: Final = "schema."
"""Changes by roles that may consume or produce, which need no line: those of one subscription of a
topic without partitions are in the log, and a schema's definition has a bound."""


class Audit(Protocol):
    """The audit log."""

    def note(self, entry: AuditEntry, *, is_bounded: bool) -> None:
        """Write a line. Those of changes that were carried out, or may be, are not bounded."""


class AdminApp:
    """The admin API and HTTP lookup as one ASGI application, to be mounted at ``/``."""

    def __init__(self, facade: Facade, clock: Clock, audit: Audit | None = None) -> None:
        """``audit`` receives each change and each refusal."""
        self._facade = facade
        self._audit = audit
        self._clock = clock
        self._table = RouteTable(ROUTES)
        self._shared = SharedAnswers()
        self._lines = BoundedLines(_log, clock.monotonic_ns)
        """Of requests that the storage could not carry out: while the disk is full, a role has
        hundreds of them a second."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes, for the description and for tests."""
        return self._table.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the admin API serves HTTP, not {scope['type']}")
        reserved: Reserved = []
        try:
            reply = await self.respond(Request(scope, receive), reserved)
            await _send(reply, scope, send)
        finally:
            for size_bytes, owner in reserved:
                self._facade.release_answer(size_bytes, owner)

    async def respond(self, request: Request, reserved: Reserved | None = None) -> Reply:
        """The reply to ``request``. Raises only for a broken invariant. What is charged for the
        reply is added to ``reserved``."""
        asked = Asked()
        try:
            reply = await self._answered(request, [] if reserved is None else reserved, asked)
        except asyncio.CancelledError:
            # What has begun may be carried out all the same, so who gives up must not hide it.
            if asked.progress.is_begun:
                self._note(request.scope, asked, _GIVEN_UP)
            raise
        self._note(request.scope, asked, reply)
        return reply

    def _note(self, scope: Scope, asked: Asked, reply: Reply) -> None:
        entry = None if self._audit is None else audit_entry(scope, asked, reply)
        if self._audit is not None and entry is not None:
            may_be_done = asked.is_partly_done or reply is _GIVEN_UP
            is_done = entry.result is AuditResult.ALLOWED
            self._audit.note(entry, is_bounded=not (is_done or may_be_done))

    async def _answered(self, request: Request, reserved: Reserved, asked: Asked) -> Reply:
        try:
            return await self._handle(request, reserved, asked)
        except RefusalError as refusal:
            return self._refused(request, refusal)
        except InputError as error:
            return failure(400, str(error))
        except StorageError as error:
            text = "storage failed during %s %s: %s"
            self._lines.error(text, request.method, request.url.path, error)
            return failure(503 if error.retryable else 500, str(error))
        except InvariantError:
            raise
        except ClientDisconnect:
            return failure(400, "The connection ended before the body did")  # no client reads it
        except Exception as error:
            _log.exception("unexpected failure of %s %s", request.method, request.url.path)
            return failure(500, f"Unexpected {type(error).__name__}; the broker's log has more")

    def _refused(self, request: Request, refusal: RefusalError) -> Reply:
        reply = failure(refusal.status, refusal.reason)
        if refusal.status != 405:
            return reply
        methods = self._table.methods(raw_path(request.scope))
        # A handler also refuses its own method, of this target: Allow does not name it then.
        allowed = ", ".join(method for method in methods if method != request.method)
        return replace(reply, headers={"allow": allowed})

    async def _handle(self, request: Request, reserved: Reserved, asked: Asked) -> Reply:
        route, params = self._table.find(request.method, raw_path(request.scope))
        asked.route, asked.params, asked.resource = route, params, resource_of(params)
        identity = identity_of(request.scope)
        query = read_query(request.scope.get("query_string", b""))
        resource = query.get(route.resource_in, "") if route.resource_in else asked.resource
        demand = identity, route.operation, resource, params.get("subscription", "")
        self._facade.check_allowed(*demand)

        def check() -> None:
            # What was allowed when the head came may not be any more.
            if why := why_lapsed(request.scope):
                raise UnauthorizedError(401, CREDENTIALS_REFUSED, why)
            self._facade.check_allowed(*demand)

        WORK_OWNER.set(params.get("tenant", NO_TENANT))
        # Nobody reads the body of a read. Else a client without credentials could hold requests to
        # paths that need none, as long as a body may take.
        if request.method not in READS:
            asked.body = await read_body(request)
        call = Call(
            self._facade,
            self._clock,
            params,
            query,
            asked.body,
            reserved,
            identity,
            route.operation,
            request.headers,
            self._shared,
            asked.changes,
            asked.progress,
            check,
        )
        is_read = request.method in READS
        # The turn of the tenant comes first: changes that wait for it hold no turn of their role.
        address = client_host(request.scope)
        to_change = nullcontext() if is_read else self._turn_of(asked, identity, address)
        async with to_change, self._facade.turn_to_ask(identity, address, is_read=is_read):
            await self._turn_for_names(asked.resource)
            await self._facade.load_new_partitions(asked.resource)
            # Very many clients may send the last byte of a long body at one instant.
            if pieces := len(asked.body) // BODY_BYTES_AT_ONCE:
                await self._facade.give_way(pieces)
            check()  # a body may come slowly, and a turn, too
            asked.progress.is_begun = True
            reply = await route.handler(call)
            return reply if reply.parts is None else replace(reply, check=check)

    async def _turn_for_names(self, resource: str) -> None:
        """Let others run before all names of a topic's partitions are made, which nearly every
        request about it does at its start. Sixteen requests begin in one turn of the loop."""
        row = self._facade.catalog.partitioned(resource)
        for _ in range(row.partitions // NAMES_AT_ONCE if row is not None else 0):
            await self._facade.give_way()

    def _turn_of(
        self, asked: Asked, identity: Identity, address: str
    ) -> AbstractAsyncContextManager[None]:
        """Within it a request is carried out."""
        tenant = asked.params.get("tenant", "")
        is_in_line = bool(tenant) and asked.route is not None and is_change(asked.route)
        if is_in_line and self._has_line(asked):
            return self._facade.turn_to_change(tenant, identity, address)
        return nullcontext()

    def _has_line(self, asked: Asked) -> bool:
        """Whether a change waits for others of its role. One about all partitions or subscriptions
        of a topic is the work of thousands, and each takes memory of its own."""
        operation = "" if asked.route is None else asked.route.operation
        if operation.startswith(_OF_SCHEMA):
            return False
        is_of_one = operation.startswith(_OF_SUBSCRIPTION) and "subscription" in asked.params
        return not is_of_one or self._facade.catalog.topic(asked.resource) is None


async def _send(reply: Reply, scope: Scope, send: Send) -> None:
    if reply.parts is not None:
        await send_parts(reply, scope, send)
        return
    headers = [(b"content-length", str(len(reply.body)).encode())]
    if reply.status == 304:  # its length would be that of the answer that the client has
        headers = []
    if reply.content_type:
        headers.append((b"content-type", reply.content_type.encode()))
    headers += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    if reply.status == 204:
        headers = []
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def resource_of(params: Mapping[str, str]) -> str:
    """The resource of a path: a topic's full name, a namespace, a tenant; empty for the broker.

    Names are those that the client sent; the handler refuses invalid ones.
    """
    tenant = params.get("tenant", "")
    if "namespace" not in params:
        return tenant
    namespace = f"{tenant}/{params['namespace']}"
    if "topic" not in params:
        return namespace
    return f"{params.get('domain', PERSISTENT)}://{namespace}/{params['topic']}"


def failure(status: int, reason: str) -> Reply:
    """The reply to every refused or failed request."""
    return Reply(status, msgspec.json.encode({"reason": reason}), JSON, reason=reason)


_GIVEN_UP: Final = failure(503, "The broker gave the request up before its end")
"""Stands for the answer that nobody gets."""


def raw_path(scope: Scope) -> str:
    """The path as sent, still percent-encoded."""
    raw = scope.get("raw_path")
    if raw is None:
        return quote(scope["path"], safe="/%$:=@!&'()*+,;~")
    return bytes(raw).partition(b"?")[0].decode("latin-1")


def read_query(query: bytes) -> dict[str, str]:
    """Query parameters; the last one of a name counts.

    Raises:
        RefusalError: 400 for more than ``QUERY_PARAMETERS_MAX``, 414 for more than
            ``QUERY_BYTES_MAX``.
    """
    if len(query) > QUERY_BYTES_MAX:
        raise RefusalError(414, f"The query is too long: {QUERY_BYTES_MAX} bytes are allowed")
    try:
        pairs = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_PARAMETERS_MAX
        )
    except ValueError as error:
        raise RefusalError(
            400, f"Too many query parameters: {QUERY_PARAMETERS_MAX} are allowed"
        ) from error
    return dict(pairs)


async def read_body(request: Request) -> bytes:
    """The whole body.

    Raises:
        RefusalError: 413 if it is longer than ``BODY_BYTES_MAX``.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES_MAX:
            raise RefusalError(413, f"The body is too long: {BODY_BYTES_MAX} bytes are allowed")
        parts.append(part)
    return b"".join(parts)

"""Refuses requests of foreign web pages at the web port.

A page that is open in a browser can send requests to any broker that the machine reaches. Each of
three rules stops it:

* ``Host`` must name this broker, or be an IP address. Otherwise a page whose name resolves to the
  broker's address (DNS rebinding) could read and change everything.
* A request that changes something must not come from a foreign page. Browsers report the page in
  ``Origin`` and ``Sec-Fetch-Site``; tools send neither.
* A body must have the content type JSON. A page can send other types (``text/plain``, a form, none)
  without a preflight request, but not this one.

A foreign page cannot read the response to a GET: there are no CORS headers, and every response is
marked as same-origin.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.app.listeners import advertised_host
from headgate.base.web_hosts import OWN_HEADERS, HostNames, host_without_port, plain_host
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.web")

SETTING: Final = "headgateWebHostNames"

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_GETS_THAT_ACT: Final = frozenset({"/admin/v2/brokers/backlog-quota-check"})
_CREATES_WITH_QUERY: Final = "/partitions"
"""The end of a path whose GET can create a topic, if its query asks for that."""
_JSON_TYPE: Final = re.compile(rb"application/([-.+\w]+\+)?json *(;.*)?", re.IGNORECASE)
_FOREIGN_SITES: Final = frozenset({b"cross-site", b"same-site"})
_LOGGED_MAX: Final = 8
"""Different refusals that are logged, so that a page cannot fill the log."""
_SHOWN_CHARACTERS: Final = 80

HTTPS_ONLY: Final = (b"strict-transport-security", b"max-age=31536000")
"""A header of responses over TLS: a browser that reaches this host so uses no HTTP for a year."""

RETRY_AFTER: Final = (b"retry-after", b"1")

Refusal = tuple[int, str]
"""A status and the reason."""


NoteRefusal = Callable[[int, str, str, str], None]
"""Receives the status of a refused request, the ``host:port`` of its client, the reason, and its
method."""


def own_host_names(settings: Settings) -> HostNames:
    """The names of a broker with these settings, on this machine."""
    own = (advertised_host(settings), settings.bindAddress, socket.gethostname())
    return HostNames(own, settings.headgateWebHostNames)


class WebGuard:
    """An ASGI application that applies these rules before another one."""

    def __init__(
        self,
        app: ASGIApp,
        names: HostNames,
        rate_refusal: Callable[[], str] = lambda: "",
        note: NoteRefusal = lambda _, __, ___, ____: None,
    ) -> None:
        """``rate_refusal`` says why there are too many requests now, or nothing. ``note`` receives
        each refusal."""
        self._app = app
        self._names = names
        self._rate_refusal = rate_refusal
        self._note = note
        self._logged: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""

        own = own_headers(scope)

        async def send_own(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [*message.get("headers", ())]
                names = {name for name, _ in given}
                missing = (header for header in own if header[0] not in names)
                message = {**message, "headers": [*given, *missing]}
            await send(message)

        too_many = self._rate_refusal()
        refusal = (429, too_many) if too_many else refusal_of(scope, self._names)
        if refusal is None:
            await self._app(scope, receive, send_own)
            return
        status, reason = refusal
        host, port = scope.get("client") or ("", 0)
        self._note(status, f"{host}:{port}" if host else "", reason, scope["method"])
        if reason not in self._logged and len(self._logged) < _LOGGED_MAX:
            self._logged.add(reason)
            logger.warning("%s from %s: %s", status, host or "?", reason)
        body = msgspec.json.encode({"reason": reason})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        if too_many:
            headers.append(RETRY_AFTER)
        await send_own({"type": "http.response.start", "status": status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""}
        )


def own_headers(scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
    """The headers that each response to this request has.

    A browser applies :data:`HTTPS_ONLY` to all ports of a host. So loopback names do not get it: it
    would make other programs on the same machine unreachable.
    """
    if scope.get("scheme") != "https":
        return OWN_HEADERS
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    name = plain_host(host_without_port(host.decode("latin-1")))
    if not name or name == "localhost" or name.endswith(".localhost"):
        return OWN_HEADERS
    return (*OWN_HEADERS, HTTPS_ONLY)


def refusal_of(scope: Scope, names: HostNames) -> Refusal | None:
    """The status and reason for which a request is refused; None if it is not."""
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, []).append(value)
    hosts = headers.get(b"host", [])
    if len(set(hosts)) > 1 or (not hosts and scope.get("http_version") != "1.0"):
        return 400, f"A request has one Host header: this one has {len(hosts)}"
    host = hosts[0].decode("latin-1") if hosts else ""
    if hosts and not names.has(host_without_port(host)):
        return 421, (
            f"Host {_shown(host)} is not a name of this broker, so a foreign page may have sent "
            f"this. If it is one, add it to {SETTING}; an IP address is always allowed"
        )
    path = scope["path"].rstrip("/")
    if scope["method"] in _SAFE and not _acts(path, scope.get("query_string", b"")):
        return None
    is_encrypted = scope.get("scheme") == "https"
    return _from_foreign_page(headers, host, names, is_encrypted) or _not_json(headers)


def _acts(path: str, query: bytes) -> bool:
    """Whether a GET may change something."""
    return path in _GETS_THAT_ACT or (query != b"" and path.endswith(_CREATES_WITH_QUERY))


def _from_foreign_page(
    headers: dict[bytes, list[bytes]], host: str, names: HostNames, is_encrypted: bool
) -> Refusal | None:
    # A proxy may add a second header to that of the browser: each counts.
    for origin in headers.get(b"origin", ()):
        text = origin.decode("latin-1")
        try:
            where = urlsplit(text)
            # Whoever is in the network can write a page without TLS. At a port without TLS a proxy
            # may have taken it off.
            is_here = where.netloc.lower() == host.lower() and (
                where.scheme == "https" or not is_encrypted
            )
            is_own = where.netloc != "" and (is_here or names.is_configured(where.hostname or ""))
        except ValueError:
            is_own = False
        if not is_own:
            return 403, (
                f"A page of {_shown(text)} may not change anything here. If that is this broker "
                f"behind a proxy, add its name to {SETTING}"
            )
    sites = {site.lower() for site in headers.get(b"sec-fetch-site", ())}
    for site in _FOREIGN_SITES & sites:
        return 403, f"A page of another origin ({site.decode()}) may not change anything here"
    return None


def _not_json(headers: dict[bytes, list[bytes]]) -> Refusal | None:
    lengths = headers.get(b"content-length", [])
    has_body = b"transfer-encoding" in headers or any(each != b"0" for each in lengths)
    kinds = headers.get(b"content-type", [b""])
    kind = next((each for each in kinds if not _JSON_TYPE.fullmatch(each.strip())), None)
    if not has_body or kind is None:
        return None
    problem = (
        f"Content-Type is {_shown(kind.decode('latin-1'))}" if kind else "There is no Content-Type"
    )
    return 415, f"{problem}: a body is sent with 'Content-Type: application/json'"


def _shown(text: str) -> str:
    return repr(text[:_SHOWN_CHARACTERS])

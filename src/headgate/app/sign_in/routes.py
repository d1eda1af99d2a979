"""The routes with which the page signs a reader in at an issuer. They need no credentials.

* ``POST start`` begins: the answer has the issuer's URL, to which the page leads the browser, and
  the ``state`` that this tab remembers. A cookie ties the sign-in to the browser.
* ``GET callback`` is where the issuer sends the browser back. The code is kept, and the browser
  goes to the page, always to the same address. No token and no text of the issuer is in a URL.
* ``POST token`` ends: it needs cookie and ``state``, exchanges the code, and its answer has the
  token, which the page keeps in memory.

As POSTs with a body of JSON, the first and the last are refused to pages of other origins
(:mod:`headgate.app.web_guard`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.app.sign_in.issuer_client import IssuerClient, SignedIn, UnavailableIssuerError
from headgate.base.audit_entry import AuditEntry, result_of
from headgate.base.clock import Clock
from headgate.base.errors import InvariantError
from headgate.base.identity import NOBODY, Identity, client_host
from headgate.base.units import NS_PER_S
from headgate.page.app import PREFIX
from headgate.security.code_flow import (
    SignInError,
    authorization_url,
    code_of,
    parameters_of,
)
from headgate.security.failed_attempts import PERIOD_S, FailedAttempts
from headgate.security.sign_ins import (
    LIFETIME_S,
    SignIn,
    SignIns,
    TooManyFailuresError,
    is_secret,
)

logger = logging.getLogger("headgate.web")

START: Final = f"{PREFIX}sign-in/start"
CALLBACK: Final = f"{PREFIX}sign-in/callback"
TOKEN: Final = f"{PREFIX}sign-in/token"
METHODS: Final = {START: "POST", CALLBACK: "GET", TOKEN: "POST"}
"""The routes by their paths."""

OPERATION: Final = "page.sign-in"
"""What authorization calls them: every client may, and none gets more than the issuer gives."""

PAGE: Final = b"../"
"""The page, as seen from :data:`CALLBACK`: below whatever prefix a proxy has put before it."""

BODY_BYTES_MAX: Final = 4_096

COOKIES_MAX: Final = 1_000
"""Cookies of a request that are looked through: no browser keeps more than a few hundred for one
host. Thirty thousand, in the head of one request, take 20 ms."""

_RETRY_AFTER_S: Final = 10

Headers = list[tuple[bytes, bytes]]
Note = Callable[[AuditEntry], None]


class _Ended(msgspec.Struct):
    """The body of ``POST token``."""

    state: str


class SignInApp:
    """The routes, and ``rest`` for all other paths."""

    def __init__(
        self,
        client: IssuerClient,
        sign_ins: SignIns,
        clock: Clock,
        note: Note,
        rest: ASGIApp,
    ) -> None:
        """``note`` receives an entry of the audit log for each sign-in that ends."""
        self._client = client
        self._sign_ins = sign_ins
        self._clock = clock
        self._note = note
        self._rest = rest
        self._failures = FailedAttempts()
        """Codes that were wrong, by address: as passwords, they can be guessed."""
        self._origin = _origin(client.client.redirect_url)
        self._page_url = client.client.redirect_url.removesuffix(CALLBACK) + PREFIX
        is_encrypted = self._origin[0] == "https"
        # No other host and no plain HTTP of this one can set a cookie of this name.
        self._cookie = "__Host-headgate-sign-in" if is_encrypted else "headgate-sign-in"
        self._attributes = f"Max-Age={LIFETIME_S}; Path=/; HttpOnly; SameSite=Lax" + (
            "; Secure" if is_encrypted else ""
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        if path not in METHODS:
            await self._rest(scope, receive, send)
            return
        if scope["method"] != METHODS[path]:
            allowed = [(b"allow", METHODS[path].encode())]
            await _refuse(send, 405, f"{path} takes {METHODS[path]}", allowed)
            return
        serve = {START: self._start, CALLBACK: self._callback, TOKEN: self._token}[path]
        try:
            await serve(scope, receive, send)
        except TooManyFailuresError as error:
            await _refuse(send, 429, str(error), [(b"retry-after", str(int(PERIOD_S)).encode())])
        except UnavailableIssuerError as error:
            await _refuse(send, 503, str(error), _later())
        except SignInError as error:
            await _refuse(send, 400, str(error))
        except InvariantError:
            raise
        except Exception:
            logger.exception("signing a reader in failed with an internal error")
            await _refuse(send, 500, "Internal error; the broker's log has more")

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _body(receive)
        origin = _header(scope, b"origin")
        if origin and _origin(origin) != self._origin:
            # The issuer would send the browser to an address where it has no cookie.
            raise SignInError(f"Open this page at {self._page_url} to sign in there")
        endpoints = await self._client.endpoints()
        browser = self._sign_ins.secret(self._browser(scope))
        now_ns = self._clock.monotonic_ns()
        sign_in = self._sign_ins.begin(browser, client_host(scope), now_ns)
        url = authorization_url(
            self._client.client, endpoints,
            state=sign_in.state, nonce=sign_in.nonce, verifier=sign_in.verifier,
        )  # fmt: skip
        body = {"url": url, "state": sign_in.state}
        await _answer(send, 200, body, [self._set_cookie(browser)])

    def _set_cookie(self, browser: str) -> tuple[bytes, bytes]:
        return b"set-cookie", f"{self._cookie}={browser}; {self._attributes}".encode()

    async def _callback(self, scope: Scope, _: Receive, send: Send) -> None:
        browser = self._browser(scope)
        headers: Headers = [(b"location", PAGE)]
        try:
            parameters = parameters_of(scope.get("query_string", b""))
            state = parameters.get("state", "")
            sign_in = self._sign_ins.unanswered(state, browser, self._clock.monotonic_ns())
        except SignInError:
            # The page says so, if this tab began a sign-in; otherwise nobody did.
            logger.debug("an answer of an issuer is of no sign-in of its browser")
        else:
            try:
                endpoints = await self._client.endpoints()
                sign_in.code = code_of(parameters, self._client.client, endpoints)
            except SignInError as error:
                sign_in.error = str(error)
            headers.append(self._set_cookie(self._sign_ins.answered(sign_in)))
        await _answer(send, 303, None, headers)

    async def _token(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            state = msgspec.json.decode(await _body(receive), type=_Ended).state
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SignInError('The body is {"state": "..."}') from None
        self._check_failures(scope)
        sign_in = self._sign_ins.end(state, self._browser(scope), self._clock.monotonic_ns())
        try:
            if sign_in.error:
                raise SignInError(sign_in.error)
            found = await self._exchanged(scope, sign_in)
        except UnavailableIssuerError as error:
            self._note_end(scope, 503, str(error))
            raise
        except SignInError as error:
            self._note_end(scope, 400, str(error))
            raise
        self._note_end(scope, 200, role=found.principal.role)
        await _answer(send, 200, {"token": found.token}, [])

    def _check_failures(self, scope: Scope) -> None:
        """Check that an address may have another code exchanged: the issuer is asked for each, and
        anybody can send one.

        Raises:
            TooManyFailuresError: too many of its codes were wrong in the last minute.
        """
        if not self._failures.passwords_left(client_host(scope), self._now_s()):
            raise TooManyFailuresError(
                "Too many sign-ins failed at your address: try again in a minute"
            )

    async def _exchanged(self, scope: Scope, sign_in: SignIn) -> SignedIn:
        try:
            return await self._client.signed_in(sign_in)
        except UnavailableIssuerError:
            raise
        except SignInError:
            self._failures.password_failed(client_host(scope), self._now_s())
            raise

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / NS_PER_S

    def _note_end(self, scope: Scope, status: int, reason: str = "", role: str = "") -> None:
        host, port = scope.get("client") or ("", 0)
        entry = AuditEntry(
            OPERATION,
            "",
            result_of(status),
            Identity(role) if role else NOBODY,
            f"{host}:{port}" if host else "",
            status=status,
            reason=reason,
            request=f"POST {TOKEN}",
        )
        self._note(entry)

    def _browser(self, scope: Scope) -> str | None:
        """The secret of the browser; None if it has none, or two, or very many cookies."""
        headers = [header for name, header in scope["headers"] if name == b"cookie"]
        if sum(header.count(b";") + 1 for header in headers) > COOKIES_MAX:
            return None
        found = [
            value
            for header in headers
            for each in header.decode("latin-1").split(";")
            for key, _, value in [each.strip().partition("=")]
            if key == self._cookie
        ]
        return found[0] if len(found) == 1 and is_secret(found[0]) else None


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of a URL; of a port that browsers leave out, the number."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", "", None
    return parts.scheme, (parts.hostname or ""), port


def _later() -> Headers:
    return [(b"retry-after", str(_RETRY_AFTER_S).encode())]


async def _body(receive: Receive) -> bytes:
    """The body of a request.

    Raises:
        SignInError: it is too long, or its client left.
    """
    found, has_more = b"", True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise SignInError("The request has no end")
        found += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(found) > BODY_BYTES_MAX:
            raise SignInError(f"The body has more than {BODY_BYTES_MAX:,} bytes")
    return found


async def _refuse(send: Send, status: int, reason: str, headers: Headers | None = None) -> None:
    await _answer(send, status, {"reason": reason}, headers or [])


async def _answer(send: Send, status: int, body: object, headers: Headers) -> None:
    content = b"" if body is None else msgspec.json.encode(body)
    own = [(b"cache-control", b"no-store"), (b"content-length", str(len(content)).encode())]
    if body is not None:
        own.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": content})

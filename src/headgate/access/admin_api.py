"""Requests to the admin API of a running broker.

Operators run the commands that use it during an incident, so it loads only the standard library's
HTTP client.
"""

from __future__ import annotations

import http.client
import math
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headgate.access.authentication import Say, authentication, certificate_paths
from headgate.access.client_config import WITHOUT_USER, ClientConfig
from headgate.access.json_bounds import REASON_BYTES_MAX, decoded
from headgate.access.refusals import REFUSALS, advice, lacks_a_right, scrubbed
from headgate.access.timed_answers import timed_answers
from headgate.access.tls import client_context, tls_failure
from headgate.base.errors import HeadgateError, InputError
from headgate.base.texts import encodable, size_text
from headgate.base.units import MIB
from headgate.base.web_hosts import names_user

JSON: Final = "application/json"

BODY_BYTES_MAX: Final = 512 * MIB
"""Largest answer, uncompressed. The survey of a broker with 100,000 topics has about 150 MB."""

_PART_BYTES: Final = MIB
_WITH_CONTENT: Final = ("POST", "PUT")
_NOT_IN_URL: Final = re.compile(r"[\x00-\x20\x7f]")


class AdminUrlError(InputError):
    """A text is not the URL of an admin API."""


class UnreachableError(HeadgateError):
    """The admin API does not answer in HTTP. The text is one sentence that begins with the URL."""


class AccessRefusedError(HeadgateError):
    """The broker refuses the credentials, or lacks any.

    ``reason`` is the broker's, ``advice`` says what was sent. Neither has a secret.
    """

    def __init__(self, url: str, status: int, reason: str, advice: str) -> None:
        super().__init__(f"{url} refuses the request (status {status}): {reason}. {advice}")
        self.reason = reason
        self.lacks_a_right = lacks_a_right(status, reason)
        """Whether the credentials are accepted, and their role may not ask this."""
        self.advice = advice


class AdminApi:
    """The admin API that a command talks to, with its credentials."""

    def __init__(self, config: ClientConfig, environment: Mapping[str, str], say: Say) -> None:
        """``environment`` has secrets that ``config`` names, ``say`` gets warnings.

        Raises:
            InputError: the credentials have another form than their plugin's.
        """
        self._config = config
        self._authentication = authentication(config, environment, say)

    @property
    def config(self) -> ClientConfig:
        """How it connects."""
        return self._config

    @property
    def url(self) -> str:
        """Where the admin API is."""
        return self._config.admin_url

    @property
    def url_origin(self) -> str:
        """The option or key that names the URL."""
        return self._config.url_origin

    def without_secrets(self, text: str) -> str:
        """``text`` of an answer, as an error may repeat it: a server, or a proxy on the way, may
        send back what it got."""
        return scrubbed(text, self._authentication)

    def ask(
        self,
        path: str,
        *,
        timeout_s: float,
        method: str = "GET",
        body: bytes = b"",
        content_type: str = JSON,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """The reply to one request, and its body. Its status may be any but a refusal's.

        A redirect is not followed, so credentials reach no other host.

        Args:
            path: encoded, from the first slash on, with its query; a path in the URL stands before
                it.
            timeout_s: longest wait in seconds, while connecting and while reading.
            method: of HTTP.
            body: sent with POST and PUT alone, as ``content_type``.
            content_type: sent with POST and PUT, even without a body.

        Raises:
            InputError: a file of credentials or certificates cannot be used.
            AdminUrlError: the URL is not allowed.
            UnreachableError: the admin API does not answer, or with too much.
            AccessRefusedError: it refuses the credentials.
            TokenUnavailableError: the issuer of tokens gives none.
        """
        connection, target = self._connection(timeout_s), self._prefix() + path
        connection.response_class = timed_answers(lambda: math.inf)  # each read has its time-out
        headers = self._authentication.headers()
        if method in _WITH_CONTENT:
            headers |= {"Content-Type": content_type}
        try:
            if method in _WITH_CONTENT:
                connection.request(method, target, body, headers)
            else:
                connection.request(method, target, headers=headers)
            reply = connection.getresponse()
            data = self._body(reply)
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise self._failure(error, timeout_s) from error
        finally:
            connection.close()
        if reply.status in REFUSALS:
            reason = self.without_secrets(reason_in(data) or reply.reason)
            raise AccessRefusedError(
                self.url, reply.status, reason,
                advice(reply.status, reason, self._config, self._authentication),
            )  # fmt: skip
        return reply, data

    def _body(self, reply: http.client.HTTPResponse) -> bytes:
        parts: list[bytes] = []
        size_bytes = 0
        while part := reply.read(_PART_BYTES):
            parts.append(part)
            size_bytes += len(part)
            if size_bytes > BODY_BYTES_MAX:
                raise UnreachableError(too_long(self.url, BODY_BYTES_MAX))
        if reply.length:
            raise http.client.IncompleteRead(b"", reply.length)
        return b"".join(parts)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        where = self._where()
        host = where.hostname or ""
        if where.scheme != "https":
            return http.client.HTTPConnection(host, where.port, timeout=timeout_s)
        config = self._config
        context = client_context(
            config.trust_path,
            "--tls-trust-cert-path",
            certificate=certificate_paths(config),
            allow_insecure=config.allow_insecure,
            verify_hostname=config.verify_hostname,
        )
        return http.client.HTTPSConnection(host, where.port, timeout=timeout_s, context=context)

    def _prefix(self) -> str:
        return self._where().path.rstrip("/")

    def _where(self) -> SplitResult:
        try:
            return split_url(self.url)
        except AdminUrlError as error:
            raise AdminUrlError(f"{self.url_origin} is {error}") from error

    def _failure(self, error: Exception, timeout_s: float) -> HeadgateError:
        url = self.url
        if isinstance(error, TimeoutError):
            return UnreachableError(f"{url} did not answer within {timeout_s:g} s")
        if isinstance(error, ConnectionRefusedError):
            problem = "refuses the connection: is the broker running there?"
            return UnreachableError(f"{url} {problem}")
        if isinstance(error, UnicodeError | http.client.InvalidURL):
            return AdminUrlError(f"{self.url_origin} is {_wrong(url)}")
        if failure := tls_failure(error, "--tls-trust-cert-path"):
            return UnreachableError(f"{url}: {failure}")
        if isinstance(error, http.client.RemoteDisconnected):
            problem = "closes the connection: is that the port of the binary protocol?"
            return UnreachableError(f"{url} {problem}")
        if isinstance(error, OSError):
            return UnreachableError(f"{url} cannot be reached: {error.strerror or error}")
        return UnreachableError(f"{url} does not speak HTTP ({type(error).__name__})")


def split_url(url: str) -> SplitResult:
    """``url`` taken apart; ``http`` if it has no scheme.

    Raises:
        AdminUrlError: it is no ``http`` or ``https`` URL with a host, or names a user.
    """
    if names_user(url):
        raise AdminUrlError(WITHOUT_USER)
    if _NOT_IN_URL.search(url):
        raise _wrong(url)
    try:
        where = urlsplit(url if "://" in url else f"http://{url}")
        if where.scheme in ("http", "https") and where.hostname and where.port != 0:
            return where
    except ValueError:  # the port is no port, or a bracket is missing
        pass
    raise _wrong(url)


def reason_in(body: bytes | bytearray) -> str:
    """The reason in an answer of the admin API; empty if it has none."""
    try:
        answer = decoded(body) if len(body) <= REASON_BYTES_MAX else None
    except ValueError:
        return ""
    return encodable(str(answer.get("reason", ""))) if isinstance(answer, dict) else ""


def too_long(server: str, bytes_max: int) -> str:
    """Says that an answer of ``server`` was given up."""
    return f"{server} answers with more than {size_text(bytes_max)}, which is no answer of a broker"


def _wrong(url: str) -> AdminUrlError:
    return AdminUrlError(f"{url!r}; use http://HOST:PORT of the admin API")

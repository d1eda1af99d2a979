"""One request to the admin API of a running broker.

Operators run the commands that use it during an incident, so it loads only the standard library's
HTTP client.
"""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headgate.base.errors import HeadgateError, InputError

ADMIN_URL: Final = "http://127.0.0.1:8080"
"""The admin API of a broker with the usual settings on this machine."""

JSON: Final = "application/json"

_WITH_CONTENT: Final = ("POST", "PUT")


class AdminUrlError(InputError):
    """A text is not the URL of an admin API."""


class UnreachableError(HeadgateError):
    """The admin API does not answer in HTTP. The text is one sentence that begins with the URL."""


def ask(
    url: str,
    path: str,
    *,
    timeout_s: float,
    method: str = "GET",
    body: bytes = b"",
    content_type: str = JSON,
) -> tuple[http.client.HTTPResponse, bytes]:
    """The reply to one request, whatever its status, and its body.

    Args:
        url: where the admin API is; a path in it stands before ``path``. ``http`` if it has no
            scheme.
        path: encoded, from the first slash on, with its query.
        timeout_s: longest wait in seconds, while connecting and while reading.
        method: of HTTP.
        body: sent with POST and PUT alone, as ``content_type``.
        content_type: sent with POST and PUT, even without a body.

    Raises:
        AdminUrlError: ``url`` is not allowed.
        UnreachableError: the admin API does not answer.
    """
    where = split_url(url)
    connect: type[http.client.HTTPConnection] = http.client.HTTPConnection
    if where.scheme == "https":
        connect = http.client.HTTPSConnection
    connection = connect(where.hostname or "", where.port, timeout=timeout_s)
    target = where.path.rstrip("/") + path
    try:
        if method in _WITH_CONTENT:
            connection.request(method, target, body, {"Content-Type": content_type})
        else:
            connection.request(method, target)
        reply = connection.getresponse()
        return reply, reply.read()
    except TimeoutError as error:
        raise UnreachableError(f"{url} did not answer within {timeout_s:g} s") from error
    except ConnectionRefusedError as error:
        problem = "refuses the connection: is the broker running there?"
        raise UnreachableError(f"{url} {problem}") from error
    except (UnicodeError, http.client.InvalidURL) as error:
        raise _wrong(url) from error
    except OSError as error:
        raise UnreachableError(f"{url} cannot be reached: {error.strerror or error}") from error
    except http.client.HTTPException as error:
        raise UnreachableError(f"{url} does not speak HTTP ({type(error).__name__})") from error
    finally:
        connection.close()


def split_url(url: str) -> SplitResult:
    """``url`` taken apart.

    Raises:
        AdminUrlError: it is no ``http`` or ``https`` URL with a host.
    """
    try:
        where = urlsplit(url if "://" in url else f"http://{url}")
        if where.scheme in ("http", "https") and where.hostname and where.port != 0:
            return where
    except ValueError:  # the port is no port, or a bracket is missing
        pass
    raise _wrong(url)


def _wrong(url: str) -> AdminUrlError:
    return AdminUrlError(f"{url!r}; use http://HOST:PORT of the admin API")

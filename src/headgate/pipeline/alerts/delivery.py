"""Sends requests with alerts to a target, with a bounded number of attempts."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import urllib3

from headgate.base.errors import HeadgateError, InputError
from headgate.base.texts import without_secrets
from headgate.pipeline.alerts.options import Credentials, shown_target
from pyspark_pulsar.admin import cause_of

ATTEMPTS_MAX: Final = 3
ANSWER_TIMEOUT_S: Final = 10.0
BACKOFF_FIRST_S: Final = 1.0
BACKOFF_MAX_S: Final = 15.0
"""Longest wait between two attempts, also if the target asks for a longer one."""

_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
_OF_DOWN: Final = frozenset({429, 502, 503, 504})
_OF_ANY_CONTENT: Final = frozenset({401, 407, 429})
"""Statuses that another body would get as well. With any other one, and without an answer, a
target, or a firewall before it, may refuse a name in the body. Clients choose names."""
_REASON_MAX: Final = 200
_SECRET_MAX: Final = 16_384
_PART_MIN: Final = 8
"""A shorter part of a URL is a word, or can be guessed."""
_ANSWER_BYTES_MAX: Final = 4 * _SECRET_MAX
"""Longest part of an answer that is read. The end of a secret may be in it that begins in what is
shown."""


class DeliveryError(HeadgateError):
    """A target did not accept a request. The next run sends it again."""

    def __init__(
        self, message: str, *, is_down: bool, is_of_content: bool, is_repeated: bool
    ) -> None:
        """``is_down``: the target seems to take no request now. ``is_of_content``: it may take one
        with other alerts. ``is_repeated``: another attempt at this one might have done better."""
        super().__init__(message)
        self.is_down = is_down
        self.is_of_content = is_of_content
        self.is_repeated = is_repeated


class Reply(NamedTuple):
    """The answer to a request."""

    status: int
    text: str = ""
    retry_after: str | None = None


Transport = Callable[[str, bytes, Mapping[str, str]], Reply]
"""POST of a body with headers. Raises :class:`urllib3.exceptions.HTTPError`."""


def http_transport(trust_path: str | None) -> Transport:
    """A transport that follows no redirect, because a token is for one host.

    Raises:
        InputError: the file of authorities cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=trust_path)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"--tls-trust-cert-path {trust_path}: a PEM file with certificates is needed ({error})"
        ) from error
    pool = urllib3.PoolManager(retries=False, ssl_context=context)

    def post(url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        response = pool.request(
            "POST", url, body=body, headers=dict(headers), redirect=False,
            timeout=urllib3.Timeout(total=ANSWER_TIMEOUT_S), preload_content=False,
        )  # fmt: skip
        try:
            text = response.read(_ANSWER_BYTES_MAX).decode("utf-8", "replace")
        finally:
            response.close()
        return Reply(response.status, text, response.headers.get("Retry-After"))

    return post


def headers_of(credentials: Credentials) -> dict[str, str]:
    """The headers of a request; files with secrets are read anew.

    Raises:
        InputError: a file cannot be read, or holds no secret of one line.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "headgate"}
    if credentials.user is not None:
        password = _secret(
            credentials.password, credentials.password_path, "--password-file",
            "HEADGATE_ALERTS_PASSWORD",
        )  # fmt: skip
        pair = base64.b64encode(f"{credentials.user}:{password}".encode()).decode()
        return headers | {"Authorization": f"Basic {pair}"}
    if credentials.token is not None or credentials.token_path is not None:
        token = _secret(
            credentials.token, credentials.token_path, "--token-file", "HEADGATE_ALERTS_TOKEN"
        )
        return headers | {"Authorization": f"Bearer {token}"}
    return headers


def _secret(given: str | None, path: str | None, option: str, variable: str) -> str:
    text, source = given or "", variable
    if path is not None:
        source = f"{option} {path}"
        text = read_secret(path, option)
    if not text or not text.isprintable() or " " in text:
        raise InputError(f"{source}: one line of visible characters is needed")
    return text


def read_secret(path: str, option: str) -> str:
    """The content of a file with a secret, without the line's end.

    Raises:
        InputError: it cannot be read, or is too long.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_SECRET_MAX + 1)
        text = content.decode("utf-8").strip()
    except OSError as error:
        raise InputError(f"{option} {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{option} {path}: a text in UTF-8 is needed") from error
    if len(content) > _SECRET_MAX:
        raise InputError(f"{option} {path}: at most {_SECRET_MAX:,} bytes are allowed")
    return text


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends requests to one target."""

    url: str
    transport: Transport
    headers: Mapping[str, str]
    sleep: Callable[[float], None] = time.sleep

    def send(self, body: Any, attempts_max: int = ATTEMPTS_MAX) -> None:
        """Send one request, a few times if need be.

        Raises:
            DeliveryError: the target did not accept it; the text has no secret.
        """
        content = json.dumps(body).encode()
        backoff_s = BACKOFF_FIRST_S
        for attempt in range(1, attempts_max + 1):
            reply, problem = self._attempt(content)
            if reply is not None and 200 <= reply.status < 300:
                return
            is_final = reply is not None and reply.status not in _RETRIED
            if is_final or attempt == attempts_max:
                tried = "" if is_final or attempt == 1 else f" (tried {attempt} times)"
                message = f"{shown_target(self.url)} {problem}{tried}"
                is_of_content = reply is None or reply.status not in _OF_ANY_CONTENT
                is_down = reply is None or reply.status in _OF_DOWN
                raise DeliveryError(
                    message, is_down=is_down, is_of_content=is_of_content, is_repeated=not is_final
                )
            self.sleep(max(backoff_s, _asked_s(reply)))
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    def _attempt(self, content: bytes) -> tuple[Reply | None, str]:
        """The reply, if there is one, and what is wrong in words."""
        try:
            reply = self.transport(self.url, content, self.headers)
        except urllib3.exceptions.HTTPError as error:
            return None, f"cannot be reached: {self._scrubbed(cause_of(error))}"
        if 300 <= reply.status < 400:
            return reply, f"answered {reply.status}: redirects are not followed"
        said = self._scrubbed(reply.text)[: 4 * _REASON_MAX]
        reason = " ".join(said.split())[:_REASON_MAX]
        return reply, f"answered {reply.status}" + (f": {reason}" if reason else "")

    def _scrubbed(self, text: str) -> str:
        """The text without what only this target may know: a proxy may repeat a request, or a
        part of its URL, as the path without the query."""
        scheme, _, secret = self.headers.get("Authorization", "").partition(" ")
        pair = base64.b64decode(secret).decode() if scheme == "Basic" else ""
        password = pair.partition(":")[2]
        path = self.url.removeprefix(shown_target(self.url))
        hidden = [each for each in (secret, password, self.url, path) if len(each) > 1]
        parts = [part for part in re.split(r"[/?&=;#]", path) if len(part) >= _PART_MIN]
        return without_secrets(text, hidden + parts)


def _asked_s(reply: Reply | None) -> float:
    """The wait that the target asks for, up to the bound."""
    text = None if reply is None else reply.retry_after
    if text is None or not (text.isascii() and text.isdigit()):
        return 0.0
    return min(float(text[:6]), BACKOFF_MAX_S)

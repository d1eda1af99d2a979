"""The bounds of an admin API's answers.

What answers may be any server. An answer of JSON takes up to thirty times its bytes in Python,
and a compressed one has no bound at all: 10 KB of gzip in gzip can be gigabytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import urllib3

BODY_BYTES_MAX = 64 * 1024 * 1024
"""Longest answer. That about a topic with 100,000 ledgers has some 20 MB."""

SEPARATORS_MAX = 2_000_000
"""Most commas, colons and open brackets of an answer of JSON: a value takes up to 64 bytes for
each. A topic with 100,000 ledgers has about a million."""

_REASON_BYTES_MAX = 64 * 1024
_BEGIN_CHARACTERS = 200
_PLAIN = ("", "identity")


def decoded(body: bytes) -> Any:
    """The value of an answer of JSON.

    Raises :class:`ValueError` if it is none, or has more than :data:`SEPARATORS_MAX`.
    """
    # Each value but the first one follows one of these. Those within texts count, too.
    if sum(map(body.count, (b",", b"[", b"{", b":"))) > SEPARATORS_MAX:
        raise ValueError(f"an answer with more than {SEPARATORS_MAX:,} values")
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("an answer that is nested too deeply") from error


def read_body(raw: urllib3.BaseHTTPResponse, bytes_max: int, deadline_s: float) -> bytes | None:
    """The body of an answer as it was sent; None if it has more than ``bytes_max``.

    Raises :class:`urllib3.exceptions.TimeoutError` if it arrives more slowly than ``deadline_s``,
    by the monotonic clock, and other errors of the connection.
    """
    parts: list[bytes] = []
    size_bytes = 0
    while part := raw.read1(decode_content=False):
        parts.append(part)
        size_bytes += len(part)
        if size_bytes > bytes_max:
            return None
        if time.monotonic() >= deadline_s:
            raise urllib3.exceptions.TimeoutError("the answer did not end in time")
    return b"".join(parts)


def is_plain(headers: Mapping[str, str]) -> bool:
    """Whether an answer is not compressed, for which no request asks. Names are in lower case."""
    return headers.get("content-encoding", "").strip().lower() in _PLAIN


def reason_in(body: bytes, scrubbed: Callable[[str], str]) -> str:
    """The reason in the body of a Pulsar error, or the begin of the body.

    ``scrubbed`` takes the secrets out of a text, before it is cut.
    """
    try:
        document = json.loads(body) if len(body) <= _REASON_BYTES_MAX else None
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "reason" in document:
        return scrubbed(str(document["reason"]))
    return begin_of(body, scrubbed, _BEGIN_CHARACTERS)


def begin_of(body: bytes, scrubbed: Callable[[str], str], characters: int) -> str:
    """The begin of a body as text, without secrets."""
    return scrubbed(body[:_REASON_BYTES_MAX].decode("utf-8", "replace"))[:characters]

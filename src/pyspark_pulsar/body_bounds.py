"""The bounds of an admin API's answers.

What answers may be any server. An answer of JSON takes up to thirty times its bytes in Python,
and a compressed one has no bound at all: 10 KB of gzip in gzip can be gigabytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

BODY_BYTES_MAX = 64 * 1024 * 1024
"""Longest answer. That about a topic with 100,000 ledgers has some 20 MB."""

SEPARATORS_MAX = 2_000_000
"""Most commas, colons and open brackets of an answer of JSON: a value takes up to 64 bytes for
each. A topic with 100,000 ledgers has about a million."""

_REASON_BYTES_MAX = 64 * 1024
_BEGIN_BYTES = 200
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


def is_plain(headers: Mapping[str, str]) -> bool:
    """Whether an answer is not compressed, for which no request asks. Names are in lower case."""
    return headers.get("content-encoding", "").strip().lower() in _PLAIN


def reason_in(body: bytes) -> str:
    """The reason in the body of a Pulsar error, or the begin of the body."""
    try:
        document = json.loads(body) if len(body) <= _REASON_BYTES_MAX else None
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "reason" in document:
        return str(document["reason"])
    return body[:_BEGIN_BYTES].decode("utf-8", "replace")

"""Up to where readers get the messages of a topic with transactions.

A broker sends no message behind the first one of a transaction that has not ended, and the end of a
topic in its admin API is behind it. A stream that took that end would go on behind messages that
become readable later. So the end of a query is this position, if it is before the topic's end.

Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyspark_pulsar.body_bounds import decoded, reason_in
from pyspark_pulsar.entries import EntryId

ABSENT_MARK: Final = b"transactionCoordinatorEnabled"
"""A broker without transactions answers 503 with this name of its setting."""

_PLACE: Final = re.compile(r"(\d{1,19}):(-1|\d{1,19})")
_UNKNOWN_STATES: Final = frozenset({"None", "Initializing", "Close"})
"""The broker does not yet know, or not any more, which transactions of the topic have ended."""
_NO_TOPIC: Final = "Topic not found"
_UNKNOWN_REQUEST: Final = frozenset({204, 404, 405, 501})
"""Statuses of topics, and of releases, without such a buffer. Any other may be a broker that cannot
tell now, as 412 while it finds no owner of the topic."""
_ABORTED: Final = "x-pulsar-txn-aborted"
_BITS: Final = re.compile(r"-?\d{1,19}")


class NotReadyError(Exception):
    """The topic's transactions are not known yet. The text says why."""


def is_without_transactions(status: int, body: bytes) -> bool:
    """Whether the broker has no transactions: a retry would not help."""
    return status == 503 and ABSENT_MARK in body


def readable_end(status: int, body: bytes, last: EntryId) -> EntryId:
    """The last entry that readers get, at most ``last``, the topic's last one.

    ``status`` and ``body`` are the answer about the topic's transaction buffer, which was asked for
    after ``last``. The entry id is -1 if readers get nothing of that ledger. A broker that has no
    transactions, or does not know that request, has no end but ``last``.

    Raises :class:`NotReadyError` if another request may tell, and :class:`ValueError` if the answer
    is none about a transaction buffer.
    """
    if status != 200:
        if status == 404 and _NO_TOPIC in reason_in(body, str):
            raise NotReadyError("the topic is not loaded")
        if status not in _UNKNOWN_REQUEST and not is_without_transactions(status, body):
            raise NotReadyError(f"status {status}")
        return last
    found = decoded(body) if body else None
    if found is None:
        return last
    state, place = str(found["state"]), _PLACE.fullmatch(found["maxReadPosition"])
    if state in _UNKNOWN_STATES or place is None:
        raise NotReadyError(f"state {state:.20}")
    return min(last, (int(place[1]), int(place[2])))


def is_never_sent(headers: Mapping[str, str]) -> bool:
    """Whether readers never get an entry: a marker, or a message of an aborted transaction.

    ``headers`` are those of the admin API's answer about it, with names in lower case. Only what
    the broker decides counts. It sends no entry with a marker's type, whoever wrote it; but a
    producer may write a marker that calls the transaction of another one aborted.
    """
    return "x-pulsar-marker-type" in headers or headers.get(_ABORTED) == "true"


def undecided_transaction(headers: Mapping[str, str]) -> str:
    """The transaction of an entry as ``MOST/LEAST``, if ``headers`` do not tell whether it was
    aborted, as those of brokers before 4.0; else empty."""
    bits = [headers.get(f"x-pulsar-txnid-{part}-bits", "") for part in ("most", "least")]
    return "" if _ABORTED in headers or not all(map(_BITS.fullmatch, bits)) else "/".join(bits)

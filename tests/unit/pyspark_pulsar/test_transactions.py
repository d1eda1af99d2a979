from __future__ import annotations

import json

import pytest

from pyspark_pulsar.transactions import (
    NotReadyError,
    is_never_sent,
    is_without_transactions,
    readable_end,
    undecided_transaction,
)

LAST = (9, 5)


def answer(place: str, state: str = "Ready") -> bytes:
    return json.dumps({"state": state, "maxReadPosition": place}).encode()


@pytest.mark.parametrize(
    ("place", "end"), [("9:2", (9, 2)), ("9:-1", (9, -1)), ("7:40", (7, 40)), ("10:0", LAST)]
)
def test_the_end_is_where_the_first_open_transaction_begins(
    place: str, end: tuple[int, int]
) -> None:
    for state in ("Ready", "NoSnapshot", "FirstSnapshotting"):
        assert readable_end(200, answer(place, state), LAST) == end


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b""),
        (404, b"<html>"),
        (405, b"{}"),
        (501, b""),
        (204, b""),
        (200, b"null"),
        (503, b'{"reason":"not configured with transactionCoordinatorEnabled=true"}'),
    ],
)
def test_without_transactions_the_end_is_that_of_the_topic(status: int, body: bytes) -> None:
    assert readable_end(status, body, LAST) == LAST


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"reason":"Topic not found persistent://a/b/c"}'),
        (200, answer("9:5", "Initializing")),
        (200, answer("9:5", "None")),
        (200, answer("9:5", "Close")),
        (200, answer("-1:-1")),
        (412, b'{"reason":"Failed to find ownership for topic:persistent://a/b/c"}'),
        (409, b"{}"),
        (307, b""),
        (503, b"starting"),
    ],
)
def test_a_broker_that_does_not_know_yet_gives_no_end(status: int, body: bytes) -> None:
    with pytest.raises(NotReadyError):
        readable_end(status, body, LAST)


def test_an_answer_of_another_form_is_no_end() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        readable_end(200, b"<html>", LAST)


def test_a_broker_without_transactions_says_so() -> None:
    body = b'{"reason":"This Broker is not configured with transactionCoordinatorEnabled=true."}'
    assert is_without_transactions(503, body)
    assert not is_without_transactions(503, b"starting")
    assert not is_without_transactions(500, body)


MARKER = {"x-pulsar-marker-type": "21"}
OF_ONE = {"x-pulsar-txnid-most-bits": "0", "x-pulsar-txnid-least-bits": "-7"}


@pytest.mark.parametrize(
    ("headers", "is_unsent", "undecided"),
    [
        (MARKER, True, ""),
        (MARKER | OF_ONE, True, "0/-7"),
        (OF_ONE | {"x-pulsar-txn-aborted": "true"}, True, ""),
        (OF_ONE | {"x-pulsar-txn-aborted": "false"}, False, ""),
        (OF_ONE, False, "0/-7"),
        ({"x-pulsar-txnid-most-bits": "0"}, False, ""),
        (OF_ONE | {"x-pulsar-txnid-most-bits": "../0"}, False, ""),
        ({}, False, ""),
    ],
)
def test_headers_tell_of_markers_and_transactions(
    headers: dict[str, str], is_unsent: bool, undecided: str
) -> None:
    assert is_never_sent(headers) is is_unsent
    assert undecided_transaction(headers) == undecided

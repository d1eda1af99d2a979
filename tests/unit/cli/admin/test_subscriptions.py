"""Requests about subscriptions, with positions and ages."""

from __future__ import annotations

import json
import time

import pytest

from headgate.base.units import INT64_MAX
from tests.unit.cli.admin.fake_server import FakeServer, admin

SUB = "/admin/v2/persistent/t/n/x/subscription/sub"
WORDS = ("t/n/x", "-s", "sub")


def test_reset_to_a_message_or_after_it(server: FakeServer) -> None:
    admin("topics", "reset-cursor", *WORDS, "-m", "latest", "-e")
    method, path, body = server.asked[0]
    assert (method, path) == ("POST", f"{SUB}/resetcursor")
    assert json.loads(body) == {
        "ledgerId": INT64_MAX,
        "entryId": INT64_MAX,
        "partitionIndex": -1,
        "batchIndex": -1,
        "excluded": True,
    }


def test_reset_goes_back_from_now(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.25)
    admin("topics", "reset-cursor", *WORDS, "-t", "10m")
    assert server.asked == [("POST", f"{SUB}/resetcursor/999400250", "")]


def test_reset_needs_a_place(server: FakeServer) -> None:
    result = admin("topics", "reset-cursor", *WORDS)
    assert result.exit_code == 1
    assert "Reason: Either Timestamp (--time) or messageId (--messageId)" in result.stderr
    assert server.asked == []


def test_expiry_by_age_or_up_to_a_message(server: FakeServer) -> None:
    admin("topics", "expire-messages", *WORDS, "-t", "1h")
    admin("topics", "expire-messages", "t/n/x-partition-3", "-s", "sub", "-p", "8:5")
    assert server.asked[0] == ("POST", f"{SUB}/expireMessages/3600", "")
    assert json.loads(server.asked[1][2])["partitionIndex"] == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "Either time (--expireTime) or message position (--position)"),
        (["-t", "1", "-p", "8:5"], "Can't expire message by time and by message position"),
    ],
)
def test_expiry_needs_one_of_both(server: FakeServer, more: list[str], said: str) -> None:
    result = admin("topics", "expire-messages", *WORDS, *more)
    assert result.exit_code == 1
    assert result.stderr.startswith(said)
    assert server.asked == []


def test_new_subscriptions_begin_at_the_end_unless_told(server: FakeServer) -> None:
    admin("topics", "create-subscription", *WORDS)
    admin("topics", "create-subscription", *WORDS, "-m", "8:5", "-p", "a=1", "-p", "b=2,c=3")
    admin("topics", "create-subscription", *WORDS, "-m", "earliest")
    assert json.loads(server.asked.pop()[2]) == {  # as pulsar-admin 4.0.8 sends it
        "ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0,
    }  # fmt: skip
    method, path, body = server.asked[0]
    assert (method, path) == ("PUT", f"{SUB}?replicated=false")
    assert json.loads(body) == {
        "ledgerId": INT64_MAX, "entryId": INT64_MAX, "partitionIndex": -1, "batchIndex": -1,
        "batchSize": 0,
    }  # fmt: skip
    later = json.loads(server.asked[1][2])
    assert (later["ledgerId"], later["entryId"]) == (8, 5)
    assert later["properties"] == {"a": "1", "b": "2", "c": "3"}


def test_properties_are_replaced_or_cleared(server: FakeServer) -> None:
    admin("topics", "update-subscription-properties", *WORDS, "-p", "a=1", "-p", "b=2")
    admin("topics", "update-subscription-properties", *WORDS, "-c")
    assert server.asked == [
        ("PUT", f"{SUB}/properties", '{"a":"1","b":"2"}'),
        ("PUT", f"{SUB}/properties", "{}"),
    ]
    for more, said in (
        ([], "If you want to clear the properties you have to use --clear"),
        (["-c", "-p", "a=1"], "If you set --clear then you should not pass any property"),
    ):
        result = admin("topics", "update-subscription-properties", *WORDS, *more)
        assert result.exit_code == 1
        assert result.stderr.startswith(said)
    assert len(server.asked) == 2


def test_properties_are_shown(server: FakeServer) -> None:
    server.answer({"a": "1"})
    result = admin("topics", "get-subscription-properties", *WORDS)
    assert result.stdout == '{\n  "a" : "1"\n}\n'
    assert server.asked == [("GET", f"{SUB}/properties", "")]


def test_the_replication_of_a_subscription(server: FakeServer) -> None:
    for switch, body in (("-e", "true"), ("--disable", "false")):
        admin("topics", "set-replicated-subscription-status", *WORDS, switch)
        assert server.asked.pop() == ("POST", f"{SUB}/replicatedSubscriptionStatus", body)
    for switches in ([], ["-e", "-d"]):
        result = admin("topics", "set-replicated-subscription-status", *WORDS, *switches)
        assert result.stderr.startswith("Need to specify either --enable or --disable")
    server.answer({"persistent://t/n/x": False})
    result = admin("topics", "get-replicated-subscription-status", *WORDS)
    assert result.stdout == "persistent://t/n/x    false\n"

"""The table, the topic that is opened from it, and the help."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cli.explain.command import EXPLAIN_PATH, ExplainError
from headgate.cli.live.screen import Freshness
from headgate.cli.top.view import TopView
from tests.unit.cli.top.reports import answer, report

FRESH = Freshness(0, "", 2.0)
TABLE = answer(report("t/n/a"), report("t/n/b", backlogMessages=7))
TOPIC: Any = {
    "topic": "persistent://t/n/a", "at": "2026-11-21T18:18:35.976Z", "partitions": 0,
    "sentence": "no subscription.", "damage": None, "storageBytes": 0, "storage": {"sentence": ""},
    "publishing": {"producers": 0, "messagesPerS": 0.0, "bytesPerS": 0.0, "pendingEntries": 0,
                   "parked": [], "longestWaiting": [], "limits": [], "waitingForAccess": 0,
                   "delaysIgnored": 0, "delaysRefused": 0, "duplicatesDropped": 0,
                   "sentence": "nothing", "lastPublish": None},
    "quotas": [], "adaptive": None, "limits": [], "subscriptions": [], "perPartition": None,
}  # fmt: skip


def made() -> TopView:
    return TopView("http://b", "/top", TABLE, is_drawn=False)


def shown(view: TopView, freshness: Freshness = FRESH) -> list[str]:
    lines = view.lines(90, 20, freshness)
    assert len(lines) == 20
    return [line.plain.rstrip() for line in lines]


def test_a_topic_opens_over_the_table_and_closes() -> None:
    view = made()
    assert view.path == "/top"
    view.on_key("enter")
    assert view.path == f"{EXPLAIN_PATH}/persistent/t/n/a"
    # Until its answer is there the table stays.
    assert shown(view)[0].startswith("headgate top")
    view.on_answer(TOPIC)
    assert shown(view)[0].startswith("t/n/a, 2026-11-21")
    assert shown(view)[-1].startswith("q back")
    view.on_answer(TOPIC | {"at": "2026-11-21T18:18:40.976Z"})
    assert "18:18:40" in shown(view)[0]
    view.on_key("p")
    assert view.is_paused
    view.on_key("q")
    assert (view.path, view.is_done, view.is_paused) == ("/top", False, False)
    assert shown(view)[0].startswith("headgate top")
    view.on_key("q")
    assert view.is_done


def test_a_newer_answer_replaces_the_table() -> None:
    view = made()
    view.on_answer(answer(report("t/n/c")))
    assert any("t/n/c" in line for line in shown(view))


def test_an_older_release_is_named_and_the_table_stays() -> None:
    old = {"subscriptions": [], "broker": "b"}
    with pytest.raises(ExplainError, match="http://b runs an older release"):
        TopView("http://b", "/top", old, is_drawn=False)
    view = made()
    with pytest.raises(ExplainError):
        view.on_answer(old)
    assert any("t/n/a" in line for line in shown(view))


def test_help_and_typing_have_their_last_lines() -> None:
    view = made()
    assert shown(view)[-1].startswith("q quit")
    view.on_key("?")
    assert "any key goes back" in shown(view)[-1]
    assert any("the next order" in line for line in shown(view))
    narrow = [line.plain for line in view.lines(50, 60, FRESH)]
    assert all(len(line) <= 50 for line in narrow)
    assert "not measured." in " ".join(narrow)
    view.on_key("x")
    view.on_key("/")
    assert shown(view)[-1].startswith("Type a part of a name")


def test_a_broker_that_is_gone() -> None:
    view = made()
    assert shown(view, Freshness(7, "http://b refuses", 2.0))[-1].startswith(
        "No answer for 7 s: http://b refuses"
    )


def test_a_pipe_gets_all_rows() -> None:
    many = answer(*(report(f"t/n/{n}") for n in range(60)))
    lines = TopView("http://b", "/top", many, is_drawn=False).table(100)
    assert sum(line.plain.startswith("Consumer  ") for line in lines) == 60


@pytest.mark.parametrize("value", [None, "x", [None], ["x"], [{}]])
def test_what_is_no_answer_leaves_the_table(value: object) -> None:
    view = made()
    with pytest.raises(ExplainError):
        view.on_answer(answer() | {"subscriptions": value})
    assert any("t/n/a" in line for line in shown(view))

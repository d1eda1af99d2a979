"""The routes that terminate topics."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

P = "/admin/v2/persistent/public/default"


def test_a_topic_is_terminated(api: Ask) -> None:
    api("PUT", f"{P}/t")
    answer = api("POST", f"{P}/t/terminate")
    assert (answer.status, answer.json()) == (
        200,
        {"ledgerId": 7, "entryId": 41, "partitionIndex": -1},
    )
    assert api("POST", f"{P}/none/terminate").status == 404


def test_all_partitions_are_terminated(api: Ask) -> None:
    api("PUT", f"{P}/p/partitions", 2)
    assert api("POST", f"{P}/p/terminate/partitions").json() == {
        "0": {"ledgerId": 7, "entryId": 41, "partitionIndex": 0},
        "1": {"ledgerId": 7, "entryId": 41, "partitionIndex": 1},
    }
    assert api("POST", f"{P}/p-partition-1/terminate").json()["partitionIndex"] == 1
    refused = api("POST", f"{P}/p/terminate")
    assert refused.status == 405
    assert refused.reason == "Termination of a partitioned topic is not allowed"


def test_a_topic_without_partitions_needs_the_other_verb(api: Ask) -> None:
    api("PUT", f"{P}/t")
    refused = api("POST", f"{P}/t/terminate/partitions")
    assert refused.status == 405
    assert "please use terminate commands" in refused.reason
    assert api("POST", f"{P}/none/terminate/partitions").status == 404

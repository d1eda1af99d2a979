"""Trims, truncation, stored ledgers, and processes that never ran."""

from __future__ import annotations

import pytest

from headgate.admin.topic_stats import SLICE_PARTITIONS
from headgate.base.names import parse_topic
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import LEDGER, FakeFacade, FakeSubscription

P = "/admin/v2/persistent/public/default"
T = f"{P}/t"
FULL = "persistent://public/default"


def furnish(api: Ask, broker: FakeFacade) -> None:
    api("PUT", T)
    api("PUT", f"{P}/pt/partitions", 2)
    broker.topic(parse_topic("t")).subscriptions["s"] = FakeSubscription(next=1)


def test_each_partition_is_trimmed_and_truncated(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    assert api("POST", f"{T}/trim").status == 204
    assert api("DELETE", f"{P}/pt/truncate").status == 204
    assert broker.messages.asked == [
        ("trim", f"{FULL}/t"),
        ("truncate", f"{FULL}/pt-partition-0"),
        ("truncate", f"{FULL}/pt-partition-1"),
    ]
    assert api("DELETE", f"{P}/none/truncate").status == 404


def test_stored_ledgers_and_cursors(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    info = api("GET", f"{T}/internal-info").json()
    assert info["ledgers"] == [{"ledgerId": LEDGER}]
    assert info["cursors"]["s"]["markDelete"] == {"ledgerId": LEDGER, "entryId": 0}
    assert info["cursors"]["s"]["cursorsLedgerId"] == -1
    split = api("GET", f"{P}/pt/internal-info").json()["partitions"]
    assert list(split) == [f"{FULL}/pt-partition-0", f"{FULL}/pt-partition-1"]
    assert api("GET", f"{P}/none/internal-info").status == 404


def test_the_ledgers_of_very_many_partitions_are_read_in_slices(
    api: Ask, broker: FakeFacade
) -> None:
    api("PUT", f"{P}/wide/partitions", 400)
    broker.gave_way = 0
    assert len(api("GET", f"{P}/wide/internal-info").json()["partitions"]) == 400
    assert broker.gave_way >= 400 // SLICE_PARTITIONS


@pytest.mark.parametrize("process", ["compaction", "offload"])
def test_a_process_that_is_not_there_never_ran(api: Ask, broker: FakeFacade, process: str) -> None:
    furnish(api, broker)
    assert api("GET", f"{T}/{process}").json() == {"status": "NOT_RUN", "lastError": ""}
    answer = api("PUT", f"{T}/{process}")
    assert answer.status == 405
    assert "is not supported" in answer.reason
    assert api("GET", f"{P}/none/{process}").status == 404

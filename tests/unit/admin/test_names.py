"""Names that may not be, and the words for what is not there."""

from __future__ import annotations

import weakref

import pytest

from headgate.admin.names import missing_topic, partitions_of
from headgate.base.names import parse_topic
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

P = "/admin/v2/persistent"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (f"{P}/bad$/default/t/stats", "Tenant name is not valid"),
        (f"{P}/public/bad$/t/stats", "Namespace name is not valid"),
        (f"{P}/public/default/a%2Fb/stats", "Topic name is not valid"),
        (f"{P}/public/default/a%00b/stats", "Topic name is not valid"),
        (f"{P}/public/default/{'x' * 600}/stats", "Topic name is not valid"),
        ("/admin/v2/namespaces/bad$", "Tenant name is not valid"),
    ],
)
def test_bad_names(api: Ask, path: str, reason: str) -> None:
    answer = api("GET", path)
    assert (answer.status, answer.reason) == (412, reason)


def test_a_bad_subscription_is_named(api: Ask) -> None:
    api("PUT", f"{P}/public/default/t")
    answer = api("PUT", f"{P}/public/default/t/subscription/a%0Ab")
    assert answer.status == 412
    assert "Invalid subscription name" in answer.reason


def test_names_with_spaces_and_letters_of_all_kinds(api: Ask) -> None:
    assert api("PUT", f"{P}/public/default/a%20%C3%BC%3F").status == 204
    assert api("GET", f"{P}/public/default").json() == ["persistent://public/default/a \u00fc?"]


def test_missing_topics(broker: FakeFacade, api: Ask) -> None:
    api("PUT", f"{P}/public/default/pt/partitions", 2)
    reasons = [
        missing_topic(broker.catalog, parse_topic(name)).reason
        for name in ("x", "x-partition-0", "pt-partition-7")
    ]
    assert reasons == [
        "Topic persistent://public/default/x not found",
        "Partitioned Topic not found: persistent://public/default/x-partition-0 has zero "
        "partitions",
        "Topic partitions were not yet created",
    ]


def test_partitions_that_were_deleted_are_left_out(broker: FakeFacade, api: Ask) -> None:
    api("PUT", f"{P}/public/default/pt/partitions", 3)
    assert api("DELETE", f"{P}/public/default/pt-partition-1").status == 204
    found = partitions_of(broker.catalog, parse_topic("pt"))
    assert [name.partition for name in found] == [0, 2]
    assert partitions_of(broker.catalog, parse_topic("none")) == []


def test_requests_share_the_names_of_partitions(broker: FakeFacade, api: Ask) -> None:
    """Each of hundreds of requests about 990 partitions had 250 KB of them."""
    api("PUT", f"{P}/public/default/pt/partitions", 3)
    first, second = (partitions_of(broker.catalog, parse_topic("pt")) for _ in range(2))
    assert first is second
    assert api("DELETE", f"{P}/public/default/pt-partition-1").status == 204
    third, fourth = (partitions_of(broker.catalog, parse_topic("pt")) for _ in range(2))
    assert all(one is other for one, other in zip(third, fourth, strict=True))
    del first, second
    assert partitions_of(broker.catalog, parse_topic("pt"))[1] is third[1]
    freed = weakref.ref(third)
    del third, fourth
    assert freed() is None

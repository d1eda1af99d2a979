"""Names that are replaced by hashes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from headgate.agent.looks import ConsumerLook, QuotaLook
from headgate.agent.name_hashes import NameHashes
from tests.unit.agent.looks import backlog, look

HASHES = NameHashes(b"salt")


def test_equal_names_have_equal_hashes_with_one_salt_alone() -> None:
    assert HASHES.name("tenant", "acme") == HASHES.name("tenant", "acme")
    assert HASHES.name("tenant", "acme") != HASHES.name("topic", "acme")
    assert HASHES.name("tenant", "acme") != NameHashes(b"other").name("tenant", "acme")
    assert HASHES.name("tenant", "") == ""


def test_a_topic_keeps_its_form() -> None:
    first = HASHES.topic("persistent://acme/shop/orders-partition-3")
    second = HASHES.topic("persistent://acme/shop/orders-partition-4")
    assert first.rsplit("-", 1)[0] == second.rsplit("-", 1)[0]
    assert first.endswith("-partition-3")
    assert first.startswith("persistent://tenant-")
    assert HASHES.topic("persistent://acme/shop/orders") == first.removesuffix("-partition-3")


def test_a_namespace_of_another_tenant_is_another() -> None:
    one, two = (HASHES.topic(f"persistent://{tenant}/shop/x") for tenant in ("a", "b"))
    assert one.split("/")[3] != two.split("/")[3]


def test_a_namespaces_quotas_fit_its_topics() -> None:
    hashes = NameHashes(b"salt")
    quotas = hashes.quota_look(QuotaLook("acme/orders", 1, 5, None))
    assert hashes.topic("persistent://acme/orders/paid").startswith(
        f"persistent://{quotas.namespace}/"
    )
    assert quotas.size_bytes == 5


def test_what_is_no_topic_is_hashed_whole() -> None:
    assert HASHES.topic("a//b//c//d").startswith("topic-")


def test_no_name_of_a_look_is_left() -> None:
    secret = "acme-secret"

    def named(value: Any, *kept: str) -> Any:
        names = [each.name for each in fields(value) if each.type == "str"]
        return replace(value, **{name: secret for name in names if name not in kept})

    consumer = named(ConsumerLook("", "", "", 1, 0, False, 0, 1.0), "connected_since")
    one = replace(
        named(look(1, named(replace(backlog(), consumers=(consumer,)), "type"))),
        publisher_addresses=(secret,),
    )
    hashed = HASHES.topic_look(one)
    assert secret not in repr(hashed)
    # A verdict on Failover goes by the consumer that gets the messages.
    subscription = hashed.subscriptions[0]
    assert subscription.active_consumer == subscription.consumers[0].name

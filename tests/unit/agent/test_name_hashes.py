"""Names that are replaced by hashes."""

from __future__ import annotations

from headgate.agent.name_hashes import NameHashes

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


def test_what_is_no_topic_is_hashed_whole() -> None:
    assert HASHES.topic("a//b//c//d").startswith("topic-")

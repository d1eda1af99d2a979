"""Names are read the way every Pulsar client writes them, and bad ones are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.names import (
    NAME_CHARACTERS_MAX,
    REMEMBERED_CHARACTERS_MAX,
    InvalidNameError,
    NamespaceName,
    check_entity,
    check_new_subscription,
    check_subscription,
    make_topic,
    parse_topic,
    tenant_of,
)

ENTITIES = st.text(st.sampled_from("-=:._aZ09"), min_size=1, max_size=20)
LOCALS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=40
)
DEFAULT = NamespaceName("public", "default")


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("orders", "persistent://public/default/orders"),
        ("acme/shop/orders", "persistent://acme/shop/orders"),
        ("persistent://acme/shop/orders", "persistent://acme/shop/orders"),
        ("non-persistent://acme/shop/orders", "non-persistent://acme/shop/orders"),
        ("a topic with: signs?", "persistent://public/default/a topic with: signs?"),
    ],
)
def test_full_and_short_names_mean_one_topic(text: str, full: str) -> None:
    topic = parse_topic(text)
    assert topic.full == str(topic) == full
    assert topic.is_persistent == full.startswith("persistent")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "a/b/c/d",
        "persistent://",
        "persistent://orders",
        "persistent://a/b",
        "persistent://a/b/",
        "persistent:///b/c",
        "kafka://a/b/c",
        "acme!/shop/orders",
        "acme\n/shop/orders",
        "acme/shop\n/orders",
        "acme/shöp/orders",
        "acme/shop/or\x00ders",
        "acme/shop/orders\n",
        "x" * (NAME_CHARACTERS_MAX + 1),
    ],
)
def test_other_names_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidNameError, match=r"Invalid .* (is|are) allowed"):
        parse_topic(text)


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        topic = parse_topic(text)
    except InvalidNameError:
        return
    assert parse_topic(topic.full) == topic


@given(ENTITIES, ENTITIES, LOCALS)
def test_every_allowed_name_survives(tenant: str, namespace: str, local: str) -> None:
    topic = parse_topic(f"persistent://{tenant}/{namespace}/{local}")
    assert topic.namespace == NamespaceName(tenant, namespace)
    assert topic.local == local


@pytest.mark.parametrize(
    ("local", "partition"),
    [
        ("orders-partition-0", 0),
        ("orders-partition-12", 12),
        ("orders-partition-012", -1),
        ("orders-partition-1\N{ARABIC-INDIC DIGIT TWO}", -1),
        ("orders-partition-", -1),
        ("orders-partition-x", -1),
        ("-partition-3", -1),
        ("orders-partition-1-partition-2", 2),
        ("orders", -1),
    ],
)
def test_a_partition_is_reported_by_its_suffix(local: str, partition: int) -> None:
    assert make_topic("persistent", DEFAULT, local).partition == partition


def test_a_partition_and_its_base_name_each_other() -> None:
    base = parse_topic("orders")
    third = base.partition_name(3)
    assert third.full == "persistent://public/default/orders-partition-3"
    assert third.partition == 3
    assert third.base == base
    assert base.base is base


def test_names_of_partitions_are_those_that_are_read() -> None:
    base = parse_topic("acme/shop/" + "o" * (NAME_CHARACTERS_MAX - len("-partition-99")))
    for index in (0, 7, 99):
        name = base.partition_name(index)
        assert name == parse_topic(name.full)
    with pytest.raises(InvalidNameError):
        base.partition_name(100)


def test_namespaces_have_two_parts() -> None:
    assert str(NamespaceName.parse("acme/shop")) == "acme/shop"
    for text in ("acme", "acme/shop/orders", "", "/", "acme/"):
        with pytest.raises(InvalidNameError):
            NamespaceName.parse(text)


@pytest.mark.parametrize("name", ["acme", "a=b:c.d-e_f", "x" * NAME_CHARACTERS_MAX])
def test_entities_that_are_allowed(name: str) -> None:
    assert check_entity("tenant", name) == name


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\n", "é", "x" * (NAME_CHARACTERS_MAX + 1)])
def test_entities_that_are_not(name: str) -> None:
    with pytest.raises(InvalidNameError, match="Invalid tenant name"):
        check_entity("tenant", name)


@pytest.mark.parametrize("name", ["billing", "a b/c", "é", "x" * NAME_CHARACTERS_MAX])
def test_subscriptions_that_are_allowed(name: str) -> None:
    assert check_subscription(name) == name


@pytest.mark.parametrize("name", ["", "a\nb", "a\x7f", "x" * (NAME_CHARACTERS_MAX + 1)])
def test_subscriptions_that_are_not(name: str) -> None:
    with pytest.raises(InvalidNameError, match="Invalid subscription name"):
        check_subscription(name)


def test_a_refusal_never_repeats_a_whole_flood() -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_topic("x" * 1_000_000)
    assert len(str(caught.value)) < 300


def test_a_new_subscription_has_no_name_that_a_url_resolves() -> None:
    # Of the last four a proxy that decodes slashes makes parts of the path.
    for name in (".", "..", "a/../..", "../x", "x/.", "a\\..\\.."):
        with pytest.raises(InvalidNameError, match="in a URL"):
            check_new_subscription(name)
        assert check_subscription(name) == name, "one that is there can be deleted"
    for name in ("...", ".x", "x..", "%2e", "a/b", "a/.b/c..", "a//b"):
        check_new_subscription(name)


def test_long_names_are_not_remembered() -> None:
    """Anybody may ask for thousands of them, which need not exist."""
    short, long = "persistent://a/b/c", "persistent://a/b/" + "c" * REMEMBERED_CHARACTERS_MAX
    assert parse_topic(short) is parse_topic(short)
    assert parse_topic(long) == parse_topic(long)
    assert parse_topic(long) is not parse_topic(long)


def test_the_tenant_of_a_full_name_is_behind_its_first_domain() -> None:
    assert tenant_of("persistent://acme/ns/a://mine/b") == "acme"
    assert tenant_of("acme/ns") == "acme"
    assert tenant_of("acme") == "acme"
    assert tenant_of("") == ""

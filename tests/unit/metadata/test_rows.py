"""Every kind of row has a type, and every row survives being stored."""

from __future__ import annotations

import msgspec

from headgate.metadata.rows import ROW_TYPES, Bundles, Kind, NamespaceRow, TopicRow


def test_every_kind_has_a_type() -> None:
    assert set(ROW_TYPES) == set(Kind)


def test_a_row_is_read_as_it_was_written() -> None:
    row = NamespaceRow(bundles=Bundles(("0x00000000", "0xffffffff"), 1), clusters=("c",))
    assert msgspec.json.decode(msgspec.json.encode(row), type=NamespaceRow) == row


def test_a_topics_number_is_its_incarnation() -> None:
    assert TopicRow(name="persistent://a/b/c", number=7, created_ms=1).incarnation == 7


def test_a_stored_partition_that_lacks_subscriptions_keeps_its_old_field_name() -> None:
    row = TopicRow(name="persistent://a/b/c", number=7, created_ms=1, lacks_subscriptions=True)
    assert msgspec.json.decode(msgspec.json.encode(row))["joining"] is True

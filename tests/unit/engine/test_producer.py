"""What a producer counts."""

from __future__ import annotations

from tests.unit.engine.harness import Rig


def test_published_messages_and_bytes() -> None:
    rig = Rig()
    rig.publish(2, messages=5, body=b"123")
    assert rig.producer.counters() == (10, 6, 0)

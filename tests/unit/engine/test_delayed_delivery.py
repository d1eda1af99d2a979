"""The policy of delayed delivery without any setting."""

from __future__ import annotations

from headgate.engine.delayed_delivery import DEFAULT_DELAYED_DELIVERY


def test_messages_are_delayed_for_any_time() -> None:
    assert DEFAULT_DELAYED_DELIVERY.active
    assert DEFAULT_DELAYED_DELIVERY.delay_max_ms == 0

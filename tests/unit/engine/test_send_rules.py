"""The rules of a topic without any say nothing."""

from __future__ import annotations

from headgate.engine.send_rules import SendRules


def test_nothing_is_asked_by_default() -> None:
    assert SendRules() == SendRules(encrypted=False, message_bytes_max=0)

"""Labels and kinds of subscriptions."""

from __future__ import annotations

from headgate.engine.types import SubscriptionType


def test_labels_are_pulsars() -> None:
    assert [kind.label for kind in SubscriptionType] == ["Exclusive", "Shared", "Failover"]


def test_only_shared_is_shared() -> None:
    assert [kind.is_shared for kind in SubscriptionType] == [False, True, False]

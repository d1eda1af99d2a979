"""Values of the settings about what ends by itself."""

from __future__ import annotations

import pytest

from headgate.policy.setting_info import SettingError
from headgate.policy.settings import SETTINGS, Settings


def test_types_of_subscriptions_are_names_of_types() -> None:
    settings = Settings()
    settings.set("subscriptionTypesEnabled", "Shared, Exclusive")
    assert settings.subscriptionTypesEnabled == "Shared, Exclusive"
    for text in ("", " , ", "shared", "Shared,Exclusive,Other"):
        with pytest.raises(SettingError, match="subscriptionTypesEnabled"):
            settings.set("subscriptionTypesEnabled", text)


def test_defaults_are_those_of_pulsar() -> None:
    settings = Settings()
    assert settings.ttlDurationDefaultInSeconds == 0
    assert settings.messageExpiryCheckIntervalInMinutes == 5
    assert settings.subscriptionExpirationTimeMinutes == 0
    assert settings.brokerDeleteInactiveTopicsMode == "delete_when_no_subscriptions"
    assert not settings.brokerDeleteInactivePartitionedTopicMetadataEnabled
    assert settings.allowAutoSubscriptionCreation
    assert not settings.forceDeleteNamespaceAllowed
    assert not settings.forceDeleteTenantAllowed
    assert SETTINGS["brokerDeleteInactiveTopicsMaxInactiveDurationSeconds"].empty == 0

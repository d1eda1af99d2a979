"""The settings of schemas."""

from __future__ import annotations

import pytest

from headgate.policy.setting_info import SettingError
from headgate.policy.settings import SETTINGS, Settings


def test_the_defaults_are_pulsars() -> None:
    settings = Settings()
    assert settings.schemaCompatibilityStrategy == "FULL"
    assert settings.isAllowAutoUpdateSchemaEnabled
    assert not settings.isSchemaValidationEnforced
    assert SETTINGS["isAllowAutoUpdateSchemaEnabled"].dynamic


def test_a_strategy_is_one_of_pulsars() -> None:
    settings = Settings()
    settings.set("schemaCompatibilityStrategy", "BACKWARD_TRANSITIVE")
    with pytest.raises(SettingError, match="ALWAYS_COMPATIBLE"):
        settings.set("schemaCompatibilityStrategy", "SOME")

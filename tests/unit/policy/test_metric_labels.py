"""Which properties may become labels."""

from __future__ import annotations

import pytest

from headgate.base.metric_labels import METRIC_LABELS_MAX
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import Settings

NAME = "allowedTopicPropertyKeysForMetrics"
EIGHT = ",".join(f"l{number}" for number in range(METRIC_LABELS_MAX))


@pytest.mark.parametrize("text", ["", "team", "sla_tier, app_owner", "_x", EIGHT])
def test_names_of_labels_are_allowed(text: str) -> None:
    settings = Settings()
    settings.set(NAME, text)
    assert settings.allowedTopicPropertyKeysForMetrics == text


@pytest.mark.parametrize("text", ["a-b", "__name__", "topic", f"{EIGHT},more", "a b"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match=f"{NAME}.*at most 8 names of labels"):
        Settings().set(NAME, text)

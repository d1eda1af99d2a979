"""Which properties may become labels."""

from __future__ import annotations

import pytest

from headgate.policy.metric_labels import METRIC_LABELS_MAX, RESERVED_LABELS
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import Settings

NAME = "allowedTopicPropertiesForMetrics"
EIGHT = ",".join(f"l{number}" for number in range(METRIC_LABELS_MAX))


@pytest.mark.parametrize("text", ["", "team", "sla_tier, app_owner", "_x", EIGHT])
def test_names_of_labels_are_allowed(text: str) -> None:
    settings = Settings()
    settings.set(NAME, text)
    assert settings.allowedTopicPropertiesForMetrics == text


@pytest.mark.parametrize(
    "text", ["a-b", "1a", "__name__", "topic", "cluster", "x" * 65, f"{EIGHT},more", "a b"]
)
def test_others_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match=f"{NAME}.*at most 8 names of labels"):
        Settings().set(NAME, text)


def test_reserved_names_are_names() -> None:
    assert all(name.isidentifier() for name in RESERVED_LABELS)

"""The rule of the setting that says which properties of topics become labels on /metrics."""

from __future__ import annotations

from typing import Final

from headgate.base.metric_labels import ALLOWED_LABELS, problem_of_labels
from headgate.policy.setting_info import TextRule, names_of

METRIC_LABELS: Final = TextRule(
    f"{ALLOWED_LABELS}; with commas between them", lambda text: problem_of_labels(names_of(text))
)
"""The rule of ``allowedTopicPropertyKeysForMetrics``."""

"""The settings of a replayed policy as readable text."""

from __future__ import annotations

import json

from headgate.pipeline.output.policy_settings import readable_settings


def test_settings_in_words() -> None:
    settings = {
        "name": "mine",
        "publish": "none",
        "adaptive": {"observe_only": True, "interval_ms": 5_000},
    }
    words = "publish: none; adaptive: observe_only true, interval_ms 5,000"
    assert readable_settings(json.dumps(settings)) == words
    assert readable_settings('{"name":"mine"}') == readable_settings(None) == "as recorded"
    assert readable_settings("[1]") == "settings: [1]"

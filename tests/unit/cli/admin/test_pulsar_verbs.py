"""Verbs of ``pulsar-admin`` that Headgate does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.admin.pulsar_verbs import PULSAR_VERBS, missing_group, missing_verb
from tests.peer.pulsar_tools import read_story
from tests.unit.cli.admin.test_command import groups

PEER = Path(__file__).parents[3] / "peer"
KEYS = "allowed-topic-property-keys-for-metrics"
OWN = {
    *("accept-damage", "check", "get-runtime-configuration", "get-backlog-quota"),
    *(f"{action}-{KEYS}" for action in ("get", "set", "remove")),
}
"""Two that Pulsar has nothing for; other names of ``get-runtime-config`` and
``get-backlog-quotas``; those of a policy of Pulsar 4.2."""


def test_every_verb_of_ours_is_one_of_pulsar_admins() -> None:
    for name, group in groups().items():
        assert set(group.commands) - OWN <= PULSAR_VERBS.get(name, frozenset())


def test_every_verb_of_ours_is_played_with_pulsar_admin() -> None:
    """``./dev test-peer tools`` plays the stories with the tool itself."""
    played = set()
    for story in ("pulsar_tools.txt", "pulsar_verbs.txt"):
        for step in read_story((PEER / story).read_text(encoding="utf-8")):
            if step.words[0] == "admin":
                played.add(tuple(step.words[1:3]))
    missing = {
        f"{name} {verb}"
        for name, group in groups().items()
        for verb in set(group.commands) & PULSAR_VERBS.get(name, frozenset())
        if (name, verb) not in played
    }
    assert not missing


@pytest.mark.parametrize(
    ("group", "verb"),
    [
        ("topics", "set-message-ttl"),
        ("namespaces", "set-schema-validation-enforce"),
        ("topicPolicies", "get-message-ttl"),
        ("broker-stats", "load-report"),
        ("functions", "localrun"),
    ],
)
def test_the_table_has_what_the_tool_has(group: str, verb: str) -> None:
    assert verb in PULSAR_VERBS[group]


def test_what_is_said() -> None:
    assert missing_group("packages", "list") == "Headgate does not have this yet: packages list"
    assert missing_group("packages", "x") == "Headgate does not have this yet: packages"
    assert missing_group("package") == ""
    assert missing_verb("topics", "compact", ["stats"]).endswith("yet: topics compact")
    assert missing_verb("topics", "stat", ["stats"]) == ""
    assert missing_verb("topics", "xyz", ["stats"]) == ""
    assert missing_verb("nothing", "stat", ["stats"]) == ""

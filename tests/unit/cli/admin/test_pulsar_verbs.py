"""Verbs of ``pulsar-admin`` that Headgate does not have."""

from __future__ import annotations

import pytest

from headgate.cli.admin.pulsar_verbs import PULSAR_VERBS, missing_group, missing_verb
from tests.unit.cli.admin.test_command import groups

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

"""The words of each change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.flow.sentences.changes import (
    ClientsFacts,
    by_role,
    clients_clause,
    growth_sentence,
    messages_clause,
    policy_name,
    value_clause,
)

CAME = ClientsFacts("billing", 1, 0, ["a"], [], 0, 0, 1, ["3.1"], [])
LEFT = ClientsFacts("billing", 0, 1, [], ["a"], 0, 1, 0, [], ["3.1"])
REPLACED = ClientsFacts(
    "billing", 3, 3, ["d", "e", "f"], ["a", "b", "c"], 0, 3, 3, ["3.1"], ["3.0"]
)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (CAME, "a consumer of billing connected (a)"),
        (replace(CAME, before=2, after=3), "another consumer of billing connected (a)"),
        (
            replace(CAME, came=5, came_names=list("abcde"), after=5),
            "5 consumers of billing connected (a, b, c and 2 more)",
        ),
        (replace(CAME, subscription=""), "a producer connected (a)"),
        (LEFT, "the last consumer of billing left (a)"),
        (replace(LEFT, left=2, before=2), "all 2 consumers of billing left (a and 1 more)"),
        (replace(LEFT, before=3, after=2), "1 of 3 consumers of billing left (a)"),
        (
            replace(LEFT, subscription="", before=4, after=3),
            "1 of 4 producers left (a)",
        ),
        (
            REPLACED,
            "all 3 consumers of billing were replaced by d, e, f; client 3.1 instead of 3.0, as a"
            " deployment does",
        ),
        (
            replace(
                REPLACED, came=1, left=1, before=1, came_names=["d"], left_names=["a"],
                came_versions=["3.0"],
            ),
            "the consumer of billing was replaced by d, as a deployment does",
        ),
        (
            replace(
                REPLACED, before=5, left=1, came=1, came_names=["d"], left_names=["a"], after=5
            ),
            "1 of 5 consumers of billing left (a) and another consumer of billing connected (d);"
            " client 3.1 instead of 3.0",
        ),
        (
            replace(REPLACED, came_back=3, came_names=[], left_names=[], came_versions=[]),
            "3 consumers of billing lost the connection and came back",
        ),
        (
            replace(LEFT, came=1, came_back=1, left_names=[], after=1),
            "a consumer of billing lost the connection and came back",
        ),
    ],
)  # fmt: skip
def test_clients(facts: ClientsFacts, text: str) -> None:
    assert clients_clause(facts) == text


def test_policies() -> None:
    assert policy_name("dispatch_rate", "", "") == "the dispatch limit of the topic"
    assert policy_name("publish_rate", "", "a/b") == (
        "the publish limit of each topic of namespace a/b"
    )
    assert policy_name("backlog_quotas", "destination_storage", "") == "the size quota of the topic"
    assert policy_name("dispatch_rate_by_subscription", "x", "") == (
        "the dispatch limit of subscription x"
    )
    assert policy_name("max_topics_per_namespace", "", "a/b") == (
        "the policy maxTopicsPerNamespace of each topic of namespace a/b"
    )


def test_values() -> None:
    assert value_clause("it", None, "7") == "it was set to 7"
    assert value_clause("it", "5", "7") == "it was changed from 5 to 7"
    assert value_clause("it", "5", None) == "it was removed (it was 5)"
    assert value_clause("it", None, None) == "it was removed"
    assert by_role("it was set", "ops") == "it was set by ops"
    assert by_role("it was set", "") == "it was set"


def test_messages() -> None:
    assert messages_clause("evicted", 1, "s") == "a backlog quota evicted 1 message of s"
    assert messages_clause("expired", 2_000, "s") == "2,000 messages of s expired"
    assert messages_clause("skipped", 2, "s") == "2 messages of s were skipped"
    assert messages_clause("rewound", 9, "s") == "the cursor of s was set back by 9 messages"


def test_growth() -> None:
    assert growth_sentence("12:31:05", "x was set", "12:30:58", 600) == (
        "The backlog began at 12:31:05 UTC; at 12:30:58 x was set"
    )
    assert growth_sentence("12:31:05", "", "", 600) == (
        "The backlog began at 12:31:05 UTC; no change that explains it is known in the 10 minutes"
        " before"
    )

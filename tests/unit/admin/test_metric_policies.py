"""Which properties of a namespace's topics become labels on /metrics."""

from __future__ import annotations

import pytest

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
KEYS = f"{N}/allowedTopicPropertyKeysForMetrics"


def test_the_three_requests(api: Ask) -> None:
    unset = api("GET", KEYS)
    assert (unset.status, unset.body) == (200, b"")
    assert api("POST", KEYS, ["team", "tier", "team"]).status == 204
    assert api("GET", KEYS).json() == ["team", "tier"]
    assert api("GET", N).json()["allowed_topic_property_keys_for_metrics"] == ["team", "tier"]
    # An empty list is a policy: no property becomes a label.
    assert api("POST", KEYS, []).status == 204
    assert api("GET", KEYS).json() == []
    assert api("DELETE", KEYS).status == 204
    assert api("GET", KEYS).body == b""
    assert "allowed_topic_property_keys_for_metrics" not in api("GET", N).json()


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (["topic"], "'topic' is a label already"),
        (["a-b"], "'a-b' is no name of a label"),
        ([f"l{number}" for number in range(9)], "9 names"),
    ],
)
def test_names_that_are_refused(api: Ask, keys: list[str], problem: str) -> None:
    answer = api("POST", KEYS, keys)
    assert answer.status == 412
    assert answer.reason.startswith(f"allowedTopicPropertyKeysForMetrics: {problem}; allowed are")
    assert api("GET", KEYS).body == b""
    body = {"allowed_topic_property_keys_for_metrics": keys}
    assert api("PUT", "/admin/v2/namespaces/public/other", body).status == 412


def test_a_namespace_is_created_with_it(api: Ask) -> None:
    body = {"allowed_topic_property_keys_for_metrics": ["team"]}
    assert api("PUT", "/admin/v2/namespaces/public/other", body).status == 204
    path = "/admin/v2/namespaces/public/other/allowedTopicPropertyKeysForMetrics"
    assert api("GET", path).json() == ["team"]

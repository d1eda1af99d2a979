"""Policies of a namespace, one by one."""

from __future__ import annotations

import pytest

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
RATE = {
    "dispatchThrottlingRateInMsg": 5,
    "dispatchThrottlingRateInByte": -1,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 2,
}
PUBLISH_RATE = {"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": -1}
RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}


@pytest.mark.parametrize(
    ("policy", "value"),
    [
        ("dispatchRate", RATE),
        ("subscriptionDispatchRate", RATE),
        ("publishRate", PUBLISH_RATE),
        ("publishRate", PUBLISH_RATE | {"publishThrottlingRateInMsg": -1, "unlimited": True}),
        ("retention", RETENTION),
        ("delayedDelivery", {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 0}),
    ],
)
def test_set_get_remove(api: Ask, policy: str, value: dict[str, object]) -> None:
    path = f"{N}/{policy}"
    unset = api("GET", path)
    assert (unset.status, unset.content_type, unset.body) == (200, "", b"")
    assert api("POST", path, value).status == 204
    assert api("GET", path).json() == value
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""
    api("POST", path, value)
    assert api("POST", path).status == 204
    assert api("GET", path).body == b""


def test_a_refused_value_leaves_the_old_one(api: Ask) -> None:
    api("POST", f"{N}/retention", RETENTION)
    answer = api("POST", f"{N}/retention", {"retentionTimeInMinutes": -2})
    assert (answer.status, answer.reason) == (
        400, "Invalid retention policy: time limit must be >= -1",
    )  # fmt: skip
    assert api("GET", f"{N}/retention").json() == RETENTION


def test_a_namespace_must_exist(api: Ask) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert api(method, "/admin/v2/namespaces/public/none/dispatchRate", RATE).status == 404

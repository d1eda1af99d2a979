"""Rates that cannot be: Pulsar's status and text, and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admin.conftest import Ask

NS = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/t"
PATHS = (
    f"{NS}/dispatchRate",
    f"{NS}/subscriptionDispatchRate",
    f"{T}/dispatchRate",
    f"{T}/subscriptionDispatchRate",
    f"{T}/sub/dispatchRate",
)
GOOD = {
    "dispatchThrottlingRateInMsg": 7,
    "dispatchThrottlingRateInByte": -1,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
MSG, BYTE, PERIOD = (
    "dispatchThrottlingRateInMsg",
    "dispatchThrottlingRateInByte",
    "ratePeriodInSecond",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({MSG: 1 << 31}, "value (2147483648) out of range of int (-2147483648 - 2147483647)"),
        ({MSG: -(1 << 31) - 1}, "value (-2147483649) out of range of int"),
        ({BYTE: 1 << 63}, "value (9223372036854775808) out of range of long (-92"),
        ({PERIOD: 1 << 31}, "out of range of int"),
        ({MSG: "many"}, '`int` from String "many"'),
        ({MSG: 1.5}, "`int` from 1.5"),
        ({MSG: None}, "from null"),
        ({MSG: True}, "from true"),
        ({MSG: [5]}, "from [5]"),
        ({"relativeToPublishRate": "perhaps"}, '`boolean` from String "perhaps"'),
        ({"unlimited": 3}, "from 3"),
        ({"unlimited": True}, "unlimited excludes rates above 0 and relativeToPublishRate"),
        ({MSG: 0, "unlimited": True, "relativeToPublishRate": True}, "unlimited excludes rates"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    api: Ask, path: str, wrong: dict[str, Any], text: str
) -> None:
    api("PUT", T)
    assert api("POST", path, GOOD).status == 204
    answer = api("POST", path, {MSG: 5} | wrong)
    assert answer.status == 400
    assert text in answer.reason
    assert api("GET", path).json() == GOOD


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", [b"5", b"[]", b"{", b'{"dispatchThrottlingRateInMsg":}', b"\xff"])
def test_what_is_no_object_is_refused(api: Ask, path: str, body: bytes) -> None:
    api("PUT", T)
    api("POST", path, GOOD)
    assert api("POST", path, body).status == 400
    assert api("GET", path).json() == GOOD


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("period", [0, -1, -(1 << 31)])
def test_periods_below_a_second_are_kept_as_given(api: Ask, path: str, period: int) -> None:
    """As in Pulsar, which counts them as one second."""
    api("PUT", T)
    rate = GOOD | {PERIOD: period}
    assert api("POST", path, rate).status == 204
    assert api("GET", path).json() == rate


@pytest.mark.parametrize("path", PATHS)
def test_unknown_fields_are_ignored_and_texts_of_numbers_read(api: Ask, path: str) -> None:
    """As Jackson does."""
    api("PUT", T)
    assert api("POST", path, GOOD | {"colour": "red", MSG: "7"}).status == 204
    assert api("GET", path).json() == GOOD


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/admin/v2/namespaces/public/none/dispatchRate", 404),
        ("/admin/v2/namespaces/none/none/dispatchRate", 404),
        ("/admin/v2/persistent/public/default/none/dispatchRate", 404),
        ("/admin/v2/persistent/public/default/none/sub/dispatchRate", 404),
        ("/admin/v2/persistent/public/default/parted-partition-0/dispatchRate", 412),
        ("/admin/v2/persistent/public/default/parted-partition-0/sub/dispatchRate", 412),
    ],
)
def test_policies_have_a_place(api: Ask, method: str, path: str, status: int) -> None:
    api("PUT", "/admin/v2/persistent/public/default/parted/partitions", 2)
    answer = api(method, path, GOOD if method == "POST" else None)
    assert answer.status == status
    assert answer.reason


PUBLISH_PATHS = (f"{NS}/publishRate", f"{T}/publishRate")
PUBLISH = {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": -1}


@pytest.mark.parametrize("path", PUBLISH_PATHS)
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"publishThrottlingRateInMsg": 1 << 31}, "value (2147483648) out of range of int"),
        ({"publishThrottlingRateInByte": 1 << 63}, "out of range of long"),
        ({"publishThrottlingRateInMsg": "many"}, '`int` from String "many"'),
        ({"publishThrottlingRateInByte": 1.5}, "`int` from 1.5"),
        ({"unlimited": 3}, "from 3"),
        ({"unlimited": True}, "unlimited excludes rates above 0"),
    ],
)
def test_a_publish_rate_that_cannot_be_changes_nothing(
    api: Ask, path: str, wrong: dict[str, Any], text: str
) -> None:
    api("PUT", T)
    assert api("POST", path, PUBLISH).status == 204
    answer = api("POST", path, {"publishThrottlingRateInMsg": 5} | wrong)
    assert answer.status == 400
    assert text in answer.reason
    assert api("GET", path).json() == PUBLISH


@pytest.mark.parametrize("path", PUBLISH_PATHS)
def test_what_a_publish_rate_leaves_out_is_not_limited(api: Ask, path: str) -> None:
    """-1, where a dispatch rate has 0: as in Pulsar."""
    api("PUT", T)
    assert api("POST", path, {"publishThrottlingRateInMsg": "7", "colour": "red"}).status == 204
    assert api("GET", path).json() == PUBLISH

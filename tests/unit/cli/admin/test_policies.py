"""Bodies of dispatch rates and retentions."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.policies import SAYS_NOTHING, rate_body, retention_body

UNSET: dict[str, Any] = {
    "msgDispatchRate": -1,
    "byteDispatchRate": -1,
    "dispatchRatePeriodSec": 1,
    "relativeToPublishRate": False,
    "unlimited": False,
}


def test_a_rate_knows_unlimited_only_when_it_is_said() -> None:
    body = rate_body(UNSET | {"msgDispatchRate": 100, "relativeToPublishRate": True})
    assert list(body.items()) == [
        ("dispatchThrottlingRateInMsg", 100),
        ("dispatchThrottlingRateInByte", -1),
        ("relativeToPublishRate", True),
        ("ratePeriodInSecond", 1),
    ]
    body = rate_body(UNSET | {"unlimited": True})
    assert body == {
        "dispatchThrottlingRateInMsg": -1,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
        "unlimited": True,
    }


@pytest.mark.parametrize(
    "rate", [{"msgDispatchRate": 0}, {"byteDispatchRate": 5}, {"relativeToPublishRate": True}]
)
def test_unlimited_together_with_a_rate_means_nothing(rate: dict[str, Any]) -> None:
    with pytest.raises(AdminUsageError, match="--unlimited stands alone"):
        rate_body(UNSET | {"unlimited": True} | rate)


@pytest.mark.parametrize(
    ("age_s", "limit_bytes", "minutes", "megabytes"),
    [(600, 100 << 20, 10, 100), (-1, -1, -1, -1), (30, 500 << 10, 0, 0), (0, 0, 0, 0)],
)
def test_retentions(age_s: int, limit_bytes: int, minutes: int, megabytes: int) -> None:
    assert retention_body({"retentionTimeInSec": age_s, "sizeLimit": limit_bytes}) == {
        "retentionTimeInMinutes": minutes,
        "retentionSizeInMB": megabytes,
    }


def test_a_policy_that_says_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """As in Pulsar it is sent, and means that the next level applies."""
    assert rate_body(UNSET | {"relativeToPublishRate": True})["relativeToPublishRate"] is True
    assert capsys.readouterr().err == f"{SAYS_NOTHING}\n"
    rate_body(UNSET | {"byteDispatchRate": 1})
    rate_body(UNSET | {"unlimited": True})
    assert capsys.readouterr().err == ""

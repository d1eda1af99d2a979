"""A point in the terms of a grid file."""

from __future__ import annotations

import json

import pytest

from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.grid import parse_grid
from headgate.pipeline.backtest.policy import Point, Policy, Rates, settings_text
from headgate.pipeline.output.policy_settings import readable_settings

SIZE = Quota(QuotaType.SIZE, 5_000, QuotaPolicy.HOLD, "grid")
TIME = Quota(QuotaType.TIME, 60_000, QuotaPolicy.EVICTION, "grid")
DRAIN = AdaptiveSettings(law=Law.DRAIN, drain_horizon_ns=5_000_000_000, drain_set_point=0.5)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Policy(), {}),
        (Policy(publish=Rates()), {"publish": "none"}),
        (Policy(publish=Rates(None, 7)), {"publish": {"bytes_per_s": 7}}),
        (Policy(adaptive=AdaptiveSettings()), {"adaptive": {"law": "pressure"}}),
        (
            Policy(adaptive=DRAIN, size_quota=None),
            {
                "adaptive": {"law": "drain", "drain_set_point": 0.5, "drain_horizon_ms": 5_000},
                "size_quota": "none",
            },
        ),
        (
            Policy(size_quota=SIZE, time_quota=TIME),
            {
                "size_quota": {"limit_bytes": 5_000, "policy": "producer_request_hold"},
                "time_quota": {"limit_s": 60, "policy": "consumer_backlog_eviction"},
            },
        ),
    ],
)
def test_settings_that_differ_from_the_recording_are_listed(
    policy: Policy, text: dict[str, object]
) -> None:
    assert json.loads(settings_text(Point(0, "", policy))) == text


def test_a_point_is_called_by_its_name_or_its_number() -> None:
    assert Point(3, "", Policy()).label == "point 3"
    assert Point(3, "mine", Policy()).label == "mine"
    assert settings_text(Point(3, "mine", Policy())) == '{"name":"mine"}'


def test_a_setting_of_the_file_is_listed_even_at_its_default() -> None:
    """A sweep over values has one that is."""
    grid = parse_grid(
        '[[points]]\nadaptive = { law = "drain", drain_set_point = [0.5, 0.7] }\n'
        '[[points]]\nadaptive = "off"\n'
    )
    default = AdaptiveSettings().drain_set_point
    assert default in (0.5, 0.7)
    assert [readable_settings(settings_text(point)) for point in grid.points] == [
        "adaptive: law drain, drain_set_point 0.5",
        "adaptive: law drain, drain_set_point 0.7",
        "as recorded",
    ]


def test_settings_are_valid_in_a_grid_file() -> None:
    grid = parse_grid(
        "[[points]]\n"
        'adaptive = { law = "drain", drain_set_point = 0.5, drain_horizon_ms = 5_000 }\n'
        'size_quota = { limit_bytes = 5_000, policy = "producer_request_hold" }\n'
        'time_quota = { limit_s = 60, policy = "consumer_backlog_eviction" }\n'
    )
    assert grid.points[0].policy == Policy(adaptive=DRAIN, size_quota=SIZE, time_quota=TIME)

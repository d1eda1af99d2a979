"""The grid file: its points, and its faults in one error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.pipeline.backtest.grid import POINTS_MAX, load_grid, parse_grid
from headgate.pipeline.backtest.policy import Policy, Rates
from headgate.pipeline.backtest.replay import Resolution

ROOT = Path(__file__).resolve().parents[4]


def test_lists_make_every_combination() -> None:
    grid = parse_grid(
        '[[points]]\nname = "now"\n'
        "[[points]]\n"
        'name = "tried"\n'
        'publish = ["none", { bytes_per_s = [100, 200] }]\n'
        "[points.adaptive]\n"
        'law = ["pressure", "drain"]\n'
    )
    assert [point.number for point in grid.points] == list(range(7))
    assert grid.points[0].policy == Policy()
    assert [point.name for point in grid.points] == ["now", *(f"tried {i}" for i in range(1, 7))]
    tried = {(point.policy.publish, point.policy.adaptive) for point in grid.points[1:]}
    assert tried == {
        (rates, AdaptiveSettings(law=law))
        for rates in (Rates(), Rates(bytes_per_s=100), Rates(bytes_per_s=200))
        for law in Law
    }
    assert (grid.resolution, grid.step_ns) == (Resolution.CYCLE, None)


def test_a_grid_may_set_step_and_resolution() -> None:
    grid = parse_grid('[replay]\nresolution = "sample"\nstep_s = 60\n[[points]]\n')
    assert (grid.resolution, grid.step_ns) == (Resolution.SAMPLE, 60_000_000_000)


def test_the_example_is_a_grid() -> None:
    grid = load_grid(ROOT / "conf/backtest.toml")
    assert len(grid.points) == 28
    assert len({point.policy for point in grid.points}) == 28


FAULTY = """
colour = "red"
[replay]
step_s = 0
[[points]]
name = 5
publish = { bytes_per_s = [0, "much"], per_minute = 1 }
adaptive = { law = "hope", interval_ms = 10, backlog_low = 1, observe_only = 1 }
[[points]]
size_quota = { limit_bytes = [] }
time_quota = "all"
adaptive = "on"
"""


def test_one_error_lists_all_faults() -> None:
    with pytest.raises(InputError) as caught:
        parse_grid(FAULTY, "my.toml")
    first, *faults = str(caught.value).splitlines()
    assert first == f"grid file my.toml has {len(faults)} faults:"
    begins = [fault.strip().split(" is ")[0].split(";")[0] for fault in faults]
    assert begins == [
        "colour",
        "replay.step_s",
        "points[0].name",
        "points[0].publish.per_minute",
        "points[0].publish.bytes_per_s",
        "points[0].publish.bytes_per_s",
        "points[0].adaptive.law",
        "points[0].adaptive.observe_only",
        "points[0].adaptive.interval_ms",
        "points[0].adaptive.backlog_low",
        "points[1].adaptive",
        "points[1].size_quota.limit_bytes",
        "points[1].size_quota.policy",
        "points[1].time_quota",
    ]
    assert all("allowed" in fault for fault in faults)


def test_contradicting_watermarks_are_an_error() -> None:
    text = "[[points]]\nadaptive = { backlog_low = [0.5, 0.95], min_rate_factor = [0.1, 0.2] }\n"
    wanted = "points[0]: backlog_low is 0.95 and backlog_high 0.9; 0 < low < high <= 1 is allowed"
    with pytest.raises(InputError, match=re.escape(wanted)) as caught:
        parse_grid(text)
    assert "1 fault:" in str(caught.value)


def test_too_many_points_are_refused_before_they_are_created() -> None:
    hundred = ", ".join(str(n) for n in range(1, 101))
    text = f"[[points]]\npublish = {{ bytes_per_s = [{hundred}], messages_per_s = [{hundred}] }}\n"
    more = "".join(f"size_quota = {{ limit_bytes = [{hundred}], policy = 'producer_exception' }}\n")
    with pytest.raises(InputError, match=f"there are 1,000,000; up to {POINTS_MAX:,} are allowed"):
        parse_grid(text + more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one table"),
        ("points = 3", "at least one table"),
        ("points = [", "is no TOML"),
        ("replay = 3\n[[points]]", "replay is 3; a table is allowed"),
    ],
)
def test_an_invalid_grid_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_grid(text)


def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"grid file .*none\.toml cannot be read"):
        load_grid(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 0\)"):
        load_grid(tmp_path / "binary.toml")

"""Episodes of a small folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.serve.episodes import episode, episodes
from headgate.pipeline.serve.selection import Selection
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import iso_text
from tests.unit.pipeline.output.test_views import segment
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, write

EDGE = T0 + HOUR_NS
DAY = (T0 - HOUR_NS, T0 + 5 * HOUR_NS)


@pytest.fixture
def scan(tmp_path: Path) -> TableScan:
    rows = [
        segment(EDGE - 9 * MINUTE_NS, EDGE, continues_after=True),
        segment(EDGE, EDGE + 6 * MINUTE_NS, continues_before=True, peak_backlog_messages=30),
        segment(T0, T0 + MINUTE_NS, NS + "short"),
        segment(
            EDGE + HOUR_NS, EDGE + HOUR_NS + MINUTE_NS, "persistent://other/n/open", partition=2,
            is_open=True, ending="open",
        ),
    ]  # fmt: skip
    write(tmp_path, "episodes", rows)
    return TableScan(str(tmp_path), "episodes")


def names(answer: dict[str, Any]) -> list[str]:
    return [each["topic"].rpartition("/")[2] for each in answer["episodes"]]


def test_whole_episodes_the_largest_first(scan: TableScan) -> None:
    answer = episodes(scan, Selection(*DAY))
    assert names(answer) == ["slow", "open-partition-2", "short"]
    assert (answer["more"], answer["isCut"]) == (0, False)
    slow, opened, _ = answer["episodes"]
    assert slow["start"] == iso_text(EDGE - 9 * MINUTE_NS)
    assert slow["end"] == iso_text(EDGE + 6 * MINUTE_NS)
    assert (slow["minutes"], slow["peakBacklogMessages"], slow["cause"]) == (15, 30, "CONSUMER")
    assert slow["blameS"] == {"CONSUMER": 900.0}
    assert slow["oldestAgeMaxS"] == 60.0
    assert "consumer" in slow["sentence"]
    assert (opened["isOpen"], opened["end"]) == (True, None)


def test_filters_and_the_number_of_entries(scan: TableScan) -> None:
    assert names(episodes(scan, Selection(*DAY, tenant="other"))) == ["open-partition-2"]
    assert names(episodes(scan, Selection(*DAY, text="SHO"))) == ["short"]
    assert names(episodes(scan, Selection(*DAY, verdict="BROKER"))) == []
    answer = episodes(scan, Selection(*DAY, count=1))
    assert (names(answer), answer["more"]) == (["slow"], 2)


def test_an_episode_is_in_a_range_that_it_reaches_into(scan: TableScan) -> None:
    after = EDGE + 2 * MINUTE_NS
    assert names(episodes(scan, Selection(after, after + MINUTE_NS))) == ["slow"]
    assert names(episodes(scan, Selection(EDGE + 6 * MINUTE_NS, EDGE + 7 * MINUTE_NS))) == []


def test_a_list_that_needs_too_much_memory_shows_the_newest(scan: TableScan) -> None:
    answer = episodes(scan, Selection(*DAY), segments_max=1)
    assert (names(answer), answer["isCut"]) == (["open-partition-2"], True)
    assert not episodes(scan, Selection(*DAY), segments_max=4)["isCut"]


def test_one_episode_by_an_instant_in_it(scan: TableScan) -> None:
    for at_ns in (EDGE - 9 * MINUTE_NS, EDGE + MINUTE_NS):
        assert episode(scan, NS + "slow", "s", at_ns, "c1")["minutes"] == 15
    assert episode(scan, "persistent://other/n/open-partition-2", "s", EDGE + 9 * HOUR_NS)["isOpen"]


@pytest.mark.parametrize(
    ("topic", "subscription", "at_ns", "cluster"),
    [
        (NS + "slow", "s", EDGE + 6 * MINUTE_NS, ""),
        (NS + "slow", "other", EDGE, ""),
        (NS + "slow", "s", EDGE, "c2"),
        ("persistent://other/n/open", "s", EDGE + HOUR_NS, ""),
    ],
)
def test_no_such_episode(
    scan: TableScan, topic: str, subscription: str, at_ns: int, cluster: str
) -> None:
    with pytest.raises(InputError, match="no episode of subscription"):
        episode(scan, topic, subscription, at_ns, cluster)

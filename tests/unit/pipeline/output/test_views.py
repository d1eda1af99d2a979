"""Views are printed like tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.kernels.rollup import ROLLUP_COLUMNS
from headgate.pipeline.output.show import ShowOptions, show
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import EPISODE_COLUMNS, EPISODES
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, at, played, quota_row, topic_key, write


def segment(start_ns: int, end_ns: int, topic: str = NS + "slow", **more: Any) -> dict[str, Any]:
    """What of a backlog lies in an hour, all of it the consumer's fault."""
    place = at(start_ns)
    del place["minute"]
    blamed = {f"blame_{b.lower()}_ns": (end_ns - start_ns) * (b == "CONSUMER") for b in BLAMES}
    plain = dict.fromkeys(EPISODES.column_names()) | topic_key(topic) | blamed
    return plain | place | {
        "subscription": "s",
        "segment_start_ns": start_ns,
        "segment_end_ns": end_ns,
        "continues_before": False,
        "continues_after": False,
        "is_open": False,
        "ending": "over",
        "minutes": (end_ns - start_ns) // MINUTE_NS,
        "peak_backlog_messages": 10,
        "peak_minute": at(start_ns)["minute"],
        "growth_messages": 5,
        "oldest_age_max_ns": MINUTE_NS,
        "cause": "CONSUMER",
        "completeness": 1.0,
        "evidence": "measured",
        "sentence": "A backlog.",
        **more,
    }  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> str:
    edge = T0 + HOUR_NS
    rows = [
        segment(edge - 9 * MINUTE_NS, edge, continues_after=True),
        segment(edge, edge + 6 * MINUTE_NS, continues_before=True, peak_backlog_messages=30),
        segment(T0, T0 + MINUTE_NS, NS + "short"),
    ]
    write(tmp_path, "episodes", rows)
    return str(tmp_path)


def episodes(root: str, **options: Any) -> list[dict[str, Any]]:
    out = io.StringIO()
    asked = ShowOptions(root, "backlog_episodes", format="json", **options)
    show(asked, out, io.StringIO())
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def test_segments_that_meet_are_one_row(root: str) -> None:
    rows = episodes(root, where=(("topic", NS + "slow"),))
    assert [list(row) for row in rows] == [[column.name for column in EPISODE_COLUMNS]]
    (row,) = rows
    assert row["minutes"] == 15
    assert row["peak_backlog_messages"] == 30
    assert row["episode_end_ns"] - row["episode_start_ns"] == 15 * MINUTE_NS


def test_the_latest_in_order_and_only_some_columns(root: str) -> None:
    assert episodes(root, limit=1, columns=("topic",)) == [{"topic": NS + "slow"}]
    assert len(episodes(root)) == 2


def test_a_range_includes_episodes_that_overlap_it(root: str) -> None:
    late = Span(T0 + HOUR_NS + 2 * MINUTE_NS, None)
    assert [row["topic"] for row in episodes(root, span=late)] == [NS + "slow"]


def test_a_range_excludes_ended_episodes_and_includes_open_ones(root: str) -> None:
    """Also where it began in the same hour."""
    both = [row["topic"] for row in episodes(root, span=Span(T0, None))]
    assert both == [NS + "short", NS + "slow"]
    assert len(episodes(root, span=Span(T0 + MINUTE_NS - 1, None))) == 2
    after = Span(T0 + MINUTE_NS, None)
    assert [row["topic"] for row in episodes(root, span=after)] == [NS + "slow"]
    end_ns = T0 + HOUR_NS + 6 * MINUTE_NS
    assert len(episodes(root, span=Span(end_ns - 1, None))) == 1
    assert episodes(root, span=Span(end_ns, None)) == []


def test_an_open_episode_reaches_into_every_later_minute(tmp_path: Path) -> None:
    write(tmp_path, "episodes", [segment(T0, T0 + MINUTE_NS, is_open=True, ending="open")])
    (row,) = episodes(str(tmp_path), span=Span(T0 + 30 * MINUTE_NS, None))
    assert (row["is_open"], row["episode_end_ns"]) == (True, None)


def test_namespaces_are_shown_like_a_table(tmp_path: Path) -> None:
    played(tmp_path)
    out = io.StringIO()
    asked = ShowOptions(str(tmp_path), "namespace_rollup", format="json", limit=1)
    show(asked, out, io.StringIO())
    (row,) = json.loads(out.getvalue())
    assert list(row) == [column.name for column in ROLLUP_COLUMNS]
    assert row["topics"] > 1
    assert row["subscriptions"] > 1
    assert row["blame_consumer_s"] > 0
    nobody = ShowOptions(str(tmp_path), "namespace_rollup", where=(("namespace", "x/y"),))
    err = io.StringIO()
    assert show(nobody, io.StringIO(), err) == 0
    assert err.getvalue() == "namespace_rollup has no such rows.\n"


def test_without_its_table_there_is_no_view(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(0)])
    with pytest.raises(InputError, match="no table 'backlog_episodes'"):
        episodes(str(tmp_path))

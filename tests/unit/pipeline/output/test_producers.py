"""Topics with held producers as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from headgate.pipeline.output.producers import PRODUCER_COLUMNS, held_longest_first, write_producers
from headgate.record.fields import Kind
from tests.unit.pipeline.kernels.test_publishing import BROKER_LIMIT, park_columns
from tests.unit.pipeline.play import minutes
from tests.unit.pipeline.story_play import NS, tell


def judged() -> list[dict[str, Any]]:
    """What the step finds of each topic over ten minutes."""
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for row in minutes(tell(600), Kind.TOPIC):
        by_topic.setdefault(row["topic"], []).append({**row, **BROKER_LIMIT})
    key = ("cluster", "topic", "partition", "incarnation")
    return [
        {**{name: rows[0][name] for name in key}, **park_columns(rows, None, is_range=True)}
        for rows in by_topic.values()
    ]


ROWS = judged()


def written(style: Any, rows: list[dict[str, Any]], **options: Any) -> str:
    out = io.StringIO()
    write_producers(rows, style, out, **options)
    return out.getvalue()


def test_the_one_held_for_longest_comes_first() -> None:
    ordered = held_longest_first(ROWS)
    held = [row[f"parked_{row['cause']}_ns"] if row["cause"] else 0 for row in ordered]
    assert held == sorted(held, reverse=True)
    assert held[0] > 0 == held[-1]


def test_json_and_csv_have_all_topics() -> None:
    rows = json.loads(written("json", ROWS))
    assert len(rows) == len(ROWS)
    assert list(rows[0]) == list(PRODUCER_COLUMNS)
    limited = next(row for row in rows if row["topic"] == f"{NS}limited")
    assert limited["cause"] == "topic_rate"
    assert limited["held_share"] == pytest.approx(0.95)
    assert limited["held_topic_rate_s"] == pytest.approx(570)
    assert limited["seconds"] == 600
    lines = list(csv.DictReader(io.StringIO(written("csv", ROWS))))
    assert [line["topic"] for line in lines] == [row["topic"] for row in rows]
    assert written("csv", []) == ",".join(PRODUCER_COLUMNS) + "\n"
    assert json.loads(written("json", [])) == []


def test_a_partition_has_its_suffix_and_what_is_not_known_is_null() -> None:
    bare = {**ROWS[0], "partition": 3, "parked_memory_ns": None, "held_share": None}
    (row,) = json.loads(written("json", [bare]))
    assert row["topic"].endswith("-partition-3")
    assert (row["held_memory_s"], row["held_share"]) == (None, None)


def test_a_table_lists_held_topics_only() -> None:
    text = written("table", ROWS, width=80)
    held = [row for row in ROWS if row["cause"] is not None]
    title = " ".join(text.partition("\n\n")[0].split())
    assert title.endswith(
        f"the producers of {len(held)} of {len(ROWS)} topics were held, the one held for longest "
        "first"
    )
    assert text.count("persistent://") == 0
    assert "idle" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    told = " ".join(text.split())
    limited = next(row for row in ROWS if row["topic"] == f"{NS}limited")
    assert f"{limited['sentence']}." in told
    assert f"{limited['msgs_in']:,} messages in 600 s" in told


def test_with_several_clusters_each_topic_has_its_cluster() -> None:
    other = {**held_longest_first(ROWS)[0], "cluster": "west", "producers": 1}
    text = written("table", [*ROWS, other], color=True)
    assert "\x1b[1mwest: acme/ns/" in text
    assert "1 producer at the end" in text


def test_a_sentence_says_that_nothing_was_held_or_is_known() -> None:
    (idle,) = [row for row in ROWS if row["topic"] == f"{NS}idle"]
    assert written("table", [idle]).endswith("nothing held the producers of 1 topic\n")
    assert written("table", []) == "No topic has telemetry in this range.\n"

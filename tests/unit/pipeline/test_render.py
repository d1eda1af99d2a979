"""Judgements on paper and as JSON."""

from __future__ import annotations

import io
import json

from headgate.pipeline.judging import judge_minutes
from headgate.pipeline.render import topic_text, worst_first, write_judgements
from headgate.pipeline.tables import BLAMES
from tests.unit.pipeline.play import SITUATIONS, minutes, play

_ROWS = minutes(play(60))
JUDGED = [
    {**{k: row[k] for k in ("cluster", "topic", "partition", "subscription", "incarnation")},
     **judge_minutes([row], None)}
    for row in _ROWS
]


def test_json_is_an_array_of_rows() -> None:
    out = io.StringIO()
    write_judgements(JUDGED, "json", out)
    rows = json.loads(out.getvalue())
    assert len(rows) == len(SITUATIONS)
    assert [row["growth"] for row in rows] == sorted((row["growth"] for row in rows), reverse=True)
    assert set(rows[0]["shares"]) == set(BLAMES)
    assert rows[0]["seconds"] == 60


def test_no_rows_are_an_empty_array_or_a_line() -> None:
    out = io.StringIO()
    write_judgements([], "json", out)
    assert json.loads(out.getvalue()) == []
    out = io.StringIO()
    write_judgements([], "table", out)
    assert "no subscription" in out.getvalue()


def test_table_has_the_sentence_of_every_subscription() -> None:
    out = io.StringIO()
    write_judgements(JUDGED, "table", out)
    for row in worst_first(JUDGED):
        assert row["sentence"] in out.getvalue()
    assert "public/default/slow / slow" in out.getvalue()


def test_a_partition_is_named_with_its_suffix() -> None:
    assert topic_text({"topic": "persistent://a/b/t", "partition": 3}).endswith("/t-partition-3")
    assert topic_text({"topic": "persistent://a/b/t", "partition": None}).endswith("/t")

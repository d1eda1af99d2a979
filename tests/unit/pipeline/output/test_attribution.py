"""Judgements as text and JSON."""

from __future__ import annotations

import csv
import io
import json
import re

from headgate.pipeline.output.attribution import (
    CSV_COLUMNS,
    WIDTH_MAX,
    WIDTH_MIN,
    topic_text,
    worst_first,
    write_judgements,
)
from headgate.pipeline.tables.attribution import BLAMES
from tests.unit.pipeline.judged import judge_each
from tests.unit.pipeline.play import SITUATIONS, S, minutes, play

_ROWS = minutes(play(60))
JUDGED = [
    {
        **{k: row[k] for k in ("cluster", "topic", "partition", "subscription", "incarnation")},
        **judge_each([row], None)[0],
    }
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


def test_unused_subscriptions_follow_other_growing_ones() -> None:
    """They grow as fast as their topics, and would fill the first screens."""
    (alone,) = (row for row in JUDGED if row["topic"].endswith("/alone"))
    rows = [*JUDGED, alone | {"growth_messages": 10**9, "subscription": "audit"}]
    assert alone["verdict"] == "NO_CONSUMER"
    order = [row["topic"].rsplit("/", 1)[1] for row in worst_first(rows)]
    assert order[-3:] == ["alone", "alone", "keeps-up"]
    out = io.StringIO()
    write_judgements(rows, "table", out, width=WIDTH_MAX)
    title = " ".join(out.getvalue().partition("\n\n")[0].split())
    assert title.endswith("backlog first, subscriptions without any consumer last")
    # One whose consumer has gone, after it has shown how fast it is, is nobody's leftover.
    left = alone | {"growth_messages": 10**9, "proven_rate_per_s": 80.0}
    assert worst_first([*JUDGED, left])[0] is left


def test_csv_has_a_column_for_each_share() -> None:
    out, empty = io.StringIO(), io.StringIO()
    write_judgements(JUDGED, "csv", out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert len(rows) == len(SITUATIONS)
    assert rows[0]["topic"].endswith("/slow")
    assert sum(float(rows[0][f"share_{blame.lower()}"]) for blame in BLAMES) == 1
    write_judgements([], "csv", empty)
    assert empty.getvalue().splitlines() == [",".join(CSV_COLUMNS)]
    assert out.getvalue().splitlines()[0] == ",".join(CSV_COLUMNS)


def test_a_table_fits_its_width_and_breaks_no_name() -> None:
    for width in (1, 60, 80, 100, 160):
        out = io.StringIO()
        write_judgements(JUDGED, "table", out, width=width)
        lines = out.getvalue().splitlines()
        wide = [line for line in lines if len(line) > min(max(width, WIDTH_MIN), WIDTH_MAX)]
        # Only the line of a name may be longer.
        assert all("  subscription " in line for line in wide)
        assert "\x1b" not in out.getvalue()


def test_colors_add_no_information() -> None:
    plain, colored = io.StringIO(), io.StringIO()
    write_judgements(JUDGED, "table", plain)
    write_judgements(JUDGED, "table", colored, color=True)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored.getvalue()) == plain.getvalue()
    assert "\x1b[1;33mCONSUMER\x1b[0m" in colored.getvalue()


def test_growth_has_its_rate() -> None:
    row = dict(JUDGED[0]) | {"from_ns": 0, "to_ns": 40 * S, "backlog_messages": 1_996}
    for growth, text in (
        (1_200, "backlog 1,996, grew by 1,200 in 40 s (30/s)"),
        (-10, "backlog 1,996, shrank by 10 in 40 s (0.25/s)"),
        (0, "backlog 1,996, as large as 40 s before"),
    ):
        out = io.StringIO()
        write_judgements([row | {"growth_messages": growth}], "table", out)
        assert text in out.getvalue()
        title = out.getvalue().splitlines()[0]
        assert title == "1970-01-01 00:00:00 UTC to 1970-01-01 00:00:40 UTC: 1 subscription"


def test_clusters_are_named_where_there_are_several() -> None:
    out = io.StringIO()
    write_judgements([JUDGED[0], dict(JUDGED[1]) | {"cluster": "east"}], "table", out)
    assert " east: public/default/" in out.getvalue()


def test_no_rows_are_an_empty_array_or_a_line() -> None:
    out = io.StringIO()
    write_judgements([], "json", out)
    assert json.loads(out.getvalue()) == []
    out = io.StringIO()
    write_judgements([], "table", out)
    assert out.getvalue() == "No subscription has telemetry in this range.\n"


def test_table_has_the_sentence_of_every_subscription() -> None:
    out = io.StringIO()
    write_judgements(JUDGED, "table", out)
    words = " ".join(out.getvalue().split())
    for row in worst_first(JUDGED):
        verdict, _, said = row["sentence"].partition(": ")
        assert f"{verdict} (confidence {row['confidence']:.2f}): {said}" in words
    assert "public/default/slow subscription slow backlog" in words
    # Nobody is to blame where nothing waits: the shares are about what was in flight.
    assert "Time blamed on: nobody; messages were in flight for 40 % of it" in words
    assert words.count("Time blamed on: nobody") == 1


def test_shares_are_shown_as_the_verdict_counts_them() -> None:
    shares = {f"share_{blame.lower()}": 0.0 for blame in BLAMES}
    row = dict(JUDGED[0]) | shares | {"share_throttled_topic": 0.9, "share_consumer": 0.1}
    row |= {"verdict": "CONSUMER", "second": "THROTTLED_TOPIC", "bystander": True}
    out = io.StringIO()
    write_judgements([row], "table", out)
    assert "Time blamed on: CONSUMER 100 %\n" in out.getvalue()


def test_a_partition_is_named_with_its_suffix() -> None:
    assert topic_text({"topic": "persistent://a/b/t", "partition": 3}).endswith("/t-partition-3")
    assert topic_text({"topic": "persistent://a/b/t", "partition": None}).endswith("/t")

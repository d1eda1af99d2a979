"""Episodes from begin to end, in stories of one letter a minute."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.account.verdict import INFERRED, MEASURED, YOUNG_NS, Verdict, blame_shares
from headgate.pipeline.kernels.episodes import (
    INPUT_COLUMNS,
    JUDGED_COLUMNS,
    MINUTE_FIGURES,
    SEGMENT_ORDER,
    SORT_COLUMNS,
    NewestMinutes,
    episodes_table,
    joined_table,
)
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION, BLAMES, SHARE_COLUMNS
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import (
    BLAME_COLUMNS,
    EPISODE_COLUMNS,
    EPISODES,
    SUBSTANTIAL_NS,
)
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.episodes_by_row import episodes_by_row, joined_by_row
from tests.unit.pipeline.play import S, minutes
from tests.unit.pipeline.random_rows import among, assert_same_rows, minutes_of_subjects
from tests.unit.pipeline.story_play import BEGIN, NS, Backlog, tell

HOUR = BEGIN // HOUR_NS
HOURS = range(HOUR, HOUR + 5)
_SCHEMA = arrow_schema(
    (
        *(column for column in ATTRIBUTION.columns if column.name in JUDGED_COLUMNS),
        *(INTERVALS.column(name) for name in MINUTE_FIGURES),
    )
)


def judged(patterns: Sequence[str], seconds: int) -> list[dict[str, Any]]:
    """Minutes as the step gives them, of subscriptions with these stories."""
    stories = [Backlog(f"{NS}{number:03}", text) for number, text in enumerate(patterns)]
    rows = minutes(tell(seconds, 60, topics={}, limiters=(), backlogs=stories))
    return [_judged_minute(row) for row in rows]


def _judged_minute(row: dict[str, Any]) -> dict[str, Any]:
    """A stand-in for the table ``attribution``: what is young blames nobody."""
    cells = [row[name] or 0 for name in STATE_FIELD_NAMES]
    shares = blame_shares(cells)
    blamed = max((v for v in Verdict if v is not Verdict.NONE), key=lambda verdict: shares[verdict])
    is_quiet = row["oldest_age_max_ns"] < YOUNG_NS
    return {
        **{name: row.get(name) for name in JUDGED_COLUMNS},
        **{f"share_{verdict.value.lower()}": share for verdict, share in shares.items()},
        "verdict": (Verdict.NONE if is_quiet else blamed).value,
        "bystander": False,
        "growth_messages": row["backlog_messages"] - row["backlog_messages_start"],
        "evidence": row["evidence"],
        **{name: row[name] for name in MINUTE_FIGURES},
        "evicted": row["evicted"],
        "accounted_ns": sum(cells),
    }


def newest(rows: Sequence[dict[str, Any]]) -> NewestMinutes:
    """As it is found from the rows' files."""
    last: dict[tuple[str | None, int], int] = {}
    for row in rows:
        for hour in (row["from_ns"] // HOUR_NS - 1, row["from_ns"] // HOUR_NS):
            key = (row["cluster"], hour)
            last[key] = max(last.get(key, 0), row["from_ns"] // MINUTE_NS)
    return NewestMinutes(last, max(row["from_ns"] // HOUR_NS for row in rows))


def segments(
    rows: Sequence[dict[str, Any]], hours: Sequence[int] = HOURS, until: NewestMinutes | None = None
) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(list(rows), schema=_SCHEMA).select(list(INPUT_COLUMNS))
    table = table.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    found = episodes_table(table, set(hours), until or newest(rows))
    assert found.schema == table_arrow_schema(EPISODES)
    return list(found.to_pylist())


def whole(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(list(found), schema=table_arrow_schema(EPISODES))
    table = table.sort_by([(name, "ascending") for name in SEGMENT_ORDER])
    joined = joined_table(table.drop_columns(["date", "hour"]))
    assert joined.schema == arrow_schema(EPISODE_COLUMNS)
    return list(joined.to_pylist())


def episodes(pattern: str, minutes_played: int | None = None) -> list[dict[str, Any]]:
    """Those of one story beside one that is quiet for as long as is played."""
    played = minutes_played or len(pattern)
    rows = judged([pattern, "."], 60 * played)
    return [row for row in whole(segments(rows)) if row["topic"] == f"{NS}000"]


def spans(found: Sequence[dict[str, Any]], start: str = "episode_start_ns") -> list[Any]:
    """(first minute, minute after the last one or None) of each."""
    end = start.replace("start", "end")
    return [
        tuple(None if row[n] is None else (row[n] - BEGIN) / MINUTE_NS for n in (start, end))
        for row in found
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("." * 12, []),
        (".CC.........", [(1, 3)]),
        ("C..C........", [(0, 4)]),
        ("C...C.......", [(0, 1), (4, 5)]),
        ("...CC.CC....", [(3, 8)]),
        ("...C..C.....", [(3, 7)]),
        ("..C...C.....", [(2, 3), (6, 7)]),
        ("....CCCC....", [(4, 8)]),
        ("..CCSCC.....", [(2, 5), (5, 7)]),
        ("..........CC", [(10, None)]),
        (".......CCC..", [(7, None)]),
        (".....CCC.....", [(5, 8)]),
        ("..........S.", [(10, 11)]),
    ],
)
def test_pauses_are_bridged_and_skips_are_not(pattern: str, expected: list[Any]) -> None:
    """The hour ends five minutes after the beginning."""
    assert spans(episodes(pattern)) == expected


def test_a_segment_covers_one_hour_and_says_whether_it_continues() -> None:
    rows = judged(["...C..C" + "T" * 60 + "C...."], 60 * 72)
    found = segments(rows)
    assert spans(found, "segment_start_ns") == [(3, 5), (5, 65), (65, 68)]
    assert [row["hour"] for row in found] == [10, 11, 12]
    edges = [(row["continues_before"], row["continues_after"], row["is_open"]) for row in found]
    assert edges == [(False, True, False), (True, True, False), (True, False, False)]
    assert [row["ending"] for row in found] == ["continues", "continues", "over"]
    assert [row["minutes"] for row in found] == [1, 59, 3]
    assert [row["cause"] for row in found] == ["CONSUMER", "THROTTLED_TOPIC", "THROTTLED_TOPIC"]
    assert found[1]["sentence"].startswith(
        "a backlog since before 2025-11-21 11:00 UTC, going on at 2025-11-21 12:00 UTC, at most"
    )
    (episode,) = whole(found)
    assert episode["minutes"] == 63
    assert (episode["cause"], episode["second_cause"]) == ("THROTTLED_TOPIC", None)
    assert episode["growth_messages"] == sum(row["growth_messages"] for row in found)
    assert episode["peak_backlog_messages"] == 62 * 60 * 60
    assert (episode["peak_minute"].hour, episode["peak_minute"].minute) == (12, 2)
    assert episode["sentence"] == (
        "a backlog from 2025-11-21 10:58 UTC to 2025-11-21 12:03 UTC (65 min), at most 223,200"
        " messages (at 2025-11-21 12:02 UTC); the topic limit is to blame for 90 % of the time"
    )


def test_blame_is_exact_and_includes_bridged_pauses() -> None:
    rows = judged(["CC.TTT......"], 720)
    (episode,) = whole(segments(rows))
    inside = [row for row in rows[:6] if row["verdict"] != "NONE"]
    assert len(inside) == 5
    for blame, column, share in zip(BLAMES, BLAME_COLUMNS, SHARE_COLUMNS, strict=True):
        wanted = sum(round(row[share] * row["accounted_ns"]) for row in inside)
        assert episode[column] == wanted + (60 * S if blame == "NONE" else 0), blame
    assert sum(episode[column] for column in BLAME_COLUMNS) == 360 * S
    assert episode["blame_throttled_topic_ns"] == 3 * 97 * 60 * S // 100
    assert episode["blame_none_ns"] == 60 * S
    assert (episode["cause"], episode["second_cause"]) == ("THROTTLED_TOPIC", "CONSUMER")
    assert episode["completeness"] == 1.0


def test_a_consumer_is_not_to_blame_for_a_pause_in_which_it_is_busy() -> None:
    rows = judged(["T..T..T....."], 720)
    busy = dict.fromkeys(SHARE_COLUMNS, 0.0) | {"share_consumer": 1.0}
    healthy = [row | busy if row["verdict"] == "NONE" else row for row in rows]
    (episode,) = whole(segments(healthy))
    assert (episode["cause"], episode["second_cause"]) == ("THROTTLED_TOPIC", None)
    assert episode["blame_consumer_ns"] < 10 * S
    assert episode["blame_none_ns"] >= 4 * 60 * S


def test_a_bystander_limiter_is_not_to_blame() -> None:
    rows = judged(["TT.........."], 720)
    standing = [
        {**row, "verdict": "CONSUMER", "second": "THROTTLED_TOPIC", "bystander": True}
        for row in rows[:2]
    ]
    (episode,) = whole(segments([*standing, *rows[2:]]))
    assert episode["cause"] == "CONSUMER"
    assert episode["blame_throttled_topic_ns"] == 0
    assert episode["blame_consumer_ns"] == 2 * 97 * 60 * S // 100


def test_inferred_minutes_are_weighted_by_sampled_time() -> None:
    rows = judged(["CC.........."], 720)
    inferred = [{**row, "accounted_ns": 0, "evidence": INFERRED} for row in rows[:1]]
    inferred[0]["completeness"] = 0.5
    (episode,) = whole(segments([*inferred, *rows[1:]]))
    assert episode["blame_consumer_ns"] == 27 * S + 54 * S
    assert (episode["evidence"], episode["completeness"]) == (INFERRED, 0.75)
    assert whole(segments(rows))[0]["evidence"] == MEASURED


@pytest.mark.parametrize(
    ("pattern", "facts", "expected"),
    [
        ("....C........", {}, 0),
        ("....C........", {"oldest_age_max_ns": SUBSTANTIAL_NS}, 1),
        ("....C........", {"backlog_messages": 1_001}, 1),
        ("....C........", {"evicted": 1}, 1),
        ("..C..C.......", {}, 0),
        ("..C..C..C....", {}, 1),
        ("..CCC........", {}, 1),
        # On both sides of the hour's edge, and no more than one on each.
        ("....CC.......", {}, 0),
        ("..C..C..C....", {"backlog_messages": 1_001}, 1),
    ],
)
def test_a_short_backlog_is_no_episode(pattern: str, facts: dict[str, Any], expected: int) -> None:
    """Six thousand are acknowledged in each minute: a thousand are ten seconds' work."""
    rows = judged([pattern], 60 * len(pattern))
    small = {
        "oldest_age_max_ns": 3 * S, "backlog_messages": 1_000, "growth_messages": 4, "acked": 6_000,
    }  # fmt: skip
    told = [row | small | facts if row["verdict"] != "NONE" else row for row in rows]
    assert len(whole(segments(told))) == expected


def test_an_open_episode_has_no_end() -> None:
    (episode,) = episodes("..........CC")
    assert (episode["is_open"], episode["ending"]) == (True, "open")
    assert "still going on at 2025-11-21 11:07 UTC" in episode["sentence"]


def test_an_episode_ends_where_its_telemetry_ends() -> None:
    """Nobody saw it end; that of others goes on."""
    (episode,) = episodes("....CC ", 15)
    assert (episode["is_open"], episode["ending"]) == (False, "unseen")
    assert spans([episode]) == [(4, 6)]
    assert episode["sentence"].endswith(
        "; its telemetry ends there, so the end of the backlog is not known"
    )
    # While nothing newer is there of anybody, it is open.
    alone = whole(segments(judged(["....CC "], 900)))
    assert [row["ending"] for row in alone] == ["open"]


def test_an_episode_is_not_open_if_other_telemetry_is_hours_newer() -> None:
    rows = judged(["....C"], 300)
    assert [row["ending"] for row in segments(rows)] == ["open"]
    for hour, ending in ((HOUR + 1, "open"), (HOUR + 2, "unseen")):
        later = NewestMinutes(newest(rows).minutes, hour)
        assert [row["ending"] for row in segments(rows, until=later)] == [ending]


def test_a_skip_in_a_quiet_minute_ends_the_episode() -> None:
    rows = judged(["CC.CC......."], 720)
    quiet = {**rows[2], "skipped": 5, "backlog_messages_start": 5, "backlog_messages": 0}
    found = whole(segments([*rows[:2], quiet, *rows[3:]]))
    assert [row["ending"] for row in found] == ["skipped", "over"]
    some = {**rows[1], "skipped": 5}
    assert len(whole(segments([rows[0], some, *rows[2:]]))) == 1


def test_a_skip_after_the_end_and_a_gap_before_a_quiet_minute_change_nothing() -> None:
    rows = judged(["CC.........."], 720)
    for place, ending in ((2, "skipped"), (3, "skipped"), (4, "over")):
        skip = {**rows[place], "skipped": 5, "backlog_messages_start": 5, "backlog_messages": 0}
        found = segments([*rows[:place], skip, *rows[place + 1 :]])
        assert [row["ending"] for row in found] == [ending]
    for after, ending in ((3, "over"), (4, "over"), (5, "unseen")):
        assert [row["ending"] for row in segments([*rows[:2], *rows[after:]])] == [ending]


@settings(max_examples=20, deadline=None)
@given(st.text("..CCT", min_size=1, max_size=10), st.text("..CCTS", min_size=1, max_size=10))
def test_every_hour_follows_from_itself_and_the_edges_of_its_neighbours(
    before: str, after: str
) -> None:
    """Whatever the story, an hour alone with its neighbours' edges gives the rows of all."""
    pattern = f"{before[-5:]:.>5}{after * 8}"[:74]
    rows = judged([pattern], 60 * len(pattern))
    all_hours, until = segments(rows), newest(rows)
    for hour in HOURS:
        near = [
            row
            for row in rows
            if row["from_ns"] // HOUR_NS == hour
            or -3 <= row["from_ns"] // MINUTE_NS - 60 * hour < 63
        ]
        alone = segments(near, [hour], until) if near else []
        assert alone == [row for row in all_hours if row["segment_start_ns"] // HOUR_NS == hour]
    for one, other in pairwise(sorted(whole(all_hours), key=lambda row: row["episode_start_ns"])):
        assert one["episode_end_ns"] <= other["episode_start_ns"]


_DRAWS = {
    "verdict": among(*["NONE"] * 3, *BLAMES),
    "acked": among(0, 5, 6_000),
    "growth_messages": among(0, 4, -4),
    "backlog_messages": among(0, 5, 900, 1_001, 10**9),
    "oldest_age_max_ns": among(None, 0, 3 * S, SUBSTANTIAL_NS),
    "evicted": among(*[None, 0] * 4, 1),
    "evidence": among(*[MEASURED] * 4, INFERRED),
    "completeness": among(0.0, 1 / 3, 1.0),
    "accounted_ns": among(None, 0, 59_999_999_999, 60 * S),
    "skipped": among(*[None, 0] * 6, 5, 2_000),
    "backlog_messages_start": among(None, 0, 5, 900, 10**9),
    "expired": among(*[None, 0] * 4, 3),
    "evicted_by": among("size", "size", "time", None),
    "evicted_by_limit": among(1 << 20, 60 * S),
    "evicted_by_source": among("topic policy", None),
    "expired_by_ttl_ns": among(60 * S, 60 * S, None),
    "expired_by_source": among("topic policy", "namespace policy a/b"),
}
_PARTS = (0, 0, 1, 3, 10)


def _random_minutes(seed: int, kept: float) -> list[dict[str, Any]]:
    rows = list(
        minutes_of_subjects(
            seed,
            20,
            150,
            lambda number: {
                "cluster": "demo" if number % 3 else None,
                "topic": f"t{number // 2:03}",
                "partition": None if number % 2 else 0,
                "incarnation": 1,
                "subscription": f"s{number:03}",
            },
            _DRAWS,
            kept=kept,
        )
    )
    random = Random(seed)
    for row in rows:
        parts = [random.choice(_PARTS) for _ in BLAMES]
        row |= {
            name: part / (sum(parts) or 1) for name, part in zip(SHARE_COLUMNS, parts, strict=True)
        }
        limiter = random.choice([blame for blame in BLAMES if blame.startswith("THROTTLED")])
        stands_by = row["verdict"] == "CONSUMER" and random.random() < 0.5
        row |= {"bystander": stands_by, "second": limiter if stands_by else None}
    return rows


@pytest.mark.parametrize("kept", [0.0, 0.7, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_random_minutes_have_the_rows_of_the_row_by_row_form(seed: int, kept: float) -> None:
    rows = _random_minutes(seed, kept)
    table = pa.Table.from_pylist(rows, schema=_SCHEMA).select(list(INPUT_COLUMNS))
    table = table.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    until = newest(rows)
    for hours in (set(HOURS), {HOUR + 1}, set[int]()):
        found, expected = (law(table, hours, until) for law in (episodes_table, episodes_by_row))
        assert_same_rows(found, expected, ["completeness"])
        segments_sorted = found.sort_by([(name, "ascending") for name in SEGMENT_ORDER])
        assert_same_rows(
            joined_table(segments_sorted), joined_by_row(segments_sorted), ["completeness"]
        )
    assert found.num_rows == 0

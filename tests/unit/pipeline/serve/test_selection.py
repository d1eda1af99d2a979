"""Parameters of a request become a range and what passes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.base.errors import InputError
from headgate.pipeline.serve.selection import (
    COUNT,
    DAY_NS,
    Selection,
    camel,
    is_topic,
    selection_of,
    topic_names,
)
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.time_span import Span

END = 1_800_000_000 * 1_000_000_000
KNOWN = Span(END - 40 * DAY_NS, END)


def chosen(count_max: int = 500, **query: str) -> Selection:
    return selection_of(query, KNOWN, END + HOUR_NS, range_max_ns=DAY_NS, count_max=count_max)


def test_without_parameters_it_is_the_last_day_of_the_tables() -> None:
    assert chosen() == Selection(END - DAY_NS, END, count=COUNT)
    assert chosen(count_max=7).count == 7


def test_parameters() -> None:
    found = chosen(since="3h", until="2h", verdict="CONSUMER", tenant="t", text="X", count="9")
    assert found == Selection(END - 2 * HOUR_NS, END - HOUR_NS, "CONSUMER", "t", "X", 9)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"since": "yesterday"}, "since 'yesterday' is no time"),
        ({"since": "2h", "until": "3h"}, "since does not lie before until"),
        ({"since": "9d"}, "at most 24 h"),
        ({"verdict": "SOMEBODY"}, "NO_CONSUMER"),
        ({"count": "0"}, "1 to 500"),
        ({"count": "501"}, "1 to 500"),
        ({"count": "-1"}, "1 to 500"),
        ({"count": "9" * 5_000}, "1 to 500"),
        ({"count": "000000009999999"}, "1 to 500"),
        ({"text": "x" * 1_025}, "text is longer"),
    ],
)
def test_what_is_wrong_is_said(query: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(**query)


def test_names_select_rows() -> None:
    batch = pa.record_batch(
        {
            "topic": ["persistent://a/n/Orders", "persistent://ab/n/x", "non-persistent://a/n/y"],
            "subscription": ["s", "orders-2", None],
        }
    )

    def kept(**names: str) -> list[str]:
        tables = Selection(0, 1, **names).named([batch])  # type: ignore[arg-type]
        return [topic[-1] for table in tables for topic in table["topic"].to_pylist()]

    assert kept() == ["s", "x", "y"]
    assert kept(tenant="a") == ["s", "y"]
    assert kept(text="oRDers") == ["s", "x"]
    assert kept(tenant="a", text="orders") == ["s"]
    assert kept(text="n/.") == []


def test_a_full_name_finds_the_rows_of_its_partition() -> None:
    full = "persistent://a/n/t-partition-3"
    assert topic_names(full) == [full, "persistent://a/n/t"]
    assert topic_names("persistent://a/n/t") == ["persistent://a/n/t"]
    assert is_topic({"topic": "persistent://a/n/t", "partition": 3}, full)
    assert is_topic({"topic": full, "partition": None}, full)
    assert not is_topic({"topic": "persistent://a/n/t", "partition": 4}, full)


def test_names_are_those_of_the_rest() -> None:
    assert camel("peak_backlog_messages") == "peakBacklogMessages"

"""Rows as JSON and CSV have every value in full; a table fits the terminal."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from headgate.pipeline.options import Format
from headgate.pipeline.output.rows import plain_value, write_rows

ROW = {
    "minute": datetime(2026, 11, 21, 10, tzinfo=UTC),
    "topic": "persistent://public/default/orders",
    "backlog_messages": 1_234_567,
    "share": 0.25,
    "is_open": True,
    "nothing": None,
}


def written(style: Format, rows: list[dict[str, Any]], **more: Any) -> str:
    out = io.StringIO()
    assert write_rows(style, tuple(ROW), rows, out, **more) == len(rows)
    return out.getvalue()


def test_json_is_an_array_of_objects() -> None:
    assert json.loads(written("json", [])) == []
    first, second = json.loads(written("json", [ROW, ROW]))
    assert first == second == {**ROW, "minute": "2026-11-21T10:00:00Z"}


def test_csv_has_a_header_and_quotes_what_needs_it() -> None:
    rows = list(csv.reader(io.StringIO(written("csv", [{**ROW, "topic": 'a,"b"\nc'}]))))
    assert rows[0] == list(ROW)
    assert rows[1] == ["2026-11-21T10:00:00Z", 'a,"b"\nc', "1234567", "0.25", "true", ""]
    assert written("csv", []) == ",".join(ROW) + "\n"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (date(2026, 11, 21), "2026-11-21"),
        (b"\x01\xff", "01ff"),
        (float("nan"), None),
        (float("-inf"), None),
        (0, 0),
    ],
)
def test_values_that_json_does_not_have(value: object, plain: object) -> None:
    assert plain_value(value) == plain


def test_a_table_fits_and_folds_names_but_no_number() -> None:
    text = written("table", [ROW], width=100)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "1,234,567" in text
    assert "nothing" not in text
    squeezed = "".join(text.split())
    assert "persistent" in squeezed


def test_a_narrow_table_becomes_paragraphs_with_every_value() -> None:
    text = written("table", [ROW, ROW], width=50)
    lines = [line.rstrip() for line in text.splitlines()]
    assert "backlog_messages  1,234,567" in lines
    assert "is_open           yes" in lines
    assert lines.count("") == 1
    assert all(len(line) <= 50 for line in lines)


def test_a_sentence_is_never_a_narrow_column() -> None:
    said = "the topic limit of 60 msg/s (topic policy) held 2 waiting subscriptions for 35 s"
    row = {"topic": "persistent://public/default/orders", "backlog": 2_522, "sentence": said}
    out = io.StringIO()
    write_rows("table", tuple(row), [row], out, width=80)
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [
        "topic     persistent://public/default/orders",
        "backlog   2,522",
        "sentence  the topic limit of 60 msg/s (topic policy) held 2 waiting",
        "          subscriptions for 35 s",
    ]
    wide = io.StringIO()
    write_rows("table", tuple(row), [row], wide, width=120)
    assert "sentence" in wide.getvalue().splitlines()[0]


@pytest.mark.parametrize("width", [*range(86, 130), 150, 199])
def test_no_line_is_cut_beside_a_sentence(width: int) -> None:
    """Names are folded where a sentence needs the room, and every letter is there."""
    said = "the topic's publish limit of 50 msg/s (topic policy) let 1,771 messages through, 95 %"
    row = {
        "minute": datetime(2026, 11, 21, 10, tzinfo=UTC),
        "subject": "persistent://public/default/limited-by-a-policy",
        "sentence": said,
    }
    out = io.StringIO()
    write_rows("table", tuple(row), [row], out, width=width)
    lines = out.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    letters = sorted("".join(lines).replace("─", "").replace(" ", ""))
    expected = "".join([*row, "2026-11-21T10:00:00Z", row["subject"], said])  # type: ignore[list-item]
    assert letters == sorted(expected.replace(" ", ""))


def test_instants_in_nanoseconds_can_be_copied() -> None:
    out = io.StringIO()
    write_rows("table", ("time_ns", "count"), [{"time_ns": 1_795_338_265, "count": 1_000}], out)
    assert "1795338265" in out.getvalue()
    assert "1,000" in out.getvalue()


def test_an_empty_table_is_empty() -> None:
    assert written("table", []) == ""


def test_names_cannot_control_the_terminal() -> None:
    evil = "a\x1b[31mb\u202ec\n"
    assert "\x1b" not in written("table", [{**ROW, "topic": evil}], width=80)


def test_names_are_no_markup() -> None:
    assert "[red]x[/red]" in written("table", [{**ROW, "topic": "[red]x[/red]"}], width=200)

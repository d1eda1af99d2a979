"""The row about a file that could not be read."""

from __future__ import annotations

from headgate.pipeline.tables.quarantine import VALUE_BYTES_MAX, refused_file_row

T0_MS = 1_763_719_200_000


def test_a_row_says_which_file_why_and_how_it_begins() -> None:
    (row,) = refused_file_row("files:prod", "1.records", "torn", b"x" * 9_999, T0_MS).to_pylist()
    assert (row["message_topic"], row["message_id"], row["reason"]) == (
        "files:prod", "1.records", "torn",
    )  # fmt: skip
    assert len(row["value"]) == VALUE_BYTES_MAX
    assert row["publish_time"].isoformat() == "2025-11-21T10:00:00+00:00"
    assert row["hour"] == 10

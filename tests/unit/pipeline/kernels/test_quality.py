"""Rows of ``quality`` add up the files of an hour, and compare sums between tables."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

from headgate.pipeline.kernels.file_checks import CheckResult, FileChecks
from headgate.pipeline.kernels.quality import CheckedFile, CheckOutcome, outcomes, quality_table
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.catalogue import CHECKED
from headgate.pipeline.tables.intervals import INTERVALS

HOUR = 489_000  # 2025-10-14T00:00Z


def checks(results: dict[str, CheckResult], acked: int = 0, keys: tuple[int, ...] = ()) -> Any:
    return FileChecks(1, results, {"acked": acked}, keys)


def rows(*of: CheckedFile, **others: list[CheckedFile]) -> dict[str, dict[str, Any]]:
    """The rows of ``attribution`` in an hour with these files, by expectation."""
    files = {ATTRIBUTION.name: list(of), **others}
    found = quality_table({HOUR: files}, CHECKED).to_pylist()
    return {r["expectation"]: r for r in found if r["table_name"] == ATTRIBUTION.name}


def test_files_of_an_hour_add_up() -> None:
    bad = CheckResult(5, 2, ("confidence",), {"topic": "t"}, 1_000_000, 3_000_001)
    found = rows(
        CheckedFile(None, checks({"values_in_range": CheckResult(10)})),
        CheckedFile(None, checks({"values_in_range": bad})),
    )
    row = found["values_in_range"]
    assert (row["date"], row["hour"], row["hour_start"]) == (
        date(2025, 10, 14), 0, datetime(2025, 10, 14, tzinfo=UTC),
    )  # fmt: skip
    assert (row["is_met"], row["rows_checked"], row["rows_failed"]) == (False, 15, 2)
    assert (row["failed_columns"], json.loads(row["example"])) == ("confidence", {"topic": "t"})
    assert row["last_failed"] == datetime(1970, 1, 1, 0, 0, 3, 1, tzinfo=UTC)
    assert row["sentence"] == (
        "2 of 15 rows of attribution have a value out of range in confidence (0 to 1)."
    )


def test_sentences() -> None:
    names = {
        "required_columns": "have no value in topic",
        "known_values": "have an unknown value in topic",
        "unique_key": "have the same key as another row",
        "from_before_to": "break the rule from_ns <= to_ns",
    }
    bad = CheckResult(9, 1, ("topic",))
    found = rows(CheckedFile(None, checks(dict.fromkeys(names, bad))))
    for name, text in names.items():
        assert found[name]["sentence"] == f"1 of 9 rows of attribution {text}."
    found = rows(CheckedFile(None, checks({name: CheckResult(1_234) for name in names})))
    for name in names:
        assert found[name]["sentence"] == "All 1,234 rows of attribution are as expected."


def test_a_file_that_is_in_the_table_twice() -> None:
    one = CheckedFile(None, checks({"unique_key": CheckResult(3)}, keys=(1, 2, 3)))
    other = CheckedFile(None, checks({"unique_key": CheckResult(2)}, keys=(4, 5)))
    assert rows(one, other)["unique_key"]["is_met"]
    assert rows(one, other, one)["unique_key"]["rows_failed"] == 3


def test_sums_that_agree_and_that_do_not() -> None:
    def of(*minutes: CheckedFile) -> dict[str, Any]:
        own = [CheckedFile(None, checks({}, acked)) for acked in (3, 4)]
        return rows(*own, **{INTERVALS.name: list(minutes)}).get("acked_agrees", {})

    met = of(CheckedFile("subscription", checks({}, 7)), CheckedFile("topic", checks({}, 50)))
    assert (met["is_met"], met["rows_checked"], met["sentence"]) == (
        True, 1,
        "The sum of acked over the hour is 7 in attribution and in intervals (kind subscription).",
    )  # fmt: skip
    unmet = of(CheckedFile("subscription", checks({}, 8)))
    assert (unmet["is_met"], unmet["failed_columns"]) == (False, "acked")
    assert unmet["sentence"] == (
        "The sum of acked over the hour is 7 in attribution and 8 in intervals (kind subscription)."
    )
    # A file without results: nothing is known of the sum.
    assert of(CheckedFile("subscription", checks({}, 8)), CheckedFile("subscription", None)) == {}


def test_sums_of_two_columns_that_agree_with_one() -> None:
    def of(**totals: int) -> dict[str, Any]:
        own = CheckedFile(None, FileChecks(1, {}, totals))
        minutes = CheckedFile("subscription", FileChecks(1, {}, {"backlog_messages": 9}))
        return rows(own, **{INTERVALS.name: [minutes]}).get("backlog_messages_agrees", {})

    met = of(backlog_messages=4, delayed_messages=5)
    assert met["is_met"]
    assert met["sentence"] == (
        "The sum of backlog_messages and delayed_messages over the hour is 9 in attribution and in"
        " intervals (kind subscription)."
    )
    unmet = of(backlog_messages=9, delayed_messages=5)
    assert unmet["failed_columns"] == "backlog_messages, delayed_messages"
    # A file of an earlier release has no sum of the second one.
    assert of(backlog_messages=9) == {}


def test_files_of_earlier_releases_give_no_rows() -> None:
    assert rows(CheckedFile(None, None)) == {}
    none = CheckedFile(None, checks({"from_before_to": CheckResult(0)}))
    assert {*rows(none)} == {"acked_agrees"}


def test_outcomes_are_summed_over_hours() -> None:
    bad = checks({"values_in_range": CheckResult(5, 2, ("confidence",))})
    good = checks({"values_in_range": CheckResult(7)})
    hours = {HOUR + n: {"attribution": [CheckedFile(None, c)]} for n, c in enumerate((bad, good))}
    found = outcomes(quality_table(hours, CHECKED).to_pylist())
    assert found["attribution", "values_in_range"] == CheckOutcome(12, 2, "confidence")

"""Expectations follow from declarations, and declarations agree with each other."""

from __future__ import annotations

import pytest

from headgate.pipeline.tables.attribution import ATTRIBUTION, SHARE_COLUMNS
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import CHECKED, TABLES
from headgate.pipeline.tables.columns import DOUBLE, LONG, STRING, Table, TableColumn
from headgate.pipeline.tables.expectations import (
    Rule,
    expectations,
    range_text,
    ranged_columns,
    totals_of,
)
from headgate.pipeline.tables.intervals import INTERVALS

ALL = tuple(TABLES.values())


def by_name(table: Table) -> dict[str, str]:
    return {each.name: each.text for each in expectations(table)}


def test_expectations_of_a_table_in_words() -> None:
    found = by_name(ATTRIBUTION)
    assert found["required_columns"] == "minute, from_ns, to_ns and verdict have a value"
    assert found["known_values"].startswith("verdict, second, dimension and evidence have")
    assert found["unique_key"] == (
        "no two rows have the same cluster, topic, partition, subscription, incarnation and minute"
    )
    assert found["shares_add_up"] == " + ".join(SHARE_COLUMNS) + " = 1"
    assert found["from_before_to"] == "from_ns <= to_ns"
    assert found["acked_agrees"] == (
        "the sum of acked over an hour is that of intervals.acked of kind subscription"
    )


def test_bronze_may_hold_a_message_twice() -> None:
    assert "unique_key" not in by_name(BRONZE_SAMPLES)


def test_a_table_without_rules_has_no_expectations() -> None:
    assert expectations(Table("t", (TableColumn("a", STRING),), (), ())) == ()


def test_ranges_in_words() -> None:
    ends: dict[str, tuple[float | None, float | None]] = {
        "0 to 1": (0, 1), "0 or more": (0, None), "5 or less": (None, 5), "": (None, None),
    }  # fmt: skip
    for text, (least, most) in ends.items():
        assert range_text(TableColumn("a", DOUBLE, least=least, most=most)) == text


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_a_declaration_names_only_columns_that_exist(table: Table) -> None:
    names = {*table.column_names()}
    assert table.key
    assert {*table.key} <= names
    assert table.meaning.endswith(".")
    rules = expectations(table)
    assert len({each.name for each in rules}) == len(rules)
    for each in rules:
        assert {*each.columns} <= names, each.name
    for agreement in table.agreements:
        assert agreement.of_column in TABLES[agreement.of_table].column_names()
        assert agreement.of_table in table.follows_from
    assert {*table.follows_from} <= {*TABLES}


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_ranges_and_values_fit_the_type(table: Table) -> None:
    for column in ranged_columns(table):
        assert column.type in (LONG, DOUBLE) or column.type.value == "int", column.name
    for column in table.columns:
        assert not (column.values and column.type is not STRING), column.name
        assert column.name.endswith("_ns") <= (column.unit in ("ns", "ns since the epoch"))
        assert (column.unit == "share") <= ((column.least, column.most) == (0, 1)), column.name


def test_totals_are_of_both_sides_of_an_agreement() -> None:
    summed = ("appended", "acked", "backlog_messages", "delayed_messages")
    assert totals_of(ATTRIBUTION, ALL) == summed
    assert {"acked", "msgs_in", "granted"} <= {*totals_of(INTERVALS, ALL)}


def test_every_table_by_the_hour_is_checked() -> None:
    assert {table.name for table in CHECKED} == {*TABLES} - {"quality", "policy_backtest"}
    for table in CHECKED:
        assert any(each.rule is not Rule.AGREEMENT for each in expectations(table)) or (
            table.name == "bronze_quarantine"
        )

"""The expectations of a table, which follow from its declaration."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache
from typing import Final

from headgate.pipeline.tables.columns import Agreement, Sum, Table, TableColumn


class Rule(enum.Enum):
    """How an expectation is checked."""

    REQUIRED = "required_columns"
    RANGE = "values_in_range"
    VALUES = "known_values"
    KEY = "unique_key"
    SUM = "sum"
    AGREEMENT = "agreement"


_OPERATORS: Final = {True: "<=", False: "="}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must hold for the rows of a table, each by itself or in an hour."""

    name: str
    """Unique in its table."""
    rule: Rule
    columns: tuple[str, ...]
    """The columns that it is about."""
    text: str
    """The expectation in words or as a formula."""
    sum: Sum | None = None
    agreement: Agreement | None = None


@cache
def expectations(table: Table) -> tuple[Expectation, ...]:
    """All expectations of a table, in a fixed order."""
    found = [
        _of_columns(Rule.REQUIRED, "have a value", [c for c in table.columns if c.is_required]),
        _of_columns(Rule.RANGE, "are within their range", ranged_columns(table)),
        _of_columns(
            Rule.VALUES, "have one of their values", [c for c in table.columns if c.values]
        ),
    ]
    if table.key and table.is_key_unique:
        text = f"no two rows have the same {_listed(table.key)}"
        found.append(Expectation(Rule.KEY.value, Rule.KEY, table.key, text))
    found += [_of_sum(each) for each in table.sums]
    found += [_of_agreement(each) for each in table.agreements]
    return tuple(each for each in found if each.columns)


def ranged_columns(table: Table) -> list[TableColumn]:
    """The columns with a least or a largest value."""
    return [c for c in table.columns if c.least is not None or c.most is not None]


def range_text(column: TableColumn) -> str:
    """The allowed range of a column: ``0 to 1``, ``0 or more``; empty if there is none."""
    if column.least is None and column.most is None:
        return ""
    if column.most is None:
        return f"{column.least:g} or more"
    if column.least is None:
        return f"{column.most:g} or less"
    return f"{column.least:g} to {column.most:g}"


def totals_of(table: Table, tables: tuple[Table, ...]) -> tuple[str, ...]:
    """The columns of a table whose sums agree with others' or others' with them."""
    own = [name for each in table.agreements for name in each.columns]
    others = [
        each.of_column
        for other in tables
        for each in other.agreements
        if each.of_table == table.name
    ]
    return tuple(dict.fromkeys((*own, *others)))


def _of_columns(rule: Rule, what: str, columns: list[TableColumn]) -> Expectation:
    names = tuple(column.name for column in columns)
    return Expectation(rule.value, rule, names, f"{_listed(names)} {what}")


def _of_sum(each: Sum) -> Expectation:
    total = f"{each.total:g}" if isinstance(each.total, float) else each.total
    parts = " + ".join(each.terms) + "".join(f" - {name}" for name in each.less)
    names = (*each.terms, *each.less) + ((each.total,) if isinstance(each.total, str) else ())
    text = f"{parts} {_OPERATORS[each.is_at_most]} {total}"
    return Expectation(each.name, Rule.SUM, names, text, sum=each)


def _of_agreement(each: Agreement) -> Expectation:
    of = f"{each.of_table}.{each.of_column}"
    if each.of_kinds:
        of += f" of kind {_listed(each.of_kinds)}"
    return Expectation(
        f"{each.column}_agrees",
        Rule.AGREEMENT,
        each.columns,
        f"the sum of {_listed(each.columns)} over an hour is that of {of}",
        agreement=each,
    )


def _listed(names: tuple[str, ...]) -> str:
    """``a, b and c``."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)

"""The rows of ``quality`` by SQL over the tables, from their declarations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from headgate.pipeline.tables.columns import Agreement, Sum, Table, TableColumn
from tests.spark.telemetry_topic import rows_of

Outcome = tuple[str, int, str, int, int]
"""Table, hour of the day, expectation, rows checked, rows failed."""


def quality_oracle(out: Path, *tables: Table) -> set[Outcome]:
    """What ``quality`` must hold of some tables, which must all be there."""
    base = duckdb.connect()
    for table in tables:
        base.register(table.name, rows_of(out, table.name))
    return {
        (table.name, hour, name, checked, failed)
        for table in tables
        for name, query in _queries(table)
        for hour, checked, failed in base.execute(query).fetchall()
        if checked
    }


def _queries(table: Table) -> Iterator[tuple[str, str]]:
    needed = [f'"{c.name}" is null' for c in table.columns if c.is_required]
    ranged = [_beyond(c) for c in table.columns if (c.least, c.most) != (None, None)]
    listed = [f'"{c.name}" not in {(*c.values, "")}' for c in table.columns if c.values]
    for name, conditions in (
        ("required_columns", needed), ("values_in_range", ranged), ("known_values", listed),
    ):  # fmt: skip
        if conditions:
            wrong = " or ".join(f"coalesce({each}, false)" for each in conditions)
            yield name, _counted(table, "true", wrong)
    if table.is_key_unique:
        key = ", ".join(f'"{name}"' for name in table.key)
        yield (
            "unique_key",
            (
                f"select hour, count(*), count(*) - count(distinct row({key})) "
                f"from {table.name} group by hour"
            ),
        )
    for rule in table.sums:
        yield rule.name, _sum_query(table, rule)
    for agreement in table.agreements:
        yield f"{agreement.column}_agrees", _agreement_query(table, agreement)


def _counted(table: Table, applies: str, wrong: str) -> str:
    return (
        f"select hour, count(*) filter ({applies}), count(*) filter ({wrong}) "
        f"from {table.name} group by hour"
    )


def _beyond(column: TableColumn) -> str:
    ends = []
    if column.least is not None:
        ends.append(f'"{column.name}" < {column.least} - 1e-9')
    if column.most is not None:
        ends.append(f'"{column.name}" > {column.most} + 1e-9')
    return " or ".join(ends)


def _sum_query(table: Table, rule: Sum) -> str:
    names = (*rule.terms, *rule.less, *([rule.total] if isinstance(rule.total, str) else []))
    applies = " and ".join(f'"{name}" is not null' for name in names)
    excess = " + ".join(f'"{name}"' for name in rule.terms)
    excess += "".join(f' - "{name}"' for name in rule.less)
    total = f'"{rule.total}"' if isinstance(rule.total, str) else str(rule.total)
    excess = f"({excess} - {total})"
    wrong = f"{excess} > {rule.tolerance}"
    if not rule.is_at_most:
        wrong += f" or {excess} < -{rule.tolerance}"
    return _counted(table, applies, f"({applies}) and ({wrong})")


def _agreement_query(table: Table, rule: Agreement) -> str:
    kinds = " or ".join(f"kind = '{kind}'" for kind in rule.of_kinds) or "true"
    own = " + ".join(f'coalesce(sum("{name}"), 0)' for name in rule.columns)
    return (
        f"select hour, 1, (o.total <> t.total)::int from "
        f"(select hour, {own} as total from {table.name} group by hour)"
        f' as o join (select hour, coalesce(sum("{rule.of_column}") filter ({kinds}), 0) as total'
        f" from {rule.of_table} group by hour) as t using (hour)"
    )

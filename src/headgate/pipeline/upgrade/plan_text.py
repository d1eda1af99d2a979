"""The plan of an upgrade in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headgate.base.units import MIB
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.housekeeping.small_files import total_bytes
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.upgrade.plan import TablePlan, hours_of

_COLUMNS_SHOWN: Final = 5


def plan_lines(plans: Iterable[TablePlan]) -> Iterator[str]:
    """A line for each step of each table: what is done, and what it costs."""
    width = max(map(len, TABLES))
    for plan in plans:
        for step in _steps(plan):
            yield f"{plan.name:<{width}}  {step}"


def _steps(plan: TablePlan) -> Iterator[str]:
    if plan.is_absent:
        yield "create the table"
    if plan.columns:
        yield f"add {_columns_text(plan.columns)}"
    if plan.recomputed:
        hours = len(hours_of(plan.recomputed))
        yield (
            f"recompute {hours:,} {_plural('hour', hours)}: replace {_files_text(plan.recomputed)},"
            f" from {_mib_text(plan.input_bytes)} of rows"
        )
    if plan.small:
        yield f"merge {_files_text(plan.small)} into {plan.merged:,}"
    if plan.kept:
        yield (
            f"leave {_files_text(plan.kept)} without the columns: the telemetry of these hours is "
            "not there any more"
        )
    if plan.is_empty and not plan.kept:
        yield "up to date"


def _columns_text(columns: tuple[str, ...]) -> str:
    shown = ", ".join(columns[:_COLUMNS_SHOWN])
    more = len(columns) - _COLUMNS_SHOWN
    return (
        f"{len(columns):,} {_plural('column', len(columns))}: {shown}"
        + (f" and {more:,} more" if more > 0 else "")
    )  # fmt: skip


def _files_text(files: Iterable[TableFile]) -> str:
    known = list(files)
    return f"{len(known):,} {_plural('file', len(known))} ({_mib_text(total_bytes(known))})"


def _mib_text(size_bytes: int) -> str:
    return f"{size_bytes / MIB:,.1f} MiB"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"

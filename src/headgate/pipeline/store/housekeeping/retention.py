"""Retention: drops the rows of old hours from every table."""

from __future__ import annotations

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.pipeline.options import RETAIN_DAYS_MIN
from headgate.pipeline.store.delta_log import commit_drop, kept_from_hour
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.table_leases import Hold, housekeeping_lease
from headgate.pipeline.store.table_store import table_names
from headgate.pipeline.tables.columns import HOUR_NS


def drop_before(
    root: str,
    days: int,
    *,
    now_ns: int | None = None,
    dry_run: bool = False,
    hold: Hold = housekeeping_lease,
) -> int:
    """Drop all rows of hours (UTC) that ended at least ``days`` days ago, from every table.

    The remaining derived rows do not change: rows whose look-back reaches into dropped hours are
    not computed again. Telemetry of dropped hours that arrives later is stored, but no derived
    table reads it, and the next run drops it. The next vacuum deletes the files. Tables that are
    not partitioned by hour keep all rows. Returns the number of dropped files; with ``dry_run``, of
    those that would be dropped.

    Raises:
        InputError: ``days`` is less than :data:`RETAIN_DAYS_MIN`.
        TableHeldError: ``hold`` found that another job merges or deletes files of a table.
    """
    if days < RETAIN_DAYS_MIN:
        raise InputError(
            f"retention is {days} days; at least {RETAIN_DAYS_MIN} are needed, because rows "
            "follow from the day before"
        )
    now = SystemClock.wall_ns() if now_ns is None else now_ns
    before_hour = now // HOUR_NS - days * 24
    dropped = 0
    for name in table_names(root):
        log = followed(root, name)
        if not log.hours():
            continue  # it has no files, or is not partitioned by hour
        with log.lock:
            kept = kept_from_hour(log.delta)
        first = before_hour if kept is None else max(before_hour, kept)
        until = before_hour if dry_run else first
        old = len(log.files_of_hours(hour for hour in log.hours() if hour < until))
        if dry_run:
            dropped += old
        elif old:
            with hold(root, name):
                dropped += len(commit_drop(root, name, before_hour))
    return dropped

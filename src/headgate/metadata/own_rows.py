"""The rows that a broker keeps for itself: counters, identity, log time, settings.

The part of the catalog that is not about tenants and topics; see ``catalog`` for the life of a
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headgate.metadata.rows import CounterRow, IdentityRow, Kind, LogTimeRow, SettingRow
from headgate.metadata.state import Change, RowState

TOPIC_NUMBER: Final = "topic_number"
_MARK = "mark"
_IDENTITY = "data"


class OwnRows:
    """What a broker knows of itself; :class:`headgate.metadata.catalog.Catalog` adds the rest."""

    def __init__(self, stored: Mapping[tuple[str, str], bytes]) -> None:
        """Start from what a store holds.

        Raises:
            CorruptionError: a row cannot be read.
        """
        self._state = RowState(stored)
        self._number_last = self.topic_number_last
        """Also of topics whose creation is in flight or was abandoned."""

    @property
    def identity(self) -> IdentityRow:
        """What binds this metadata to their logs."""
        row = self._state.get(Kind.IDENTITY, _IDENTITY)
        return cast(IdentityRow, row or IdentityRow())

    @property
    def revision(self) -> int:
        """Grows with every change that becomes durable; 0 when there never was one."""
        return self._state.revision

    @property
    def topic_number_last(self) -> int:
        """The highest number that is durably given; the log has records of none beyond it."""
        counter = self._state.get(Kind.COUNTER, TOPIC_NUMBER)
        return counter.value if isinstance(counter, CounterRow) else 0

    def settings(self) -> dict[str, str]:
        """Dynamic settings that were overridden, with their texts."""
        rows = self._state.rows(Kind.SETTING)
        return {name: cast(SettingRow, rows[name]).value for name in sorted(rows)}

    def log_time(self) -> LogTimeRow | None:
        """What the time of the log goes on from; None before the first start that keeps it."""
        return cast(LogTimeRow | None, self._state.get(Kind.LOG_TIME, _MARK))

    def planned_settings(self) -> dict[str, str]:
        """The same as they will be once every change in flight is durable."""
        names = sorted(self._state.staged_children(Kind.SETTING, ""))
        rows = {name: self._state.staged(Kind.SETTING, name) for name in names}
        return {name: cast(SettingRow, row).value for name, row in rows.items()}

    def plan_identity(self, identity: IdentityRow, *, topic_number_min: int = 0) -> Change:
        """Set what binds the metadata to their logs; later topics get numbers beyond
        ``topic_number_min``."""
        self._number_last = max(self._number_last, topic_number_min)
        counter = CounterRow(self._number_last)
        return self._state.stage(
            [
                (Kind.IDENTITY, _IDENTITY, identity),
                (Kind.COUNTER, TOPIC_NUMBER, counter),
            ]
        )

    def plan_setting(self, name: str, value: str | None) -> Change:
        """Override a dynamic setting, or (``None``) go back to the start-up value.

        The caller has checked that the setting is dynamic and the value allowed.
        """
        return self._state.stage(
            [(Kind.SETTING, name, None if value is None else SettingRow(value))]
        )

    def plan_log_time(self, row: LogTimeRow) -> Change:
        """Keep what the next start finds the time of the log by."""
        return self._state.stage([(Kind.LOG_TIME, _MARK, row)])

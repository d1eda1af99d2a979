"""The broker's own rows: counters, identity, time of the log, dynamic settings.

These are the parts of the catalog beside tenants and topics; ``catalog`` describes the life of a
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headgate.base.errors import CorruptionError
from headgate.metadata.rows import (
    TOPIC_NUMBER_MAX,
    CounterRow,
    IdentityRow,
    Kind,
    LogTimeRow,
    SettingRow,
)
from headgate.metadata.state import Change, RowState

TOPIC_NUMBER: Final = "topic_number"
_MARK = "mark"
IDENTITY: Final = "data"


class TopicNumbers:
    """The topic numbers of one broker, also those whose topics were not created in the end."""

    def __init__(self, last: int) -> None:
        self.last = last
        """The highest assigned number."""

    def assign(self) -> int:
        """The next number."""
        self.last += 1
        return self.last

    def skip_to(self, number: int) -> None:
        """Assign only numbers above ``number``."""
        self.last = max(self.last, number)


class OwnRows:
    """The broker's own rows; :class:`headgate.metadata.catalog.Catalog` adds all others."""

    def __init__(self, stored: Mapping[tuple[str, str], bytes]) -> None:
        """Decode the rows of a store.

        Raises:
            CorruptionError: a row cannot be read.
        """
        self._state = RowState(stored)
        if self.topic_number_last > TOPIC_NUMBER_MAX:
            raise CorruptionError(
                f"the metadata say that topic number {self.topic_number_last} was given: "
                f"{TOPIC_NUMBER_MAX} is the highest"
            )
        self._numbers = TopicNumbers(self.topic_number_last)

    @property
    def identity(self) -> IdentityRow:
        """The identity that binds the metadata to its logs."""
        row = self._state.get(Kind.IDENTITY, IDENTITY)
        return cast(IdentityRow, row or IdentityRow())

    @property
    def revision(self) -> int:
        """A number that grows with every durable change; 0 if there never was one."""
        return self._state.revision

    @property
    def topic_number_last(self) -> int:
        """The highest topic number assigned durably; the log has no record of a higher one."""
        counter = self._state.get(Kind.COUNTER, TOPIC_NUMBER)
        return counter.value if isinstance(counter, CounterRow) else 0

    def settings(self) -> dict[str, str]:
        """The overridden dynamic settings and their texts."""
        rows = self._state.rows(Kind.SETTING)
        return {name: cast(SettingRow, rows[name]).value for name in sorted(rows)}

    def log_time(self) -> LogTimeRow | None:
        """The mark from which the time of the log continues; None before the first start."""
        return cast(LogTimeRow | None, self._state.get(Kind.LOG_TIME, _MARK))

    def planned_settings(self) -> dict[str, str]:
        """The overridden dynamic settings in the staged view."""
        names = sorted(self._state.staged_children(Kind.SETTING, ""))
        rows = {name: self._state.staged(Kind.SETTING, name) for name in names}
        return {name: cast(SettingRow, row).value for name, row in rows.items()}

    def plan_identity(self, identity: IdentityRow, *, topic_number_min: int = 0) -> Change:
        """Set the identity that binds the metadata to its logs. Later topics get numbers above
        ``topic_number_min``."""
        self._numbers.skip_to(topic_number_min)
        counter = CounterRow(self._numbers.last)
        return self._state.stage(
            [
                (Kind.IDENTITY, IDENTITY, identity),
                (Kind.COUNTER, TOPIC_NUMBER, counter),
            ]
        )

    def plan_setting(self, name: str, value: str | None) -> Change:
        """Override a dynamic setting, or (``None``) restore its start-up value.

        The caller has checked that the setting is dynamic and the value allowed.
        """
        return self._state.stage(
            [(Kind.SETTING, name, None if value is None else SettingRow(value))]
        )

    def plan_log_time(self, row: LogTimeRow) -> Change:
        """Store the mark from which the next start continues the time of the log."""
        return self._state.stage([(Kind.LOG_TIME, _MARK, row)])

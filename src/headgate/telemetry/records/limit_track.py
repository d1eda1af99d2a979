"""The limit of one subject in its telemetry rows: what is set, and its present amounts."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE, EffectiveLimit
from headgate.telemetry.records.names import PLAIN, Names


class LimitValues(NamedTuple):
    """The columns of the limit of one level."""

    messages: int | None
    bytes: int | None
    period_ns: int | None
    source: str | None


NO_LIMIT: Final = LimitValues(None, None, None, None)


def limit_values(effective: EffectiveLimit, names: Names = PLAIN) -> LimitValues:
    """The columns of an effective limit; its source may name a topic or namespace."""
    limit = effective.limit
    if limit is None:
        return NO_LIMIT
    source = names.limit_source(effective.source)
    if limit.relative or limit.base is not None:
        source += ABOVE_PUBLISH_RATE
    return LimitValues(limit.messages, limit.bytes, limit.period_ns, source)


class LimitChange(NamedTuple):
    """A change of the limit that is set."""

    at_ns: int
    before: LimitValues
    after: LimitValues


class LimitTrack:
    """The limit of one subject at one level, for its rows.

    ``values`` has its present amounts. ``moves`` says that the limit is relative to the publish
    rate, so that its amounts change while the same limit is set.
    """

    __slots__ = ("_is_known", "_set", "changed_ns", "moves", "values")

    def __init__(self, changed_ns: int) -> None:
        self.values = self._set = NO_LIMIT
        self._is_known = False
        self.moves = False
        self.changed_ns = changed_ns
        """When the limit may have changed, on the wall clock; 0 if not since the last row."""

    def change(self, effective: EffectiveLimit, names: Names = PLAIN) -> LimitChange | None:
        """Take over the limit that is set now. None if it is the same as before, or the first."""
        before, after = self._set, limit_values(effective, names)
        at_ns, self.changed_ns = self.changed_ns, 0
        was_known, self._is_known = self._is_known, True
        self._set = self.values = after
        self.moves = effective.limit is not None and effective.limit.relative
        return LimitChange(at_ns, before, after) if was_known and before != after else None

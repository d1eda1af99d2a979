"""The bound on lines of the audit log: some of each client in full, the rest as counts.

The law is arithmetic; time is an argument. In each window of :data:`WINDOW_NS` a source has
:data:`SOURCE_LINES` lines of its own, and all sources together :data:`WINDOW_LINES`; of changes of
the admin API there are more (:func:`change_limit`). What is beyond is counted by source. The counts
of :data:`SOURCES_MAX` sources are kept apart, those of further ones together, so that neither the
log nor the memory grows with what a client sends.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.base.units import NS_PER_S, S_PER_MINUTE

WINDOW_NS: Final = S_PER_MINUTE * NS_PER_S
SOURCE_LINES: Final = 10
WINDOW_LINES: Final = 60
SOURCES_MAX: Final = 20
CHANGE_SOURCE_LINES: Final = 500
CHANGE_LINES: Final = 1_000
"""The same of the changes of one role: a script that sets a tenant up has all of its lines. A line
has 1 KB at most, so a role that changes things all day makes 1.4 GB."""


class Source(NamedTuple):
    """What has lines of its own."""

    role: str
    host: str
    """The client's address without its port."""
    operation: str
    result: str


OTHERS: Final = Source("", "", "", "")
"""Stands for all sources beyond :data:`SOURCES_MAX`."""


class LineLimit:
    """Decides which entries are written."""

    def __init__(self, source_lines: int = SOURCE_LINES, window_lines: int = WINDOW_LINES) -> None:
        self._source_lines = source_lines
        self._window_lines = window_lines
        self._begin_ns = 0
        self._written: dict[Source, int] = {}
        self._lines = 0
        self._left_out: dict[Source, int] = {}

    @property
    def has_left_out(self) -> bool:
        """Whether :meth:`end_window` will return counts."""
        return bool(self._left_out)

    def allows(self, source: Source, now_ns: int) -> bool:
        """Whether an entry of ``source`` is written at ``now_ns``. If not, it is counted.

        A window that has ended without :meth:`end_window` keeps its counts for the next.
        """
        if now_ns - self._begin_ns >= WINDOW_NS:
            self._begin(now_ns)
        lines = self._written.get(source, 0)
        if lines < self._source_lines and self._lines < self._window_lines:
            self._written[source] = lines + 1
            self._lines += 1
            return True
        is_known = source in self._left_out or len(self._left_out) < SOURCES_MAX
        key = source if is_known else OTHERS
        self._left_out[key] = self._left_out.get(key, 0) + 1
        return False

    def end_window(self, now_ns: int) -> dict[Source, int]:
        """Begin a new window; returns how many entries of each source were not written."""
        left_out, self._left_out = self._left_out, {}
        self._begin(now_ns)
        return left_out

    def _begin(self, now_ns: int) -> None:
        self._begin_ns = now_ns
        self._written.clear()
        self._lines = 0


def change_limit() -> LineLimit:
    """That of the changes of one role."""
    return LineLimit(CHANGE_SOURCE_LINES, CHANGE_LINES)

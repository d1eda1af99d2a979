"""The base classes of derived tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import ClassVar, Final, Protocol

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.steps.hours import only_minutes
from headgate.pipeline.store.delta_log import TableFile, kept_from_hour
from headgate.pipeline.store.log_changes import SourceChange
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.pipeline.time_span import instant

PASS_HOURS: Final = 72
"""Most hours of a table in one pass, which is one commit. The look-back of its first hours adds to
what it reads."""


def passes(hours: Collection[int]) -> list[frozenset[int]]:
    """The hours in order, at most :data:`PASS_HOURS` together."""
    ordered = sorted(hours)
    return [frozenset(ordered[at : at + PASS_HOURS]) for at in range(0, len(ordered), PASS_HOURS)]


class SourceFiles(Protocol):
    """The live files of a source. ``FollowedLog`` is one."""

    def hours(self) -> list[int]:
        """The hours that have files, in order."""

    def files_of_hours(self, hours: Iterable[int]) -> list[TableFile]:
        """The live files of some hours."""


class DerivedTable(ABC):
    """One table that is computed from its source by the hour, or by minutes of it. Hours are
    counted since the epoch."""

    table: ClassVar[Table]
    look_back_hours: ClassVar[int]
    """How many hours of the source before its own an hour may depend on."""
    is_by_minute: ClassVar[bool] = False
    """Whether minutes of an hour can be computed and replaced without the others."""
    has_hour_rows: ClassVar[bool] = False
    """Whether a row has a whole hour. Then hours are replaced, though minutes are computed."""
    has_long_texts: ClassVar[bool] = False
    """Whether rows of the source may be so long that batches must be bounded by bytes."""
    is_in_input_order: ClassVar[bool] = False
    """Whether each row is made where its source row was read. Then rows come hour by hour, as the
    source's files are, and a write needs no shuffle."""

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.name

    @property
    def source(self) -> Table:
        """The table whose new rows change this one: the first that it follows from."""
        return TABLES[self.table.follows_from[0]]

    @abstractmethod
    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        """The minutes to compute again after a change of the source, from its live files."""

    @abstractmethod
    def inputs(self, live: SourceFiles, touched: TouchedMinutes) -> list[TableFile]:
        """The live files of the source that some minutes depend on."""

    def more_inputs(self, root: str, touched: TouchedMinutes) -> list[TableFile]:  # noqa: ARG002
        """The live files of another table that some minutes also depend on."""
        return []

    def read_for(
        self, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> list[TableFile]:
        """The files that :meth:`rows` reads, of all tables. Their size is the size of the work."""
        return [*files, *self.more_inputs(root, touched)]

    @abstractmethod
    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        """The rows of some minutes, from their :meth:`inputs`; None: there are none."""

    def computable(self, hours: Collection[int], source: DeltaTable) -> set[int]:
        """Those hours whose input retention has left whole; the others keep their rows."""
        first = kept_from_hour(source)
        return {hour for hour in hours if first is None or hour - self.look_back_hours >= first}

    def kept_rows_text(self, hours: Collection[int], source: DeltaTable) -> Iterator[str]:
        """A sentence about hours with rows that are not :meth:`computable`, if there are any."""
        kept = kept_from_hour(source)
        if hours and kept is not None:
            yield (
                f"{self.name} from {instant(min(hours) * HOUR_NS)} to "
                f"{instant((max(hours) + 1) * HOUR_NS)} keeps its rows: they follow from up to "
                f"{self.look_back_hours} h before them, and {self.source.name} is kept from "
                f"{instant(kept * HOUR_NS)} on."
            )


class NearInputs(DerivedTable):
    """A table whose minute follows from the source's same minute and a fixed number before it."""

    minutes_back: ClassVar[int]
    """How many minutes before its own a minute may depend on."""
    kinds: ClassVar[Collection[str] | None] = None
    """Kinds that are read of a source with partitions by kind; None: all."""

    def touched(self, root: str, change: SourceChange, live: SourceFiles) -> TouchedMinutes:
        del root
        later = change.minutes.widened(0, self.minutes_back)
        return later.only({*change.minutes, *live.hours()})

    def inputs(self, live: SourceFiles, touched: TouchedMinutes) -> list[TableFile]:
        needed = touched.widened(self.minutes_back, 0)
        return [
            file
            for file in live.files_of_hours(needed)
            if (self.kinds is None or file.partition["kind"] in self.kinds)
            and needed.overlaps(*file.span_ns)
        ]


class NearTable(NearInputs):
    """A table whose rows one step makes of the source's rows alone."""

    columns: ClassVar[Collection[str]]
    """What :meth:`step` reads of the source."""

    @abstractmethod
    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        """The rows of some hours, from the source's rows."""

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], touched: TouchedMinutes
    ) -> DataFrame | None:
        if not files:
            return None
        source = read_files(spark, root, self.source, files, self.columns)
        needed = touched.widened(self.minutes_back, 0)
        return only_minutes(self.step(only_minutes(source, needed), touched), touched)

"""The base classes of derived tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar, Final

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline.store.delta_log import TableFile, kept_from_hour
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.time_span import instant

PASS_HOURS: Final = 72
"""Most hours of a table in one pass, which is one commit. A pass holds a demonstrated rate for each
of its hours and subscriptions: 58 MB for 100,000 of them. The look-back of its first hours adds a
third to what it reads."""


def passes(hours: Collection[int]) -> list[frozenset[int]]:
    """The hours in order, at most :data:`PASS_HOURS` together."""
    ordered = sorted(hours)
    return [frozenset(ordered[at : at + PASS_HOURS]) for at in range(0, len(ordered), PASS_HOURS)]


class DerivedTable(ABC):
    """One table that is computed from its source by the hour. Hours are counted since the epoch."""

    table: ClassVar[Table]
    look_back_hours: ClassVar[int]
    """How many hours of the source before its own an hour may depend on."""
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
    def touched(
        self, root: str, new: Collection[TableFile], live: Collection[TableFile]
    ) -> set[int]:
        """The hours to recompute, from the new and the live files of the source."""

    @abstractmethod
    def inputs(self, live: Collection[TableFile], hours: Collection[int]) -> list[TableFile]:
        """The live files of the source that some hours depend on."""

    @abstractmethod
    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        """The rows of some hours, from their :meth:`inputs`; None: there are none."""

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


class HourlyInputs(DerivedTable):
    """A table whose hour follows from the source's same hour and a fixed number before it."""

    kinds: ClassVar[Collection[str] | None] = None
    """Kinds that are read of a source with partitions by kind; None: all."""

    def touched(
        self, root: str, new: Collection[TableFile], live: Collection[TableFile]
    ) -> set[int]:
        del root
        changed = {file.hour for file in new}
        back = range(1, self.look_back_hours + 1)
        return changed | {
            file.hour for file in live if any(file.hour - hours in changed for hours in back)
        }

    def inputs(self, live: Collection[TableFile], hours: Collection[int]) -> list[TableFile]:
        ahead = range(self.look_back_hours + 1)
        return [
            file
            for file in live
            if (self.kinds is None or file.partition["kind"] in self.kinds)
            and any(file.hour + later in hours for later in ahead)
        ]


class HourlyTable(HourlyInputs):
    """A table whose rows one step makes of the source's rows alone."""

    columns: ClassVar[Collection[str]]
    """What :meth:`step` reads of the source."""

    @abstractmethod
    def step(self, rows: DataFrame, hours: Collection[int]) -> DataFrame:
        """The rows of some hours, from the source's rows."""

    def rows(
        self, spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        if not files:
            return None
        return self.step(read_files(spark, root, self.source, files, self.columns), hours)

"""The options of reads with ``format("headgate_tables")``. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors, did_you_mean
from headgate.pipeline.location import checked_root
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES, SAMPLED_KINDS
from headgate.pipeline.tables.catalogue import TABLES, VIEWS
from headgate.pipeline.tables.columns import KIND, Table
from headgate.pipeline.tables.keys import ROW_KEYS
from headgate.pipeline.time_span import EVERYTHING, Span, parse_time

PARTITIONS_MAX: Final = 100_000
VERSION_MAX: Final = (1 << 63) - 1
DELAY_MINUTES_MAX: Final = 1_440

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
CHANGE: Final = "change"
"""The column that a stream adds to those of the table."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option, for the reference."""

    name: str
    default: str
    allowed: str
    meaning: str
    reads: Literal["both", "batch", "stream"] = "both"


OPTIONS: Final = (
    OptionInfo("path", "required", "a path or `s3://BUCKET/PREFIX`", "Folder of the tables."),
    OptionInfo("table", "required", "a name of this page", "The table to read."),
    OptionInfo(
        "columns", "all", "names with commas between them",
        "Only these columns. Spark does not tell a Python source which columns a query uses, so"
        " name them where a table is wide.",
    ),
    OptionInfo(
        "since", "the beginning", "a time with its offset, or an age such as `2h`",
        "Only rows of this time or later, by whole minutes; files of other hours are not read.",
        "batch",
    ),
    OptionInfo(
        "until", "the end", "as since", "Only rows before this time, by whole minutes.", "batch",
    ),
    OptionInfo(
        "kinds", "all", "subscription, topic, limiter, batch, with commas between them",
        "Only rows of these kinds, in a table with the column kind.", "batch",
    ),
    OptionInfo(
        "pushFilters", "`false`", "true or false",
        "Let the query's filters select files, row groups and rows. Only for a DataFrame that one"
        " query filters once: Spark 4.3 keeps one plan of a Python source for all uses of a"
        " DataFrame or view, so a second use would have the filters of the first. Needs the"
        " setting `spark.sql.python.filterPushdown.enabled`, which `register` sets.",
        "batch",
    ),
    OptionInfo(
        "versionAsOf", "newest", "0 or a later version",
        "Read this version of the table.", "batch",
    ),
    OptionInfo(
        "timestampAsOf", "newest", "a time with its offset, or an age such as `2h`",
        "Read the version that was the newest at this time; not together with versionAsOf.",
        "batch",
    ),
    OptionInfo(
        "minPartitions", "1", f"1 to {PARTITIONS_MAX}",
        "Least number of tasks, if there are as many files. By default a task reads 16 MiB of"
        " files.", "batch",
    ),
    OptionInfo(
        "readChangeFeed", "`false`", "true or false",
        "Required for a stream: true adds the column `change`. Tables with minutes have it.",
    ),
    OptionInfo(
        "startingFrom", f"`{EARLIEST}`", f"{EARLIEST} or {LATEST}",
        "Whether a new stream begins with the rows that the table has, or with the next change.",
        "stream",
    ),
    OptionInfo(
        "delayMinutes", "2", f"0 to {DELAY_MINUTES_MAX}",
        "A minute is closed when the table has a minute that ends so much later.", "stream",
    ),
)  # fmt: skip
"""All options of reads. Spark ignores the case of their names."""

_USUAL: Final = {option.name.lower(): option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options of a read, with their defaults."""

    root: str
    table: Table
    columns: tuple[str, ...]
    """In the order of the table."""
    version: int | None = None
    at_ns: int | None = None
    """Read the version of this instant; at most one of this and ``version``."""
    partitions_min: int = 1
    span: Span = EVERYTHING
    kinds: tuple[str, ...] = ()
    """Empty: all."""
    pushes_filters: bool = False
    starts_latest: bool = False
    delay_minutes: int = 2


def reads_changes(options: Mapping[str, str]) -> bool:
    """Whether the options ask for the change feed.

    Raises:
        InputError: the option is neither true nor false.
    """
    text = next((v for k, v in options.items() if k.lower() == "readchangefeed"), "false")
    return _flag("readChangeFeed")(text.strip())


def parse_options(options: Mapping[str, str], now_ns: int) -> ReadOptions:
    """The options of a read. ``now_ns``: the time from which an age counts.

    With the change feed those of a stream are allowed, otherwise those of a batch.

    Raises:
        InputError: with a line for each fault, which names option, value and what is allowed.
    """
    faults = InputErrors()
    given: dict[str, str] = {}
    is_stream = reads_changes(options)
    for key, value in options.items():
        info = _USUAL.get(key.lower())
        if info is None:
            faults.add(f"unknown option {key}{did_you_mean(key, (o.name for o in OPTIONS))}")
        elif info.reads not in ("both", "stream" if is_stream else "batch"):
            faults.add(f"option {info.name} is for {info.reads} reads only")
        else:
            given[info.name] = value.strip()
    read = _Reader(given, faults)
    root = read.value("path", checked_root)
    table = read.value("table", _stream_table if is_stream else _table)
    at_ns = read.value(
        "timestampAsOf", lambda text: parse_time(text, now_ns, "option timestampAsOf")
    )
    if "versionAsOf" in given and at_ns is not None:
        faults.add("options versionAsOf and timestampAsOf exclude each other: leave one out")
    span = _span(read, now_ns)
    pushes = read.value("pushFilters", _flag("pushFilters"))
    kinds = None if table is None else read.value("kinds", lambda text: _kinds(text, table))
    columns = None if table is None else read.value("columns", lambda text: _columns(text, table))
    version = read.value("versionAsOf", _number("versionAsOf", 0, VERSION_MAX))
    partitions = read.value("minPartitions", _number("minPartitions", 1, PARTITIONS_MAX))
    delay = read.value("delayMinutes", _number("delayMinutes", 0, DELAY_MINUTES_MAX))
    starts = read.value("startingFrom", _start)
    for name in ("path", "table"):
        if name not in given:
            faults.add(f"option {name} is required")
    faults.raise_any()
    if root is None or table is None:
        raise InputError("options path and table are required")
    return ReadOptions(
        root,
        table,
        table.column_names() if columns is None else columns,
        version,
        at_ns,
        1 if partitions is None else partitions,
        EVERYTHING if span is None else span,
        kinds or (),
        bool(pushes),
        starts == LATEST,
        2 if delay is None else delay,
    )


class _Reader:
    """Reads the values of options and collects their faults."""

    def __init__(self, given: Mapping[str, str], faults: InputErrors) -> None:
        self._given = given
        self.faults = faults

    def value(self, name: str, parse: Callable[[str], _T]) -> _T | None:
        """The value of an option; None if it is absent or at fault."""
        if name not in self._given:
            return None
        with self.faults.collecting():
            return parse(self._given[name])
        return None


def _table(name: str) -> Table:
    if name in VIEWS:
        raise InputError(
            f"option table={name!r} is a view and no table: headgate pipeline views prints its SQL"
        )
    if name not in TABLES:
        raise InputError(
            f"option table={name!r} is no table{did_you_mean(name, TABLES) or ':'} "
            f"{', '.join(TABLES)} are allowed"
        )
    return TABLES[name]


def _stream_table(name: str) -> Table:
    table = _table(name)
    if name not in ROW_KEYS:
        raise InputError(
            f"option table={name!r} cannot be streamed by minutes: {', '.join(ROW_KEYS)} are "
            "allowed"
        )
    return table


def _columns(text: str, table: Table) -> tuple[str, ...]:
    wanted = [part.strip() for part in text.split(",")]
    known = table.column_names()
    for name in wanted:
        if name not in known:
            raise InputError(
                f"option columns={text!r}: {table.name} has no column {name!r}"
                f"{did_you_mean(name, known) or ':'} {', '.join(known)} are allowed"
            )
    if len(set(wanted)) != len(wanted):
        raise InputError(f"option columns={text!r} names a column twice; once is allowed")
    return tuple(name for name in known if name in wanted)


def _span(read: _Reader, now_ns: int) -> Span | None:
    since_ns = read.value("since", lambda text: parse_time(text, now_ns, "option since"))
    until_ns = read.value("until", lambda text: parse_time(text, now_ns, "option until"))
    if since_ns is not None and until_ns is not None and since_ns >= until_ns:
        read.faults.add("option since does not lie before option until: a range is needed")
        return None
    return Span(since_ns, until_ns)


def _kinds(text: str, table: Table) -> tuple[str, ...]:
    allowed = [kind.value for kind in SAMPLED_KINDS]
    if KIND.name not in table.column_names():
        raise InputError(
            f"option kinds={text!r}: {table.name} has no column kind; leave the option out"
        )
    if table is BRONZE_SAMPLES:
        allowed.append(BATCH_KIND)
    wanted = tuple(part.strip() for part in text.split(","))
    for kind in wanted:
        if kind not in allowed:
            raise InputError(f"option kinds={text!r}: {', '.join(allowed)} are allowed")
    return wanted


def _flag(name: str) -> Callable[[str], bool]:
    def parse(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"option {name}={text!r}: true or false is allowed")
        return text.lower() == "true"

    return parse


def _number(name: str, least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise InputError(
                f"option {name}={text!r}: a whole number from {least} to {most} is allowed"
            )
        return int(text)

    return parse


def _start(text: str) -> str:
    if text not in (EARLIEST, LATEST):
        raise InputError(f"option startingFrom={text!r}: {EARLIEST} or {LATEST} is allowed")
    return text

"""Resolves the options for start and end to positions of partitions.

A message id in ``startingOffsets`` is the first message to read, and one in ``endingOffsets`` the
last. With ``earliest`` and ``latest``, the name of a topic stands for all its partitions. A message
id belongs to one partition and needs the name of that partition.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark_pulsar.errors import OffsetError, TopicNotFoundError
from pyspark_pulsar.offsets import Position, earliest, parse_position
from pyspark_pulsar.options import EARLIEST, LATEST, StartOrEnd
from pyspark_pulsar.ranges import TopicSnapshot, end_position, stored_end

_PARTITION_MARK = "-partition-"
_EMPTY = TopicSnapshot((), None)


def require_topics(partitions: Mapping[str, Sequence[str]], known: Iterable[str] = ()) -> None:
    """Raise :class:`TopicNotFoundError` for topics without partitions: they do not exist.

    A topic that is ``known``, or has a known partition, is exempt: it existed before.
    """
    exempt = {each for name in known for each in (name, topic_of(name))}
    missing = [topic for topic, names in partitions.items() if not names and topic not in exempt]
    if missing:
        raise TopicNotFoundError("; ".join(f"{topic} does not exist" for topic in missing))


def require_snapshots(
    topics: Sequence[str], snapshots: Mapping[str, TopicSnapshot | None]
) -> dict[str, TopicSnapshot]:
    """``snapshots`` with an empty snapshot for each partition that has never been used.

    Raises :class:`TopicNotFoundError` for a topic without partitions that does not exist.
    """
    for topic in topics:
        if topic in snapshots and snapshots[topic] is None:
            raise TopicNotFoundError(f"{topic} does not exist")
    return {name: snapshot or _EMPTY for name, snapshot in snapshots.items()}


def resolve_start(
    start: StartOrEnd | Mapping[str, Position], snapshots: Mapping[str, TopicSnapshot]
) -> dict[str, Position]:
    """The position after which the query reads each partition, at most the end of what it stores:
    that may be behind a transaction that has not ended, of which the query then reads nothing.

    Raises :class:`OffsetError` if a map names a topic that is not read, or omits one.
    """
    return _resolve("startingOffsets", start, snapshots, included=False)


def resolve_end(
    end: StartOrEnd | Mapping[str, Position], snapshots: Mapping[str, TopicSnapshot]
) -> dict[str, Position]:
    """The position up to which the query reads each partition, at most its end.

    Raises :class:`OffsetError` if a map names a topic that is not read, or omits one.
    """
    return _resolve("endingOffsets", end, snapshots, included=True)


def _resolve(
    option: str,
    place: StartOrEnd | Mapping[str, Position | str],
    snapshots: Mapping[str, TopicSnapshot],
    *,
    included: bool,
) -> dict[str, Position]:
    if not isinstance(place, str):
        known = set(snapshots) | {topic_of(name) for name in snapshots}
        foreign = sorted(set(place) - known)
        if foreign:
            raise OffsetError(
                f"{option} names {', '.join(foreign)}, which this query does not read"
            )
    resolved: dict[str, Position] = {}
    for name, snapshot in snapshots.items():
        tail = end_position(name, snapshot)
        own = place if isinstance(place, str) else place.get(name, place.get(topic_of(name)))
        if own is None:
            raise OffsetError(f"{option} has no position for {name}")
        position = _position(option, own, name, tail, included=included)
        limit = tail if included else stored_end(name, snapshot)
        resolved[name] = min(position, limit, key=lambda each: each.order_key)
    return resolved


def _position(
    option: str, own: str | Position, name: str, tail: Position, *, included: bool
) -> Position:
    if isinstance(own, Position):
        return own
    if own == EARLIEST:
        return earliest(name)
    if own == LATEST:
        return tail
    try:
        position = parse_position(own, name)
    except OffsetError as error:
        raise OffsetError(f"{option}: {error}") from error
    return position if included else position.before()


def topic_of(name: str) -> str:
    """The topic of a partition; the name itself if it is no partition."""
    return name.rpartition(_PARTITION_MARK)[0] or name

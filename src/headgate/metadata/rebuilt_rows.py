"""Rows for metadata that are rebuilt from its copy and from what the logs tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from headgate.base.names import NamespaceName
from headgate.metadata.catalog import Catalog
from headgate.metadata.own_rows import IDENTITY, TOPIC_NUMBER
from headgate.metadata.rows import CounterRow, IdentityRow, Kind, TopicRow
from headgate.metadata.state import REVISION

Rows = dict[tuple[str, str], bytes]
RECOVERED: Final = NamespaceName("public", "recovered")
"""The namespace of topics whose names are lost."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a log tells about the metadata that it belonged to."""

    name: str
    """The log's name in the metadata's identity."""
    topics_in: str
    """The log's name in the rows of its topics: empty for the main log."""
    data_id: str
    """The id in its identity; empty without one."""
    starts: int
    revision: int
    topic_number: int
    numbers: frozenset[int]
    """Numbers of the topics that have records or subscriptions in it."""


@dataclass(frozen=True, slots=True)
class RebuiltRows:
    """Metadata that belong to the logs."""

    rows: Rows
    made_names: dict[int, str] = field(default_factory=dict)
    """Names that were made for topics of unknown names, by number."""
    changes_lost: int = 0
    """Changes that the logs know of and the copy lacks."""


def catalog_of(rows: Mapping[tuple[str, str], bytes]) -> Catalog:
    """A catalog of these rows, of whatever cluster. Raises :class:`CorruptionError`."""
    cluster = next((key for kind, key in rows if kind == Kind.CLUSTER), "")
    return Catalog(cluster, rows)


def rebuild_rows(
    copied: Mapping[tuple[str, str], bytes] | None,
    logs: Sequence[LogFacts],
    *,
    cluster: str,
    now_ms: int,
) -> RebuiltRows:
    """Rows that a start accepts beside ``logs``.

    ``copied`` are the rows of the copy; without them only a new broker's tenants and namespaces
    are there, of ``cluster``. A topic gets a made name if a log has its number and the copy was
    written before that number was given. Numbers that the copy knows as given and that it has no
    topic of are deleted topics. Raises :class:`CorruptionError` if a row cannot be read.
    """
    catalog = catalog_of(copied) if copied else Catalog(cluster, {})
    rows: Rows = dict(copied or {})
    revision = catalog.revision
    known = max((log.revision for log in logs), default=0)
    number_last = catalog.topic_number_last
    made = {n: log for log in logs for n in sorted(log.numbers) if n > number_last}
    first = catalog.plan_first_boot(system_namespaces=[RECOVERED] if made else [])
    for write in () if first is None else first.writes:
        if write.value is not None:
            rows[write.kind, write.key] = write.value
    names = {}
    for number, log in made.items():
        name = f"persistent://{RECOVERED}/topic-{number}"
        while (Kind.TOPIC, name) in rows:
            name += "-recovered"
        row = TopicRow(name=name, number=number, created_ms=now_ms, log=log.topics_in)
        rows[Kind.TOPIC, name] = _encode(row)
        names[number] = name
    before = catalog.identity
    data_ids = [log.data_id for log in logs if log.data_id]
    identity = IdentityRow(
        data_id=data_ids[0] if data_ids else before.data_id,
        starts_by_log={
            **before.starts_by_log,
            **{
                log.name: max(log.starts, before.starts_by_log.get(log.name, 0))
                for log in logs
                if log.data_id
            },
        },
    )
    rows[Kind.IDENTITY, IDENTITY] = _encode(identity)
    highest = max([number_last, *made, *(log.topic_number for log in logs)])
    rows[Kind.COUNTER, TOPIC_NUMBER] = _encode(CounterRow(highest))
    rows[Kind.COUNTER, REVISION] = _encode(CounterRow(max(revision, known) + 1))
    by_text = {(str(kind), key): value for (kind, key), value in rows.items()}
    return RebuiltRows(by_text, names, max(known - revision, 0))

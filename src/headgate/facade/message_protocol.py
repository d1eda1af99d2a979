"""Single messages and the stored entries of topics, as the admin API uses them.

The rules of :mod:`headgate.facade.protocol` hold: topics are partitions or not partitioned, and a
method that cannot do its work raises :class:`RefusalError`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msgspec import UNSET, Struct, UnsetType

from headgate.base.names import TopicName
from headgate.base.positions import Position
from headgate.broker.entries import Reserve, StoredEntry, uncharged


class PlacedEntry(NamedTuple):
    """An entry, and its position."""

    position: Position
    entry: StoredEntry


class BacklogAnalysis(Struct, rename="camel", kw_only=True):
    """What a subscription has not acknowledged, in Pulsar's fields.

    There are no entry filters, so all entries count as accepted, and no entry is a marker.
    """

    entries: int = 0
    messages: int = 0
    marker_messages: int = 0
    filter_rejected_entries: int = 0
    filter_accepted_entries: int = 0
    filter_rescheduled_entries: int = 0
    filter_rejected_messages: int = 0
    filter_accepted_messages: int = 0
    filter_rescheduled_messages: int = 0
    aborted: bool = False
    """Whether the count ended early; it never does."""
    first_message_id: str | UnsetType = UNSET
    last_message_id: str | UnsetType = UNSET


class MessageOperations(Protocol):
    """What the admin API asks about stored messages."""

    async def analyze_backlog(
        self, topic: TopicName, subscription: str, start: Position | None, *, excluded: bool
    ) -> BacklogAnalysis:
        """Count what a subscription has not acknowledged, from ``start`` on (None: all); with
        ``excluded`` from behind it.

        Raises:
            RefusalError: 404 without the subscription.
        """

    async def peek(
        self, topic: TopicName, subscription: str, number: int, reserve: Reserve = uncharged, /
    ) -> PlacedEntry:
        """The ``number``-th entry, from 1 on, that a subscription has not acknowledged.

        Raises:
            RefusalError: 404 without the subscription, or if it has fewer.
        """

    async def examine(
        self, topic: TopicName, number: int, reserve: Reserve = uncharged, /, *, from_end: bool
    ) -> PlacedEntry:
        """The ``number``-th entry of a topic, from 1 on; ``from_end`` counts from the last one.

        Raises:
            RefusalError: 412 if the topic holds none, 404 if it holds fewer.
        """

    async def bytes_from(self, topic: TopicName, position: Position) -> int:
        """Bytes of the entries at and behind a position."""

    async def trim(self, topic: TopicName) -> None:
        """Trim what neither a subscription nor retention needs, without waiting for the sweep."""

    async def truncate(self, topic: TopicName) -> None:
        """Skip all messages of all subscriptions, and remove them whatever retention says. Messages
        that are published meanwhile stay."""

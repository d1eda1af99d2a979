"""Changes of topics, validated and staged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import cast

import msgspec

from headgate.base.names import TopicName
from headgate.metadata.checks import check_partition_count, check_partition_name
from headgate.metadata.errors import (
    TooManyTopicsError,
    conflict,
    no_memory_reason,
    not_allowed,
    not_found,
)
from headgate.metadata.own_rows import TOPIC_NUMBER, TopicNumbers
from headgate.metadata.property_plans import checked_properties
from headgate.metadata.rows import (
    CounterRow,
    IdleSubscriptionsRow,
    Kind,
    PartitionedRow,
    TopicRow,
)
from headgate.metadata.schema_plans import removed_schemas, schemas_taken_over
from headgate.metadata.staged_rows import (
    NO_PROPERTIES,
    RowValues,
    staged_namespace,
    staged_open_namespace,
    topic_exists,
)
from headgate.metadata.state import Change, RowState, parent_of


class TopicPlans:
    """Plans changes of topics, and assigns their numbers."""

    def __init__(
        self,
        state: RowState,
        numbers: TopicNumbers,
        topic_by_number: Callable[[int], TopicRow | None],
    ) -> None:
        """``topic_by_number`` looks a topic up in the durable view."""
        self._state = state
        self._numbers = numbers
        self._topic_by_number = topic_by_number
        self._log_by_name: dict[str, str] = {}
        """Logs of topics to be created with these names; all others are in the main log."""
        self._topics_max: Callable[[int | None], int] = lambda policy: policy or 0
        self._exempt: Collection[str] = ()
        self._check_added: Callable[[TopicName, int], None] = lambda _, __: None

    def keep_in(self, topic: TopicName, log: str) -> None:
        """Create a topic of this name in a log other than the main one from now on."""
        self._log_by_name[topic.full] = log

    def limit_topics(
        self, topics_max: Callable[[int | None], int], exempt: Collection[str]
    ) -> None:
        """Limit the topics of each namespace to ``topics_max(policy)``, where ``policy`` is the
        limit that its policies set, if any; 0 is no limit. The topics that ``exempt`` names do not
        count."""
        self._topics_max = topics_max
        self._exempt = exempt

    def limit_partitions(self, check: Callable[[TopicName, int], None]) -> None:
        """Have ``check`` raise a refusal unless a partitioned topic may get so many partitions
        more, each of which gets the subscriptions of the others."""
        self._check_added = check

    def plan_create_topic(
        self, topic: TopicName, *, now_ms: int, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> Change:
        """Create a topic that holds messages. The change has its row, of kind ``TOPIC``.

        Raises:
            RefusalError: 404 without its namespace, 409 if it exists, 412 for a partition that
                its partitioned topic does not have, for too many bytes of properties, or if the
                namespace has too many topics, or the partition would get too many subscriptions.
        """
        staged_open_namespace(self._state, topic.namespace)
        base = None
        if topic.partition >= 0:
            base = self._state.staged(Kind.PARTITIONED, topic.base.full)
            check_partition_name(topic, cast(PartitionedRow | None, base))
        if topic_exists(self._state, topic.full):
            raise conflict("This topic already exists")
        self._check_topic_count([topic])
        lacks_subscriptions = base is not None
        if lacks_subscriptions:
            self._check_added(topic.base, 1)
        return self._state.stage(
            self._new_topics([topic], now_ms, properties, lacks_subscriptions=lacks_subscriptions)
        )

    def plan_move_topic(self, topic: TopicName, log: str) -> Change:
        """Record that another log holds a topic's messages from now on.

        Raises:
            RefusalError: 404 if there is no such topic.
        """
        row = self._state.staged(Kind.TOPIC, topic.full)
        if row is None:
            raise not_found(f"Topic {topic} not found")
        moved = msgspec.structs.replace(cast(TopicRow, row), log=log)
        return self._state.stage([(Kind.TOPIC, topic.full, moved)])

    def plan_topic_epoch(self, number: int, epoch: int) -> Change:
        """Record the topic epoch of a new exclusive producer of the topic with this number.

        Raises:
            RefusalError: 404 if there is no such topic any more.
        """
        row = msgspec.structs.replace(self._staged_topic(number), epoch=epoch)
        return self._state.stage([(Kind.TOPIC, row.name, row)])

    def plan_terminate(self, number: int) -> Change:
        """Record that the topic with this number takes no more messages.

        Raises:
            RefusalError: 404 if there is no such topic any more.
        """
        row = msgspec.structs.replace(self._staged_topic(number), terminated=True)
        return self._state.stage([(Kind.TOPIC, row.name, row)])

    def _staged_topic(self, number: int) -> TopicRow:
        topic = self._topic_by_number(number)
        row = None if topic is None else self._state.staged(Kind.TOPIC, topic.name)
        if not isinstance(row, TopicRow) or row.number != number:
            raise not_found("Topic not found")
        return row

    def plan_create_partitioned(
        self,
        topic: TopicName,
        partitions: int,
        *,
        now_ms: int,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Change:
        """Create a partitioned topic and all its partitions.

        Raises:
            RefusalError: 404 without its namespace, 406 for the count, 409 if it exists, 412 if
                it is named like a partition, for too many bytes of properties, or if the namespace
                has too many topics or its partitions would get too many subscriptions.
        """
        if topic.partition >= 0:
            raise not_allowed("Partitioned Topic Name should not contain '-partition-'")
        check_partition_count(partitions)
        staged_open_namespace(self._state, topic.namespace)
        if topic_exists(self._state, topic.full):
            raise conflict("This topic already exists")
        row = PartitionedRow(
            partitions=partitions, created_ms=now_ms, properties=checked_properties(properties)
        )
        names = [topic.partition_name(index) for index in range(partitions)]
        missing = [name for name in names if self._state.staged(Kind.TOPIC, name.full) is None]
        self._check_topic_count(missing)
        lacks_subscriptions = len(missing) < partitions
        if missing and lacks_subscriptions:
            self._check_added(topic, len(missing))
        new = self._new_topics(missing, now_ms, {}, lacks_subscriptions=lacks_subscriptions)
        schemas = schemas_taken_over(self._state, topic.full, [name.full for name in names])
        return self._state.stage([(Kind.PARTITIONED, topic.full, row), *new, *schemas])

    def plan_grow_partitioned(self, topic: TopicName, partitions: int, *, now_ms: int) -> Change:
        """Add partitions up to a new count; create missing ones again.

        Raises:
            RefusalError: 406 for the count, 409 if the topic is not partitioned, 412 if the
                namespace has too many topics or the new partitions would get too many
                subscriptions, 422 for fewer partitions than it has.
        """
        check_partition_count(partitions)
        row = cast(PartitionedRow | None, self._state.staged(Kind.PARTITIONED, topic.full))
        if row is None:
            raise conflict(f"Topic {topic} is not the partitioned topic.")
        check_partition_count(partitions, at_least=row.partitions)
        staged_open_namespace(self._state, topic.namespace)
        names = [topic.partition_name(index) for index in range(partitions)]
        missing = [name for name in names if self._state.staged(Kind.TOPIC, name.full) is None]
        self._check_topic_count(missing)
        if missing:
            self._check_added(topic, len(missing))
        grown = msgspec.structs.replace(row, partitions=partitions)
        new = self._new_topics(missing, now_ms, {}, lacks_subscriptions=True)
        return self._state.stage([(Kind.PARTITIONED, topic.full, grown), *new])

    def plan_subscriptions_complete(self, numbers: Iterable[int]) -> Change | None:
        """Record that these partitions, by number, have all subscriptions of the older ones.
        ``None`` if all of them are recorded."""
        rows: RowValues = []
        for number in numbers:
            topic = self._topic_by_number(number)
            row = None if topic is None else self._state.staged(Kind.TOPIC, topic.name)
            if isinstance(row, TopicRow) and row.number == number and row.lacks_subscriptions:
                rows.append(
                    (Kind.TOPIC, row.name, msgspec.structs.replace(row, lacks_subscriptions=False))
                )
        return self._state.stage(rows) if rows else None

    def plan_delete_topic(self, topic: TopicName, *, keeps_grants: bool = False) -> Change:
        """Delete a topic, or a partitioned topic with all its partitions, its policies and, unless
        ``keeps_grants``, the grants on it.

        Deleting one partition of a partitioned topic leaves the others and the policies.

        Raises:
            RefusalError: 404.
        """
        rows: RowValues = []
        partitioned = cast(PartitionedRow | None, self._state.staged(Kind.PARTITIONED, topic.full))
        if partitioned is not None:
            rows.append((Kind.PARTITIONED, topic.full, None))
            names = [topic.partition_name(i).full for i in range(partitioned.partitions)]
        else:
            names = [topic.full]
        rows += [(Kind.TOPIC, n, None) for n in names if self._state.staged(Kind.TOPIC, n)]
        if not rows:
            raise not_found(f"Topic {topic} not found")
        own = {topic.full: None} | dict.fromkeys(names)
        kinds = [Kind.TOPIC_POLICIES, Kind.IDLE_SUBSCRIPTIONS]
        for kind in kinds if keeps_grants else [*kinds, Kind.TOPIC_GRANTS]:
            rows += [(kind, n, None) for n in own if self._state.staged(kind, n) is not None]
        for name in own:
            rows += removed_schemas(self._state, name)
        return self._state.stage(rows)

    def plan_idle_subscriptions(self, rows: Mapping[str, IdleSubscriptionsRow]) -> Change:
        """Store which subscriptions of topics, by full name, have no consumers. Topics that do not
        exist are left out; an empty row removes a topic's."""
        staged = self._state.staged
        return self._state.stage(
            [
                (Kind.IDLE_SUBSCRIPTIONS, name, row if row.since_ms else None)
                for name, row in rows.items()
                if staged(Kind.TOPIC, name) is not None
            ]
        )

    def plan_subscriptions_used(self, topic: str, subscriptions: Iterable[str]) -> Change:
        """Forget since when subscriptions of a topic, by full name, have no consumer."""
        row = cast(IdleSubscriptionsRow | None, self._state.staged(Kind.IDLE_SUBSCRIPTIONS, topic))
        since_ms = {} if row is None else dict(row.since_ms)
        for subscription in subscriptions:
            since_ms.pop(subscription, None)
        return self.plan_idle_subscriptions({topic: IdleSubscriptionsRow(since_ms)})

    def _check_topic_count(self, new: list[TopicName]) -> None:
        """Return if ``new`` topics of one namespace may be created.

        Raises:
            TooManyTopicsError: the namespace would have more topics than it may.
            RefusalError: the memory of the process has no room for more of its tenant.
        """
        counted = [topic for topic in new if topic.full not in self._exempt]
        if not counted:
            return
        if not self._state.memory_room.may_keep_more(counted[0].tenant):
            raise not_allowed(no_memory_reason(counted[0].tenant))
        state, parent = self._state, parent_of(Kind.TOPIC, counted[0].full)
        policies = staged_namespace(state, counted[0].namespace).policies
        count_max = self._topics_max(policies.max_topics_per_namespace)
        if count_max <= 0:
            return
        exempt = sum(
            state.staged(Kind.TOPIC, name) is not None
            for name in self._exempt
            if parent_of(Kind.TOPIC, name) == parent
        )
        if state.staged_count(Kind.TOPIC, parent) - exempt + len(counted) > count_max:
            raise TooManyTopicsError

    def _new_topics(
        self,
        names: list[TopicName],
        now_ms: int,
        properties: Mapping[str, str],
        *,
        lacks_subscriptions: bool = False,
    ) -> RowValues:
        """Rows of new topics, and the counter that keeps their numbers from being reused."""
        if not names:
            return []
        rows: RowValues = []
        for name in names:
            row = TopicRow(
                name=name.full,
                number=self._numbers.assign(),
                created_ms=now_ms,
                properties=checked_properties(properties),
                lacks_subscriptions=lacks_subscriptions,
                log=self._log_by_name.get(name.full, ""),
            )
            rows.append((Kind.TOPIC, name.full, row))
        rows.append((Kind.COUNTER, TOPIC_NUMBER, CounterRow(self._numbers.last)))
        return rows

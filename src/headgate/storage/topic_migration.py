"""Moves a topic that an earlier release stored in the main log to its separate log.

The start copies the topic. When the copy is durable, the topic's row in the metadata names the new
log. A crash before that leaves garbage in the new log, and the next start copies again.
"""

from __future__ import annotations

import logging

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.names import TopicName
from headgate.ledger import CommitLog, copy_topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.store import MetadataStore
from headgate.storage.managed_logs import TELEMETRY_LOG

logger = logging.getLogger("headgate.broker")


def migrate_topic(
    catalog: Catalog, store: MetadataStore, main: CommitLog, log: CommitLog, topic: TopicName
) -> None:
    """Move a topic out of the main log. If that is not possible it stays there, with a log line.
    Blocks; the caller must have exclusive use of the stores.

    Raises:
        StorageError: the metadata could not be stored.
    """
    row = catalog.topic(topic.full)
    if row is None or row.log:
        return
    try:
        entries = copy_topic(main, log, row.number)
    except (StorageError, CorruptionError) as error:
        logger.warning(
            "%s stays in the main log until the next start: it could not be moved to its separate "
            "log: %s",
            topic,
            error,
        )
        return
    change = catalog.plan_move_topic(topic, TELEMETRY_LOG)
    store.commit(change.writes)
    catalog.apply(change)
    main.drop_topic(row.number)
    logger.info(
        "%s has a separate log from now on, %s: %d entries were moved there",
        topic,
        TELEMETRY_LOG,
        entries,
    )

"""The log of the telemetry topic, separate so that it pins no segment of other topics.

Telemetry is no data of users. If its log is too damaged for a start, the broker moves it aside and
begins a new one.

Earlier releases kept the telemetry in the main log. A start moves it (see
headgate.storage.topic_migration).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from headgate.app.data_directory import DataDirectory
from headgate.app.open_stores import open_log
from headgate.base.clock import Clock
from headgate.base.errors import CorruptionError, StorageError
from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_MS
from headgate.ledger import CommitLog, LedgerSettings
from headgate.metadata.catalog import Catalog
from headgate.metadata.store import MetadataStore
from headgate.policy.settings import Settings
from headgate.storage.managed_logs import TELEMETRY_LOG
from headgate.storage.store_binding import accept_log_loss, forget_accepted_loss
from headgate.storage.topic_migration import migrate_topic

logger = logging.getLogger("headgate.app")

SEGMENT_BYTES: Final = 8 * MIB
"""Some hours of telemetry: retention trims in steps of this."""


def has_telemetry_log(catalog: Catalog, settings: Settings) -> bool:
    """Whether the data directory has one or gets one at this start."""
    return TELEMETRY_LOG in catalog.identity.starts_by_log or settings.headgateTelemetryEnabled


def open_telemetry_log(
    directory: DataDirectory,
    catalog: Catalog,
    store: MetadataStore,
    clock: Clock,
    settings: Settings,
    main: CommitLog,
    main_settings: LedgerSettings,
) -> CommitLog | None:
    """The telemetry log with all telemetry in it; None when there is none, and none is published
    or the disk has no room for it. Blocks.

    Raises as :func:`headgate.app.open_stores.open_log`.
    """
    if not has_telemetry_log(catalog, settings):
        return None
    own = replace(main_settings, segment_bytes=SEGMENT_BYTES)
    try:
        try:
            log = open_log(directory, catalog, store, clock, own, TELEMETRY_LOG)
        except CorruptionError as error:
            _move_aside(directory, catalog, store, clock, error)
            log = open_log(directory, catalog, store, clock, own, TELEMETRY_LOG)
    except StorageError as error:
        if TELEMETRY_LOG in catalog.identity.starts_by_log:
            raise
        forget_accepted_loss(catalog, store)
        logger.warning("the main log takes the telemetry until the next start: %s", error)
        return None
    try:
        migrate_topic(catalog, store, main, log, parse_topic(settings.headgateTelemetryTopic))
    except BaseException:
        log.close()
        raise
    return log


def _move_aside(
    directory: DataDirectory,
    catalog: Catalog,
    store: MetadataStore,
    clock: Clock,
    damage: CorruptionError,
) -> None:
    """Keep the damaged log under another name. The next one begins without its content."""
    path = f"{directory.path}/{TELEMETRY_LOG}"
    aside = f"{path}.damaged-{clock.wall_ns() // NS_PER_MS}"
    # First: a start after a crash in between would miss the log and be refused.
    accept_log_loss(catalog, store)
    try:
        directory.fs.rename(path, aside)
        directory.fs.sync_directory(directory.path)
    except OSError as error:
        forget_accepted_loss(catalog, store)
        raise damage from error
    logger.error(
        "the telemetry log is damaged: %s. It is kept as %s, and a new one begins without its "
        "entries and subscriptions; all other topics are as they were",
        damage,
        aside,
    )

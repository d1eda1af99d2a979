"""What a task does about messages that it cannot read: it fails, or warns and goes on."""

from __future__ import annotations

import logging

from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.errors import DATA_LOSS_ADVICE, DataLossError, EncryptedError

log = logging.getLogger("pyspark_pulsar")


def report_loss(sentence: str, *, fail: bool) -> None:
    """Raise :class:`DataLossError` if ``fail`` (``failOnDataLoss``), else log a warning."""
    if fail:
        raise DataLossError(f"{sentence}. {DATA_LOSS_ADVICE}")
    log.warning("%s; the query continues, because failOnDataLoss is false", sentence)


def refuse_encrypted(topic: str, first: EntryId, *, fail: bool, count: int = 0) -> None:
    """Raise :class:`EncryptedError` if ``fail`` (``failOnDataLoss``); else log how many are left
    out, if there is a ``count``, with the first one's id."""
    text = f"{topic}: entry {entry_text(first)} is encrypted, and this source has no "
    if fail:
        raise EncryptedError(
            f"{text}keys. Read a topic that is not encrypted, or set failOnDataLoss=false to leave "
            "encrypted messages out"
        )
    if count:
        log.warning(
            "%skeys; %s encrypted entries are left out, because failOnDataLoss is false",
            text,
            count,
        )


def entry_text(place: EntryId) -> str:
    """An entry id as text: ``L:E``."""
    return f"{place[0]}:{place[1]}"

"""Makes a restored data directory one of its own.

The directory that the backup was taken of may still exist and go on. The restored one gets another
id, so that no start takes a part of one for a part of the other. Its next start gives only message
ids above all that either has given.
"""

from __future__ import annotations

import os

import msgspec

from headgate.app.data_directory import METADATA_NAME
from headgate.fs import OsFs
from headgate.ledger.format.identity import Identity, look_at_log, write_identity
from headgate.metadata.own_rows import OwnRows
from headgate.metadata.sqlite_store import SqliteStore
from headgate.storage.managed_logs import LOGS
from headgate.storage.store_binding import DATA_ID_BYTES, RESTORED


def rebind(path: str) -> None:
    """Give the data directory ``path`` a new id, durably. Blocks. May be repeated after a crash.

    Raises:
        CorruptionError: the metadata is damaged.
        StorageError: a file cannot be written.
    """
    store = SqliteStore(f"{path}/{METADATA_NAME}")
    try:
        rows = OwnRows(store.load())
        row = rows.identity
        if not row.data_id:
            return  # the first start binds it
        data_id = os.urandom(DATA_ID_BYTES).hex()
        new = msgspec.structs.replace(
            row, data_id=data_id, accepted_loss=row.accepted_loss or RESTORED
        )
        store.commit(rows.plan_identity(new).writes)
        store.flush()
    finally:
        store.close()
    for log in LOGS:
        found = look_at_log(OsFs(), f"{path}/{log}").identity
        if found is not None:
            now = Identity(data_id, found.starts, found.topic_number, found.revision)
            write_identity(OsFs(), f"{path}/{log}", now)

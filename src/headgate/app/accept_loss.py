"""``headgate accept-loss``: records which loss the operator accepts at the next start.

It opens the stores as a start does, and accepts only the loss that this start refuses. So a second
call changes nothing, and a call left in a script hides no later mistake.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import msgspec

from headgate.app.data_directory import METADATA_NAME, DataDirectory
from headgate.app.open_stores import open_log, open_metadata
from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.fs import OsFs
from headgate.ledger import LedgerSettings
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import Kind
from headgate.metadata.sqlite_store import SqliteStore
from headgate.storage.store_binding import MAIN_LOG, BindingError


def accept_loss(loss: str, data_path: str) -> str:
    """Note that the next start accepts the ``loss`` (``metadata`` or ``log``).

    Returns the reason for which starts were refused. A second call changes nothing.

    Raises:
        InputError: no start is refused for such a loss.
        BindingError: a start is refused for another reason.
        HeadgateError: the directory cannot be used, or a broker runs on it.
    """
    if not Path(data_path, METADATA_NAME).exists() and not Path(data_path, MAIN_LOG).exists():
        raise InputError(f"--data-dir {data_path} is no data directory: there is no loss to accept")
    with ExitStack() as stack:
        directory = DataDirectory.open(OsFs(), data_path)
        stack.callback(directory.close)
        store = open_metadata(directory)
        stack.callback(store.close)
        return _accept(loss, directory, store)


def _accept(loss: str, directory: DataDirectory, store: SqliteStore) -> str:
    rows = store.load()
    cluster = next((key for kind, key in rows if kind == Kind.CLUSTER), "")
    catalog = Catalog(cluster, rows)
    row = catalog.identity
    if row.accepted_loss == loss:
        return "It was noted before"
    names = dict.fromkeys([MAIN_LOG, *row.starts_by_log])
    try:
        for name in names:
            open_log(directory, catalog, store, SystemClock(), LedgerSettings(), name).close()
    except BindingError as error:
        if error.loss != loss:
            raise
        # It may have got its id meanwhile.
        accepted = msgspec.structs.replace(catalog.identity, accepted_loss=loss)
        store.commit(catalog.plan_identity(accepted).writes)
        return str(error)
    raise InputError(
        f"there is no loss to accept in {directory.path}: metadata and log belong together"
    )

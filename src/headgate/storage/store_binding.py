"""Checks at each start that the metadata and the logs of a data directory belong together.

The metadata says which topics exist; a log holds their messages under numbers. With metadata that
is missing or older than the log, the broker would delete messages as garbage. A log that is missing
or older than the metadata has lost messages silently. So both stores hold

* the data directory's random id, created at its first start: a different id shows a foreign store;
* how often the log was opened: a log with fewer starts than the metadata is older;
* the metadata's last revision and the highest topic number, which the broker writes into the log's
  directory at each start, within a second of a change and when it closes: metadata with lower
  values is older. A record with an unknown higher number proves the same when the log is read;
* the last batch that was durable, which the broker writes into the log's directory as well, also
  at each checkpoint: a log that ends before it is older than that file.

After a crash the metadata may be newer than the log; that is allowed. Each step of binding is
durable before the next, metadata first, and can be repeated after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from headgate.base.errors import HeadgateError, StorageError
from headgate.ledger import CommitLog, Identity, LogFound, OlderLogError, UnknownTopicsError
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import IdentityRow
from headgate.metadata.store import MetadataStore

logger = logging.getLogger("headgate.broker")

Loss = Literal["metadata", "log"]
"""The store whose missing data an operator may accept as lost."""

DATA_ID_BYTES: Final = 16
MAIN_LOG: Final = "log"
"""Name of the log that every data directory has, and of its folder."""

RESTORED: Final = "restore"
"""Stands as accepted loss in metadata that was restored from a backup. It accepts no mismatch: the
next start only gives no id that may have been given after the backup."""

_TOGETHER = "Put metadata and log back from the same backup, taken while no broker ran"


class BindingError(HeadgateError):
    """Metadata and log do not belong together. Nothing was changed.

    Attributes:
        problem: what does not belong together, without what to do.
        loss: what ``headgate accept-loss`` can give up so that the broker starts; None if too
            little would be left.
    """

    def __init__(self, problem: str, way_out: str, loss: Loss | None = None) -> None:
        super().__init__(f"{problem}. {way_out}")
        self.problem = problem
        self.loss = loss


@dataclass(frozen=True, slots=True)
class LogPlace:
    """One log of a data directory before it is opened."""

    name: str
    path: str
    metadata_path: str
    found: LogFound


@dataclass(frozen=True, slots=True)
class LogTerms:
    """Conditions under which a log is opened."""

    topic_number_last: int | None
    """As in :meth:`headgate.ledger.CommitLog.open`."""
    ids_min: int
    batch_min: int
    """A batch that was durable; 0 if none is known."""


def open_bound_log(
    catalog: Catalog,
    store: MetadataStore,
    place: LogPlace,
    open_log: Callable[[LogTerms], CommitLog],
    *,
    entropy: Callable[[int], bytes],
    boot_wall_ms: int,
    is_last: bool = True,
) -> CommitLog:
    """Open a log that belongs to the metadata, and bind it if it is not bound yet. Blocks.

    The first start on a directory of a release without ids binds it, with one log line. An accepted
    loss holds for all logs; opening the one with ``is_last`` clears it.

    Raises:
        BindingError: they do not belong together.
        StorageError: the disk refused.
        HeadgateError: as ``open_log``.
    """
    row = catalog.identity
    loss = row.accepted_loss
    is_mismatch = is_loss_accepted(catalog, place)
    if loss == "metadata" or is_mismatch:
        logger.warning(
            "starting without what the %s of %s lacks: that loss was accepted", loss, place.path
        )
    if loss == RESTORED:
        logger.info("%s is from a backup: all message ids are above those from before", place.path)
    identity = place.found.identity
    data_id = row.data_id or entropy(DATA_ID_BYTES).hex()
    if not row.data_id:
        row = msgspec.structs.replace(row, data_id=data_id)
        _commit(catalog, store, row)
        # Without the id in the file itself, one wrong bit in the WAL of the first run, which may
        # never be checkpointed, would leave metadata that no accepted loss can bind again.
        store.flush()
    terms = LogTerms(
        None if loss == "metadata" else catalog.topic_number_last,
        # A log that lost records would reuse ids that clients know.
        boot_wall_ms if loss in ("log", RESTORED) else 1,
        0 if identity is None or loss in ("log", RESTORED) else identity.batch,
    )
    log = _opened(place, open_log, terms)
    if identity is not None and log.last_batch < identity.batch:
        logger.warning(
            "starting without what the log of %s held behind batch %d: that loss was accepted",
            place.path,
            log.last_batch,
        )
    if place.found.holds_records and identity is None and catalog.clusters() and not loss:
        logger.info(
            "%s and %s come from a release that did not bind them: they are bound now, by the id "
            "%s; earlier releases cannot open them any more",
            place.metadata_path,
            place.path,
            data_id,
        )
    try:
        _note_start(catalog, store, place, log, is_last=is_last)
    except BaseException as error:
        if not loss and isinstance(error, StorageError) and error.retryable:
            logger.warning("this start of %s could not be recorded: %s", place.path, error)
            return log
        log.close()
        raise
    return log


def _opened(
    place: LogPlace, open_log: Callable[[LogTerms], CommitLog], terms: LogTerms
) -> CommitLog:
    """Open a log. Raises :class:`BindingError` if its records show that it does not belong to the
    metadata, or is older."""
    try:
        return open_log(terms)
    except UnknownTopicsError as error:
        raise BindingError(
            f"{place.metadata_path} is older than {place.path}, or belongs to another log: {error}",
            _way_out(place, "metadata"),
            "metadata",
        ) from error
    except OlderLogError as error:
        raise BindingError(
            f"{place.path} is older than it was, or its last records are gone: {error}",
            _way_out(place, "log"),
            "log",
        ) from error


def _note_start(
    catalog: Catalog, store: MetadataStore, place: LogPlace, log: CommitLog, *, is_last: bool
) -> None:
    """Record this start in the log's directory, then in the metadata."""
    row, identity = catalog.identity, place.found.identity
    if log.full and identity is None and not row.accepted_loss:
        return  # no space for a first segment: there is nothing to bind
    starts = row.starts_by_log.get(place.name, 0) + 1
    if row.accepted_loss == "metadata" and identity is not None:
        # Higher than a crash under the lost metadata could explain.
        starts = max(starts, identity.starts + 2)
    number = max(catalog.topic_number_last, log.topic_number_seen)
    log.identify(Identity(row.data_id, starts, number, catalog.revision, log.last_batch))
    noted = msgspec.structs.replace(
        row,
        starts_by_log={**row.starts_by_log, place.name: starts},
        accepted_loss="" if is_last else row.accepted_loss,
    )
    _commit(catalog, store, noted, topic_number_min=number)


def _commit(
    catalog: Catalog, store: MetadataStore, row: IdentityRow, *, topic_number_min: int = 0
) -> None:
    change = catalog.plan_identity(row, topic_number_min=topic_number_min)
    try:
        store.commit(change.writes)
    except BaseException:
        catalog.abandon_all()  # the start may go on, and its next change must be the first one
        raise
    catalog.apply(change)


def forget_accepted_loss(catalog: Catalog, store: MetadataStore) -> None:
    """Clear a loss that an operator accepted, if this start does not open the last log. Blocks.

    Raises:
        StorageError: the disk refused.
    """
    row = catalog.identity
    if row.accepted_loss:
        _commit(catalog, store, msgspec.structs.replace(row, accepted_loss=""))


def accept_log_loss(catalog: Catalog, store: MetadataStore) -> None:
    """Accept that the log that is opened next, the last one, lacks what it held. Blocks.

    Raises:
        StorageError: the disk refused.
    """
    _commit(catalog, store, msgspec.structs.replace(catalog.identity, accepted_loss="log"))


def is_loss_accepted(catalog: Catalog, place: LogPlace) -> bool:
    """Whether the stores do not belong together and an operator accepted that loss.

    Raises:
        BindingError: the stores do not belong together, and no operator accepted that.
    """
    try:
        check_binding(catalog, place)
    except BindingError as error:
        if error.loss is None or error.loss != catalog.identity.accepted_loss:
            raise
        return True
    return False


def check_binding(catalog: Catalog, place: LogPlace) -> None:
    """Check that the stores belong together, by what is known before the log is read.

    Raises:
        BindingError: they do not.
    """
    row, found = catalog.identity, place.found
    starts = row.starts_by_log.get(place.name)
    if found.damage:
        raise BindingError(
            f"{found.damage}, so it is not known whether {place.metadata_path} has the same state",
            _way_out(place, "metadata"),
            "metadata",
        )
    if found.identity is None:
        # In releases without ids, a cluster in the metadata shows that there was a log.
        if starts is not None or (
            place.name == MAIN_LOG and catalog.clusters() and not found.holds_records
        ):
            raise _log_missing(place)
    elif row.data_id != found.identity.data_id:
        raise BindingError(
            f"{place.metadata_path} does not belong to {place.path}: "
            + (f"its id is {row.data_id}" if row.data_id else "it has no id")
            + f", the log's is {found.identity.data_id}",
            f"{_TOGETHER}; or {_to_rebuild(place)}; or, to begin without these messages, move "
            f"{place.path} away",
        )
    else:
        _check_ages(catalog, place, found.identity, starts or 0)


def metadata_missing(places: Sequence[LogPlace]) -> BindingError | None:
    """The error for logs without any metadata; None if there are no logs either."""
    logs = [
        place.path
        for place in places
        if place.found.identity is not None or place.found.holds_records or place.found.damage
    ]
    if not logs:
        return None
    named = " and ".join(logs)
    return BindingError(
        f"{places[0].metadata_path} is missing, but {named} {'is' if len(logs) == 1 else 'are'} "
        "there: without the topics' names the messages belong to no topic",
        f"{_TOGETHER}; or {_to_rebuild(places[0])}; or, to begin without these messages, move "
        f"{named} away",
    )


def _check_ages(catalog: Catalog, place: LogPlace, identity: Identity, starts: int) -> None:
    behind = [
        f"{what} is {ours}, and {theirs} was known when the log was last used"
        for what, ours, theirs in (
            ("its last change", catalog.revision, identity.revision),
            ("the highest topic number", catalog.topic_number_last, identity.topic_number),
            ("its count of starts", starts + 1, identity.starts),
        )
        if ours < theirs
    ]
    if behind:
        raise BindingError(
            f"{place.metadata_path} is older than {place.path}, or its last changes are damaged: "
            f"{behind[0]}",
            _way_out(place, "metadata"),
            "metadata",
        )
    if identity.starts < starts:
        raise BindingError(
            f"{place.path} is older than {place.metadata_path}: it knows of {identity.starts} "
            f"starts, the metadata of {starts}",
            _way_out(place, "log"),
            "log",
        )


def _log_missing(place: LogPlace) -> BindingError:
    what = "is no longer bound" if place.found.holds_records else "is missing or empty"
    return BindingError(
        f"{place.path} {what}, but {place.metadata_path} says that it had topics' messages",
        _way_out(place, "log"),
        "log",
    )


_GIVEN_UP: Final[dict[Loss, str]] = {
    "metadata": "messages of topics that this metadata does not know",
    "log": "messages and subscriptions that this log does not hold",
}


def _way_out(place: LogPlace, loss: Loss) -> str:
    rebuild = f"or {_to_rebuild(place)}; " if loss == "metadata" else ""
    return (
        f"{_TOGETHER}; {rebuild}or, to give up {_GIVEN_UP[loss]}, run: "
        f"headgate accept-loss {loss} --data-dir {_folder(place)}"
    )


def _to_rebuild(place: LogPlace) -> str:
    return (
        "rebuild the metadata from its copy in the log, which this command shows first: "
        f"headgate ledger repair --dry-run --data-dir {_folder(place)}"
    )


def _folder(place: LogPlace) -> str:
    return place.metadata_path.rpartition("/")[0] or "."

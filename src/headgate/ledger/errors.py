"""The errors of the commit log."""

from __future__ import annotations

from headgate.base.errors import HeadgateError, NoRoomError, StorageError


class LogFailedError(StorageError):
    """The disk failed to make bytes durable. Final: the log stores nothing until a restart."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=False)


class LogFullError(NoRoomError):
    """The disk is full. Publishing waits for room; consuming goes on."""


class TopicGoneError(StorageError):
    """A topic was deleted while its index was read. A later look-up finds that out by itself."""

    def __init__(self, number: int) -> None:
        text = f"topic number {number} was deleted while its index was read"
        super().__init__(text, retryable=True)


class UnknownTopicsError(HeadgateError):
    """The log has records of a topic number that the metadata never assigned: the metadata belongs
    to another log, or is older than this one.

    Attributes:
        number_seen: the highest topic number in the log.
    """

    def __init__(self, number_seen: int, number_last: int) -> None:
        super().__init__(
            f"the log has records of topic number {number_seen}, and the highest number that the "
            f"metadata ever assigned is {number_last}"
        )
        self.number_seen = number_seen


class OlderLogError(HeadgateError):
    """The log ends before a batch that was durable: it is older than it was, or its end is gone.

    Attributes:
        batch: the last batch that the log has.
    """

    def __init__(self, batch: int, batch_min: int) -> None:
        super().__init__(f"it ends with batch {batch}, and batch {batch_min} was durable")
        self.batch = batch


class DirectoryInUseError(HeadgateError):
    """Another process owns the data directory."""


class UnknownFormatError(HeadgateError):
    """The data directory was written by another program or a later release."""

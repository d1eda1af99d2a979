"""Whose fault, and whether to try again."""

from __future__ import annotations

from headgate.base.errors import HeadgateError, StorageError
from headgate.ledger import DirectoryInUseError, LogFailedError, LogFullError, UnknownFormatError


def test_only_a_full_disk_is_worth_another_try() -> None:
    assert LogFullError("x").retryable
    assert not LogFailedError("x").retryable
    assert issubclass(LogFullError, StorageError)


def test_a_directory_that_is_not_ours_is_an_expected_failure() -> None:
    assert issubclass(DirectoryInUseError, HeadgateError)
    assert issubclass(UnknownFormatError, HeadgateError)

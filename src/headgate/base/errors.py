"""The roots of all errors.

Three kinds of bad news exist, and they never mix:

* an *expected failure* is a :class:`HeadgateError` whose text says which input, what is
  allowed and whose fault it is;
* *corruption* is a :class:`CorruptionError`: named place, never retried, never served;
* *our bug* is an :class:`InvariantError`, raised by :func:`invariant` and caught by nobody.
"""

from __future__ import annotations


class HeadgateError(Exception):
    """An expected failure. Subclasses say who is at fault and what to answer."""


class InputError(HeadgateError, ValueError):
    """Somebody's input is not allowed: the text names the field, the value and what is."""


class CorruptionError(HeadgateError):
    """Stored bytes are not what was written: the text names the place. Never retried."""


class StorageError(HeadgateError):
    """The disk refused or failed; ``retryable`` says whether a later try can succeed."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class NoRoomError(StorageError):
    """The disk takes no more for now: room may be made while the broker runs."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


class InvariantError(AssertionError):
    """Headgate broke its own promise. Never caught: the process must not go on."""


def broken(what: str, error: BaseException) -> InvariantError:
    """What an ``error`` that nobody expected comes to where ``what`` must not end half done: raise
    it from ``error``. An invariant that broke stays itself."""
    if isinstance(error, InvariantError):
        return error
    return InvariantError(f"{what} failed with an internal error: {type(error).__name__}: {error}")


def invariant(condition: object, message: str) -> None:
    """Raise :class:`InvariantError` with ``message`` unless ``condition`` holds.

    Unlike ``assert`` it also runs under ``python -O``.
    """
    if not condition:
        raise InvariantError(message)

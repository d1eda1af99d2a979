"""The roots of all errors.

There are three kinds, which never mix:

* An *expected failure* is a :class:`HeadgateError`. Its text names the input, what is allowed and
  who must act.
* *Corruption* is a :class:`CorruptionError`. It names the place; corrupt data is never retried and
  never served.
* A *bug* is an :class:`InvariantError`, which :func:`invariant` raises and nothing catches.
"""

from __future__ import annotations


class HeadgateError(Exception):
    """An expected failure. Subclasses name the cause and determine the reply."""


class InputError(HeadgateError, ValueError):
    """An input is not allowed: the text names the field, the value and what is allowed."""


class CorruptionError(HeadgateError):
    """Stored bytes differ from what was written: the text names the place. Never retried."""


class StorageError(HeadgateError):
    """The disk refused or failed; ``retryable`` says whether a later try can succeed."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class NoRoomError(StorageError):
    """The disk is full; an operator may make room while the broker runs."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True)


class InvariantError(AssertionError):
    """A bug of Headgate. Never caught: the process must not go on."""


def broken(what: str, error: BaseException) -> InvariantError:
    """The error to raise from an unexpected ``error`` in ``what``, which must not stop halfway.

    An :class:`InvariantError` stays itself.
    """
    if isinstance(error, InvariantError):
        return error
    return InvariantError(f"{what} failed with an internal error: {type(error).__name__}: {error}")


def invariant(condition: object, message: str) -> None:
    """Raise :class:`InvariantError` with ``message`` unless ``condition`` holds.

    Unlike ``assert`` it also runs under ``python -O``.
    """
    if not condition:
        raise InvariantError(message)

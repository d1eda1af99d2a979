"""Answers over HTTP that end in time as a whole, and whose heads have a bound.

The time-out of a connection is one for each read, and Python's client reads interim answers
(``100 Continue``) and lines of a head for as long as a server sends them: such a request would
never end.
"""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headgate.base.units import KIB

HEAD_BYTES_MAX: Final = 256 * KIB
"""What comes before the body of an answer: interim answers, the status, the headers. Up to a buffer
of the body counts as well."""


class LongHeadError(http.client.HTTPException):
    """What comes before the body of an answer is too long."""


class LateAnswerError(TimeoutError):
    """No time is left for the rest of an answer."""


class _TimedReader(io.RawIOBase):
    """Reads a socket as long as time is left."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, left_s: Callable[[], float]) -> None:
        self._raw = raw
        self._sock = sock
        self._left_s = left_s
        self._each_s = sock.gettimeout()
        self.head_bytes: int | None = 0
        """What has been read of the head; None behind it."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._left_s()
        if left_s <= 0:
            raise LateAnswerError("the answer takes too long")
        # The socket of a connection that is kept gets its time-out anew with the next request.
        self._sock.settimeout(left_s if self._each_s is None else min(left_s, self._each_s))
        found = self._raw.readinto(buffer)
        if self.head_bytes is not None:
            self.head_bytes += found or 0
            if self.head_bytes > HEAD_BYTES_MAX:
                raise LongHeadError(f"an answer has {HEAD_BYTES_MAX:,} bytes before its body")
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


def timed_answers(left_s: Callable[[], float]) -> type[http.client.HTTPResponse]:
    """The answers of connections whose requests end in time, as a ``response_class``.

    ``left_s`` tells how many seconds are left for the answer that the calling thread reads.

    Reads raise :class:`LateAnswerError` when none is left, and :class:`LongHeadError` if more than
    :data:`HEAD_BYTES_MAX` come before the body.
    """

    class TimedAnswer(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:
            super().__init__(sock, *given, **named)
            self._timed = _TimedReader(self.fp.detach(), sock, left_s)
            self.fp = io.BufferedReader(self._timed)

        def begin(self) -> None:
            super().begin()
            self._timed.head_bytes = None

    return TimedAnswer


def timed_pools(
    pools: Mapping[str, type[Any]], left_s: Callable[[], float]
) -> dict[str, type[Any]]:
    """urllib3's classes of pools by scheme (``PoolManager.pool_classes_by_scheme``), of connections
    whose answers are :func:`timed_answers`."""
    answers = {"response_class": timed_answers(left_s)}
    return {
        scheme: type(
            pool.__name__,
            (pool,),
            {"ConnectionCls": type("TimedConnection", (pool.ConnectionCls,), answers)},
        )
        for scheme, pool in pools.items()
    }


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, which urllib3 and requests have among an error's arguments."""
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in found:
        found.append(following)
        yield following
        inner = next((each for each in following.args if isinstance(each, BaseException)), None)
        following = inner or following.__cause__ or following.__context__

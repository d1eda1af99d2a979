"""Connections on which the properties of a message are no headers.

The admin API's response about an entry has a header for each property of its message. Python reads
a hundred headers, and its producer may set more. This package reads none of them.
"""

from __future__ import annotations

import http.client
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

PROPERTIES_MAX = 10_000
"""Most properties that are left out: an answer has an end."""

_PREFIX = b"x-pulsar-property-"


class _Lines:
    """The lines of a head without those of properties."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = PROPERTIES_MAX

    def readline(self, size: int) -> bytes:
        """The next line, or its first ``size`` bytes."""
        while True:
            line: bytes = self._file.readline(size)
            if self._left == 0 or line[: len(_PREFIX)].lower() != _PREFIX:
                return line
            self._left -= 1

    def close(self) -> None:
        """Close the file: what has come is no head."""
        self._file.close()


class _Response(http.client.HTTPResponse):
    def begin(self) -> None:
        file: Any = self.fp
        lines: Any = _Lines(file)
        self.fp = lines
        try:
            super().begin()
        finally:
            if self.fp is lines:  # else what came is no head, and the file is closed
                self.fp = file


class _Connection(HTTPConnection):
    response_class = _Response


class _TlsConnection(HTTPSConnection):
    response_class = _Response


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class PoolManager(urllib3.PoolManager):
    """A pool manager whose responses have no headers of properties."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

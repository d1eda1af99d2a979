"""Stands for the module ``pulsar`` of ``pulsar-client``, in this process."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest


class PulsarError(Exception):
    """Of the library."""


def _values(*values: Any) -> tuple[Any, ...]:
    return values


class ClientLibrary:
    """The module, its client and its producer in one."""

    PulsarException = PulsarError
    LoggerLevel = SimpleNamespace(Error=4)
    ConsoleLogger = staticmethod(_values)
    FileLogger = staticmethod(_values)
    AuthenticationToken = staticmethod(_values)
    AuthenticationBasic = staticmethod(_values)
    AuthenticationTLS = staticmethod(_values)

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        """Of the client that was made last, and of its producer."""
        self.stored: list[tuple[bytes, dict[str, str]]] = []
        self.closed = 0
        self.refuses = self.close_fails = False

    def Client(self, url: str, **options: Any) -> ClientLibrary:  # noqa: N802
        if url == "bad":
            raise ValueError("no URL")
        self.options = {"url": url, **options}
        return self

    def create_producer(self, topic: str, **options: Any) -> ClientLibrary:
        if self.refuses:
            raise PulsarError("not allowed")
        self.options |= {"topic": topic, **options}
        return self

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        if data == b"bad":
            raise PulsarError("too bad")
        self.stored.append((data, properties))

    def close(self) -> None:
        self.closed += 1
        if self.close_fails:
            raise PulsarError("already closed")


def stand_in(monkeypatch: pytest.MonkeyPatch) -> ClientLibrary:
    """Have ``import pulsar`` find one until the test ends."""
    found = ClientLibrary()
    monkeypatch.setitem(sys.modules, "pulsar", found)
    return found

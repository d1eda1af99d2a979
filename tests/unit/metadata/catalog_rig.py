"""A catalog over a store in memory, which commits each change at once."""

from __future__ import annotations

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError
from headgate.metadata.memory_store import MemoryStore

NS = NamespaceName("public", "default")
T = parse_topic("t")
PT = parse_topic("pt")


class Broker:
    """Owns a catalog: commits and applies each change at once."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.catalog = Catalog("standalone", self.store.load())
        first = self.catalog.plan_first_boot()
        if first is not None:
            self.do(first)

    def do(self, change: Change) -> Change:
        self.store.commit(change.writes)
        self.catalog.apply(change)
        return change

    def restarted(self) -> Broker:
        return Broker(self.store.crash_clone())


def refused(caught: pytest.ExceptionInfo[RefusalError]) -> tuple[int, str]:
    return caught.value.status, caught.value.reason

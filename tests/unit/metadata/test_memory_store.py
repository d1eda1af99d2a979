"""The store for tests: whole transactions, kept or lost as a test says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.base.errors import StorageError
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.store import MetadataStore, Write
from tests.unit.metadata.store_suite import SUITE, Reopen


def _reopen(store: MetadataStore) -> MetadataStore:
    assert isinstance(store, MemoryStore)
    return store.crash_clone()


@pytest.mark.parametrize("behaviour", SUITE)
def test_behaves_as_a_store(behaviour: Callable[[MetadataStore, Reopen], None]) -> None:
    behaviour(MemoryStore(), _reopen)


def test_a_failure_stores_nothing_and_passes() -> None:
    store = MemoryStore()
    store.fail_next(StorageError("full", retryable=True))
    with pytest.raises(StorageError, match="full"):
        store.commit([Write("a", "1", b"x")])
    assert store.load() == {}
    store.commit([Write("a", "1", b"x")])
    assert store.commits == 1


@pytest.mark.parametrize("keep", [True, False])
def test_a_crash_keeps_or_loses_the_whole_transaction(keep: bool) -> None:
    store = MemoryStore()
    store.crash_at(1, keep=keep)
    store.commit([Write("a", "1", b"x")])
    with pytest.raises(StorageError, match="power"):
        store.commit([Write("a", "1", b"y"), Write("a", "2", b"y")])
    with pytest.raises(StorageError, match="power"):
        store.commit([Write("a", "3", b"z")])
    found = store.crash_clone().load()
    assert found == ({("a", "1"): b"y", ("a", "2"): b"y"} if keep else {("a", "1"): b"x"})

"""The lock object over a store in memory that has the conditions of S3."""

from __future__ import annotations

from typing import Any

import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from headgate.pipeline.store import s3_objects as objects
from headgate.pipeline.store.lease import FREE, LOCK, LeaseRenewal, take
from headgate.pipeline.store.s3_objects import StoredLock, delete, lease_object, lock_object
from tests.unit.pipeline.store.test_lease import A, B, Time


def test_puts_have_conditions() -> None:
    lock = StoredLock(MemoryStore(), LOCK)
    assert lock.read() is None
    tag = lock.create(A)
    assert tag is not None
    assert lock.create(B) is None
    new = lock.swap(B, tag)
    assert new not in (None, tag)
    assert lock.swap(A, tag) is None
    found = lock.read()
    assert found is not None
    assert (found.lease, found.tag) == (B, new)


def test_the_lease_protocol_works_over_s3_objects() -> None:
    store, time = MemoryStore(), Time()
    tag = take(StoredLock(store, LOCK), A, monotonic=time.monotonic, wait=time.wait)
    dead = LeaseRenewal(StoredLock(store, LOCK), A, tag)
    dead.renew()
    tag = take(StoredLock(store, LOCK), B, monotonic=time.monotonic, wait=time.wait)
    dead.renew()
    assert dead.is_lost
    LeaseRenewal(StoredLock(store, LOCK), B, tag).release()
    found = StoredLock(store, LOCK).read()
    assert found is not None
    assert found.lease == FREE


def test_each_lease_has_an_object_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(objects, "_store", lambda _: store)
    for name, lease in (("a", A), ("b", B)):
        assert lease_object("s3://tables/a", name).create(lease) is not None
    assert sorted(found["path"] for found in store.list().collect()) == [".leases/a", ".leases/b"]


def test_a_foreign_lock_object_is_not_ours() -> None:
    store = MemoryStore()
    store.put(LOCK, b"\x00")
    found = StoredLock(store, LOCK).read()
    assert found is not None
    assert found.lease.token not in (FREE.token, A.token)


def test_errors_are_those_of_a_file_system_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @staticmethod
        def get(*_: Any) -> Any:
            raise GenericError("Generic S3 error: no route\n\nDebug source:\na page")

        @staticmethod
        def put(*_: Any, **__: Any) -> Any:
            raise FileNotFoundError("Object at location .lock not found: no bucket\na page")

    monkeypatch.setattr(objects, "obstore", Broken)
    with pytest.raises(OSError, match=r"^Generic S3 error: no route$"):
        StoredLock(None, LOCK).read()
    with pytest.raises(OSError, match=r"no bucket$"):
        StoredLock(None, LOCK).create(A)


def test_files_are_deleted_below_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    for name in ("a/1", "a/2", "b"):
        store.put(name, b"x")
    monkeypatch.setattr(objects, "_store", lambda root: store)
    delete("s3://tables", ["a/1", "a/2"])
    assert [found["path"] for part in store.list() for found in part] == ["b"]


def test_a_lock_is_that_of_its_prefix_and_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(OSError, match=r"Missing SecretAccessKey$"):
        lock_object("s3://tables/a/b")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    store = lock_object("s3://tables/a/b")._store
    assert (store.prefix, store.config["bucket"]) == ("a/b", "tables")
    assert store.config["region"] == "eu-west-1"
    assert "hush" not in repr(store)
    assert lock_object("s3://tables")._store.prefix is None

"""The lock in S3 around a job: refusals, renewal, release."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.store import s3_lock as module
from headgate.pipeline.store.lease import FREE, Lease, LockState
from headgate.pipeline.store.lock_tokens import check_lock, writer_options
from headgate.pipeline.store.s3_lock import s3_folder_lock, s3_lock
from headgate.pipeline.store.table_store import TableStore, store_of
from tests.unit.pipeline.store.test_lease import A, Shelf, Time

ROOT = "s3://tables/a"


def test_the_holder_may_write_and_releases_the_lock(tmp_path: Path) -> None:
    lock = Shelf()
    with s3_lock(ROOT, lock):
        assert lock.found is not None
        lease = lock.found.lease
        assert (lease.process, lease.host) == (os.getpid(), socket.gethostname())
        assert writer_options(ROOT)["lock"] == lease.token
        check_lock(ROOT, lock)
    assert lock.found.lease == FREE
    assert writer_options(ROOT) == {"root": ROOT}
    with pytest.raises(RuntimeError, match="the job"), s3_lock(ROOT, lock):
        raise RuntimeError("the job")
    assert lock.token == FREE.token


def test_a_second_writer_is_refused_with_the_holder_s_name() -> None:
    lock, said = Shelf(), list[str]()
    lock.create(A)
    assert lock.found is not None
    tag = lock.found.tag
    time = Time((6.0, lambda: lock.swap(A, tag)))
    held = s3_lock(ROOT, lock, said.append, monotonic=time.monotonic, wait=time.wait)
    with pytest.raises(InputError, match=r"another job \(process 7 on host-a, since 2026"), held:
        pass
    (line,) = said
    assert "host-a" in line
    assert lock.token == "a"


def test_a_wait_for_a_dead_holder_is_announced() -> None:
    lock, said, time = Shelf(), list[str](), Time()
    lock.create(A)
    with s3_lock(ROOT, lock, said.append, monotonic=time.monotonic, wait=time.wait):
        assert lock.token != "a"
    assert "60 s if not" in said[0]


def test_a_folder_that_cannot_be_locked_is_an_error() -> None:
    class Gone(Shelf):
        def read(self) -> LockState | None:
            raise OSError("Generic S3 error: no route")

    with (
        pytest.raises(InputError, match="cannot be used: Generic S3 error: no route"),
        s3_lock(ROOT, Gone()),
    ):
        pass
    careless = Shelf()
    careless.create = careless._put  # type: ignore[assignment]
    with pytest.raises(InputError, match="conditional writes"), s3_lock(ROOT, careless):
        pass


def test_the_lease_is_renewed_even_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.001)
    renewed = threading.Event()

    class Shaky(Shelf):
        failures = 2

        def swap(self, lease: Lease, tag: str) -> str | None:
            if lease.renewals and self.failures:
                self.failures -= 1
                raise OSError("no route")
            if lease.renewals > 4:
                renewed.set()
            return super().swap(lease, tag)

    lock = Shaky()
    with s3_lock(ROOT, lock):
        assert renewed.wait(30)
    assert lock.token == FREE.token


def test_an_unreachable_store_at_the_end_hides_no_error() -> None:
    class Going(Shelf):
        is_gone = False

        def swap(self, lease: Lease, tag: str) -> str | None:
            if self.is_gone:
                raise OSError("no route")
            return super().swap(lease, tag)

    lock = Going()

    def fail() -> None:
        lock.is_gone = True
        raise RuntimeError("the job")

    with pytest.raises(RuntimeError, match="the job"), s3_lock(ROOT, lock):
        fail()


def test_the_names_in_the_folder_are_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Objects:
        @staticmethod
        def lock_object(root: str) -> Shelf:
            return Shelf()

    def here(root: str) -> TableStore:
        return store_of(str(tmp_path))

    monkeypatch.setattr(module, "store_of", here)
    monkeypatch.setattr(module, "s3_objects", lambda: Objects)
    (tmp_path / "thesis.txt").touch()
    seen: list[list[str]] = []
    with s3_folder_lock(ROOT, seen.append, lambda _: None):
        assert seen == [["thesis.txt"]]
    (tmp_path / "thesis.txt").unlink()
    tmp_path.rmdir()
    tmp_path.touch()
    with (
        pytest.raises(InputError, match="cannot be used: Not a directory"),
        s3_folder_lock(ROOT, seen.append, lambda _: None),
    ):
        pass
